package rebalance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// flags are those of `cede rebalance`.
type flags struct {
	plan       bool
	run, moves string
}

// NewCommand returns `cede rebalance`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:         "rebalance",
		Short:       "Move instances to make room for jobs that wait",
		Annotations: cmdutil.ExitCodes("5 nothing of the plan of --run holds any more"),
		Long: `Move instances to other nodes, so that jobs that wait can be placed. Nothing is
evicted: each moved instance is placed on its new node before it stops. It loses its work
since the last checkpoint.

With --plan nothing is changed. The plan lists which instances would be moved or replaced,
with the work that each loses, and what would be placed, and returns a token.

With --run exactly the plan of a token is executed. Parts that no longer hold are reported,
and move nothing.

Moves need not be enabled. Disruption budgets and the protections of jobs limit them as
they limit all moves, and --moves limits how many instances of one job are moved.`,
		Example: `  cede rebalance --plan
  cede rebalance --plan -t '{{.PlanToken}}' > plan.token
  cede rebalance --run @plan.token`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	cmd.Flags().BoolVar(&f.plan, "plan", false, "show the moves and change nothing")
	cmd.Flags().StringVar(&f.run, "run", "", "execute exactly the plan of this `TOKEN`; @FILE reads the token from a file")
	cmd.Flags().StringVar(&f.moves, "moves", "", "with --plan: move at most `N/WINDOW` instances of a job, N up to 2147483647; default: as configured, or 1/1h")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		running := cmd.Flags().Changed("run")
		moves, err := f.check(running)
		switch {
		case err != nil:
			return cmdutil.Document{}, err
		case running:
			return f.execute(ctx, env, c)
		}
		return propose(ctx, c, moves, f.moves)
	})
}

// check returns the limit of --moves, nil if the flag is not set, or an error that lists every
// problem of the flags.
func (f *flags) check(running bool) (moves *client.Moves, err error) {
	var problems []error
	switch {
	case f.plan && running:
		problems = append(problems, cmdutil.Usagef("remove one of them", "--plan and --run are mutually exclusive"))
	case !f.plan && !running:
		problems = append(problems, cmdutil.Usagef("add --plan to see the moves, then --run TOKEN", "--plan or --run is required"))
	case running && f.run == "":
		problems = append(problems, cmdutil.Usagef("a plan without moves has no token", "--run must not be empty"))
	}
	if running && f.moves != "" {
		problems = append(problems, cmdutil.Usagef("use --moves with --plan", "a plan contains its limit: --run excludes --moves"))
	}
	if f.moves != "" {
		moves, err = cmdutil.ParseMoves(f.moves, "")
		problems = append(problems, err)
	}
	return moves, cmdutil.JoinProblems("the command line", problems...)
}

// propose returns the plan. limit is the value of --moves, or "".
func propose(ctx context.Context, c *cmdutil.Connection, moves *client.Moves, limit string) (cmdutil.Document, error) {
	done := c.Env.Waiting("planning moves")
	plan, err := c.Client.Scheduler().PlanRebalance(ctx, moves)
	done()
	if err != nil {
		return cmdutil.Document{}, err
	}
	names := []string{}
	for i := range plan.Steps {
		names = append(names, plan.Steps[i].JobID)
	}
	return cmdutil.Document{Data: plan, Names: names, Page: func(p cmdutil.Page) { showPlan(p, plan, limit) }}, nil
}

func showPlan(p cmdutil.Page, plan *client.RebalancePlan, limit string) {
	if plan.PlanToken == "" {
		p.Printf("No moves: nothing waits that moves would make room for.\n")
		return
	}
	t := cmdutil.NewTable("JOB ID", "NAMESPACE", "PRIORITY>", "PLACE>", "MOVE>", "REPLACE>", "LOST WORK>")
	header := []string{"ALLOC ID", "JOB ID", "TASK GROUP", "TO NODE", "FOR", "LOST WORK>"}
	moved, replaced := cmdutil.NewTable(header...), cmdutil.NewTable(header...)
	var total time.Duration
	for i := range plan.Steps {
		s := &plan.Steps[i]
		total += s.LostWork
		replaces := 0
		for k := range s.Stop {
			x := &s.Stop[k]
			table := moved
			if !x.IsMove {
				table = replaced
				replaces++
			}
			table.Row(p.ID(x.AllocID), x.JobID, x.TaskGroup, nextNode(p, s, x), s.JobID, lost(x.LostWork))
		}
		t.Row(s.JobID, s.Namespace, fmt.Sprint(s.Priority), fmt.Sprint(len(s.Place)), fmt.Sprint(len(s.Move)), fmt.Sprint(replaces), lost(s.LostWork))
	}
	p.Table(t)
	p.Title("Moved")
	p.Table(moved)
	if replaced.Len() > 0 {
		p.Title("Replaced")
		p.Table(replaced)
	}
	if p.NoHeaders {
		return
	}
	if len(plan.Steps) > 1 {
		p.Printf("\nLost work in total: %s\n", lost(total))
	}
	if plan.Omitted > 0 {
		p.Printf("\n%s of lower priority were not considered.\n", cmdutil.Count(plan.Omitted, "waiting job", "waiting jobs"))
	}
	p.Printf("\nPlan token, valid until %s:\n  %s\n", plan.Expires.UTC().Format("15:04:05 MST"), plan.PlanToken)
	command := "cede rebalance --plan"
	if limit != "" {
		command += " --moves " + limit
	}
	p.Printf("\nTo run exactly this plan:\n  cede rebalance --run TOKEN\nor store the token of a new plan in a file:\n")
	p.Printf("  %s -t '{{.PlanToken}}' > plan.token\n  cede rebalance --run @plan.token\n", command)
}

func lost(work time.Duration) string { return work.Round(time.Second).String() }

// nextNode returns the node of the allocation that takes over from one that is stopped.
func nextNode(p cmdutil.Page, s *client.RebalanceStep, x *client.RebalanceStop) string {
	for _, a := range slices.Concat(s.Move, s.Place) {
		if a.ID == x.NextAllocation {
			return apiview.AllocNode(p, a)
		}
	}
	return ""
}

// unknownOutcome adds to an error of a plan that may have been executed how to proceed: a
// second run moves nothing that the first one has moved.
func unknownOutcome(err error) error {
	if !client.HasCode(err, client.CodeUnknownOutcome) {
		return err
	}
	e := cmdutil.AsError(err)
	e.Hint = "repeat the command: parts of the plan that were executed are reported as differences, and move nothing again"
	return e
}

func (f *flags) execute(ctx context.Context, env *cmdutil.Env, c *cmdutil.Connection) (cmdutil.Document, error) {
	token := f.run
	if file, ok := strings.CutPrefix(token, "@"); ok {
		var err error
		if token, err = env.ReadSecret(file); err != nil {
			return cmdutil.Document{}, err
		}
	}
	if token == "" {
		return cmdutil.Document{}, cmdutil.Usagef("a plan without moves has no token", "--run must not be empty")
	}
	done := env.Waiting("executing the plan")
	result, err := c.Client.Scheduler().Rebalance(ctx, token)
	done()
	if err != nil {
		return cmdutil.Document{}, unknownOutcome(err)
	}
	names := []string{}
	for i := range result.Steps {
		names = append(names, result.Steps[i].JobID)
	}
	return cmdutil.Document{Data: result, Names: names, Page: func(p cmdutil.Page) {
		t := cmdutil.NewTable("JOB ID", "NAMESPACE", "PLACED>", "MOVED>", "NOT DONE")
		for _, s := range result.Steps {
			t.Row(s.JobID, s.Namespace, fmt.Sprint(s.Placed), fmt.Sprint(s.Moved), strings.Join(s.Rejected, "; "))
		}
		p.Table(t)
	}}, nil
}

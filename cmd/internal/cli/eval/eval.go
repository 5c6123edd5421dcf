package eval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede eval` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "List, describe, explain and cancel evaluations",
		Long: `List, describe, explain and cancel evaluations.

An evaluation is a request to reconcile one job. If it could not place an instance,
cede eval explain reports why, by node, and the reasons of its evictions.`,
		Example: "  cede eval list --job web\n  cede eval explain 4f1c",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newEvalListCmd(env), newEvalStatusCmd(env), newEvalExplainCmd(env), newEvalCancelCmd(env))
	return cmd
}

func newEvalListCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List evaluations, newest first",
		Example: "  cede eval list\n  cede eval list --job web --status blocked",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	job := cmd.Flags().String("job", "", "only those of `JOB`")
	status := cmd.Flags().String("status", "", "only those with `STATUS` pending, blocked, complete, failed or cancelled")
	cmdutil.CompleteFlag(cmd, "status", evalStatuses)
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		if err := cmdutil.ValidateChoice("status", *status, evalStatuses); err != nil {
			return cmdutil.Document{}, err
		}
		list, err := listEvaluations(ctx, c, *job)
		if err != nil {
			return cmdutil.Document{}, err
		}
		list = slices.DeleteFunc(list, func(e *client.Evaluation) bool { return *status != "" && e.Status != *status })
		slices.SortStableFunc(list, func(a, b *client.Evaluation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
		return cmdutil.Document{Data: list, Names: cmdutil.NamesOf(list, func(e *client.Evaluation) string { return e.ID }), Page: func(p cmdutil.Page) {
			shown := list
			if len(shown) > cmdutil.MaxList && !p.Wide {
				shown = shown[:cmdutil.MaxList]
			}
			if len(shown) == 0 && !p.NoHeaders {
				p.Printf("No evaluations\n")
				return
			}
			apiview.EvalTable(p, env, shown)
			p.Omitted(len(list), len(shown))
		}}, nil
	})
}

var evalStatuses = []string{"pending", "blocked", "complete", "failed", "cancelled"}

func listEvaluations(ctx context.Context, c *cmdutil.Connection, job string) ([]*client.Evaluation, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	if job == "" {
		return cmdutil.ListAll(ctx, c.QueryOptions(), api.Evaluations().List)
	}
	found, err := apiview.FindJob(ctx, c, job)
	if err != nil {
		return nil, err
	}
	list, _, err := api.Jobs().Evaluations(ctx, found.ID, &client.QueryOptions{Namespace: found.Namespace})
	return list, cmdutil.InterruptError(ctx, err)
}

func newEvalStatusCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Describe an evaluation and its allocations",
		Long: `Describe an evaluation: what triggered it, the evaluations that it created, and the
allocations that it placed.`,
		Example: "  cede eval status 4f1c",
		Args:    cmdutil.PositionalArgs(1, 1, "one evaluation"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		e, err := apiview.FindEval(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		allocs, _, err := c.Client.Evaluations().Allocations(ctx, e.ID, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := struct {
			*client.Evaluation
			Allocations []*client.AllocationStub
		}{e, allocs}
		return cmdutil.Document{Data: v, Names: []string{e.ID}, Page: func(p cmdutil.Page) {
			evalFacts(p, env, e)
			related(p, env, e)
			if len(allocs) > 0 {
				p.Title("Allocations")
				apiview.AllocTable(p, env, allocs, false)
			}
			explainEval(p, e)
		}}, nil
	})
}

func evalFacts(p cmdutil.Page, env *cmdutil.Env, e *client.Evaluation) {
	wait := ""
	if e.WaitUntil != nil && !e.WaitUntil.IsZero() {
		wait = e.WaitUntil.UTC().Format(time.RFC3339)
	}
	p.Properties("id", e.ID, "job", e.JobID, "namespace", e.Namespace, "type", e.Type, "priority", fmt.Sprint(e.Priority),
		"triggered by", e.TriggeredBy, "status", e.Status, "description", e.StatusDescription, "waits until", wait,
		"created", env.TimeAndAge(e.CreateTime), "changed", env.TimeAndAge(e.ModifyTime), "superseded by", e.SupersededBy)
}

// related lists the preceding and following evaluations.
func related(p cmdutil.Page, env *cmdutil.Env, e *client.Evaluation) {
	if len(e.RelatedEvals) == 0 {
		return
	}
	p.Title("Related")
	t := cmdutil.NewTable("EVAL ID", "TRIGGERED BY", "STATUS", "AGE>", "DESCRIPTION")
	for _, r := range e.RelatedEvals {
		t.Cells(cmdutil.Cell(p.ID(r.ID)), cmdutil.Cell(r.TriggeredBy), cmdutil.StatusCell(r.Status), cmdutil.Cell(env.Age(r.CreateTime)), cmdutil.Cell(r.StatusDescription))
	}
	p.Table(t)
}

// explainEval explains why allocations were not placed.
func explainEval(p cmdutil.Page, e *client.Evaluation) {
	if len(e.FailedTGAllocs) == 0 {
		return
	}
	p.Title("Unplaced")
	for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
		apiview.ExplainGroup(p, name, e.QueuedAllocations[name], e.FailedTGAllocs[name])
	}
}

func newEvalExplainCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Explain unplaced instances and evictions",
		Long: `Explain why an evaluation could not place instances: how many nodes lack which
resource, which constraints excluded nodes, and why preemption does not help. If the
instances were placed since then, the command reports that. If it evicted others, the
reasons of each decision follow: see cede alloc why. So do decisions to evict that were
only observed (cede operator scheduler set --preempt-service=observe).

Nothing is evaluated again: the reasons are those of the time of the evaluation.`,
		Example: "  cede eval explain 4f1c\n  cede eval explain 4f1c -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one evaluation"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		e, err := apiview.FindEval(ctx, c, args[0])
		for followed := 0; err == nil && e.SupersededBy != "" && len(e.FailedTGAllocs) == 0 && followed < 100; followed++ {
			e, err = apiview.FindEval(ctx, c, e.SupersededBy) // the successor has the placement failures
		}
		if err != nil {
			return cmdutil.Document{}, err
		}
		decisions, _, err := c.Client.Evaluations().Decisions(ctx, e.ID, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, cmdutil.InterruptError(ctx, err)
		}
		v := struct {
			*client.Evaluation
			Decisions []*client.Decision
		}{e, decisions}
		return cmdutil.Document{Data: v, Names: []string{e.ID}, Page: func(p cmdutil.Page) {
			p.Printf("Evaluation %s of job %s is %s", p.ID(e.ID), e.JobID, e.Status)
			if e.StatusDescription != "" {
				p.Printf(": %s", e.StatusDescription)
			}
			p.Printf("\n")
			switch {
			case len(e.FailedTGAllocs) > 0:
				explainEval(p, e)
			case e.Status == "complete":
				p.Printf("All instances were placed.\n")
			case e.Status == "pending":
				p.Printf("It has not been processed yet; `cede operator broker status` shows the queue.\n")
			}
			for _, d := range decisions {
				if d.Observed {
					p.Title("Eviction that was only observed")
				} else {
					p.Title("Eviction")
				}
				apiview.ExplainDecision(p, env, d)
			}
		}}, nil
	})
}

func newEvalCancelCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel ID...",
		Short: "Cancel pending and blocked evaluations",
		Long: `Cancel pending and blocked evaluations: all of them or, if one of them is being processed
or has ended, none. Evaluations that are cancelled already are accepted.

The jobs are not changed: their allocations stay as they are until the next evaluation,
which cede job run or a change of the cluster creates.`,
		Example:     "  cede eval cancel 4f1c\n  cede eval list --status blocked -o name | xargs cede eval cancel",
		Annotations: cmdutil.ExitCodes("5 an evaluation is being processed or has ended"),
		Args:        cmdutil.PositionalArgs(1, -1, "one or more evaluations"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		ids := make([]string, len(args))
		for i, arg := range args {
			e, err := apiview.FindEval(ctx, c, arg)
			if err != nil {
				return cmdutil.Document{}, err
			}
			ids[i] = e.ID
		}
		answer, err := c.Client.Evaluations().Cancel(ctx, ids, nil)
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := struct {
			EvalIDs []string
			*client.EvalCancelResponse
		}{ids, answer}
		return cmdutil.Document{Data: v, Names: ids, Page: func(p cmdutil.Page) {
			for _, id := range ids {
				p.Printf("Evaluation %s is cancelled\n", p.ID(id))
			}
		}}, nil
	})
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newEvalCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Look at evaluations: what the scheduler was asked, and what came of it",
		Long: `Look at evaluations: what the scheduler was asked, and what came of it.

An evaluation is the order to look at one job again. One that found no place for
something says why, node by node: cede eval explain.`,
		Example: "  cede eval list --job web\n  cede eval explain 4f1c",
	}
	group(cmd)
	cmd.AddCommand(newEvalListCmd(env), newEvalStatusCmd(env), newEvalExplainCmd(env))
	return cmd
}

func newEvalListCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List evaluations, the newest first",
		Example: "  cede eval list\n  cede eval list --job web --status blocked",
		Args:    arguments(0, 0, "no arguments"),
	}
	job := cmd.Flags().String("job", "", "those of this `JOB` alone")
	status := cmd.Flags().String("status", "", "those with this `STATUS` alone: pending, blocked, complete, failed or cancelled")
	complete(cmd, "status", evalStatuses)
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		if err := oneOfFlag("status", *status, evalStatuses); err != nil {
			return document{}, err
		}
		list, err := c.evaluations(ctx, *job)
		if err != nil {
			return document{}, err
		}
		list = slices.DeleteFunc(list, func(e *client.Evaluation) bool { return *status != "" && e.Status != *status })
		slices.SortStableFunc(list, func(a, b *client.Evaluation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
		return document{data: list, names: namesOf(list, func(e *client.Evaluation) string { return e.ID }), page: func(p page) {
			shown := list
			if len(shown) > maxList && !p.wide {
				shown = shown[:maxList]
			}
			if len(shown) == 0 && !p.bare {
				p.printf("There are no evaluations\n")
				return
			}
			p.evalTable(env, shown)
			p.more(len(list), len(shown))
		}}, nil
	})
}

var evalStatuses = []string{"pending", "blocked", "complete", "failed", "cancelled"}

// maxList is how many rows a list shows.
const maxList = 100

// oneOfFlag checks a flag that takes one of a few words.
func oneOfFlag(flag, value string, allowed []string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return usagef("use "+oneOf(allowed), "--%s %s: there is no such %s", flag, value, flag)
}

func (c *connection) evaluations(ctx context.Context, job string) ([]*client.Evaluation, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	if job == "" {
		return all(ctx, c.query(), api.Evaluations().List)
	}
	found, err := c.findJob(ctx, job)
	if err != nil {
		return nil, err
	}
	list, _, err := api.Jobs().Evaluations(ctx, found.ID, &client.QueryOptions{Namespace: found.Namespace})
	return list, interruptedBy(ctx, err)
}

func (p page) evalTable(env *Env, list []*client.Evaluation) {
	titles := []string{"EVAL ID", "JOB", "PRIORITY>", "TRIGGERED BY", "STATUS", "UNPLACED>", "AGE>"}
	if p.wide {
		titles = append(titles, "NAMESPACE", "TYPE", "DESCRIPTION", "PREVIOUS", "NEXT", "BLOCKED", "SUPERSEDED BY")
	}
	t := columns(titles...)
	for _, e := range list {
		unplaced := 0
		for _, n := range e.QueuedAllocations {
			unplaced += n
		}
		cells := []term.Cell{
			plain(p.id(e.ID)), plain(e.JobID), plain(fmt.Sprint(e.Priority)), plain(e.TriggeredBy), stated(e.Status),
			plain(fmt.Sprint(unplaced)), plain(env.ago(e.CreateTime)),
		}
		if p.wide {
			for _, text := range []string{e.Namespace, e.Type, e.StatusDescription, e.PreviousEval, e.NextEval, e.BlockedEval, e.SupersededBy} {
				cells = append(cells, plain(text))
			}
		}
		t.Cells(cells...)
	}
	p.table(t)
}

// findEval gets an evaluation by its id or a prefix of it.
func (c *connection) findEval(ctx context.Context, id string) (*client.Evaluation, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	e, _, err := api.Evaluations().Get(ctx, id, c.query())
	return e, notFound(interruptedBy(ctx, err), "evaluation", id, "`cede eval list` lists them")
}

// notFound says what was not found in the words of the command line.
func notFound(err error, what, id, hint string) error {
	if !client.IsNotFound(err) {
		return err
	}
	return missing(what, id, hint, err)
}

// missing is a thing that there is not, as err says if it does.
func missing(what, id, hint string, err error) error {
	return &Error{Exit: ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("there is no %s %q", what, id), Hint: hint, err: err}
}

func newEvalStatusCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status ID",
		Short:   "Describe an evaluation: what made it, what it made, what it placed",
		Example: "  cede eval status 4f1c",
		Args:    arguments(1, 1, "one evaluation"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		e, err := c.findEval(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		allocs, _, err := c.client.Evaluations().Allocations(ctx, e.ID, c.query())
		if err != nil {
			return document{}, err
		}
		v := struct {
			*client.Evaluation
			Allocations []*client.AllocationStub
		}{e, allocs}
		return document{data: v, names: []string{e.ID}, page: func(p page) {
			evalFacts(p, env, e)
			related(p, env, e)
			if len(allocs) > 0 {
				p.title("Allocations")
				p.allocTable(env, allocs, false)
			}
			explainEval(p, e)
		}}, nil
	})
}

func evalFacts(p page, env *Env, e *client.Evaluation) {
	wait := ""
	if e.WaitUntil != nil && !e.WaitUntil.IsZero() {
		wait = e.WaitUntil.UTC().Format(time.RFC3339)
	}
	p.facts("id", e.ID, "job", e.JobID, "namespace", e.Namespace, "type", e.Type, "priority", fmt.Sprint(e.Priority),
		"triggered by", e.TriggeredBy, "status", e.Status, "description", e.StatusDescription, "waits until", wait,
		"created", env.when(e.CreateTime), "changed", env.when(e.ModifyTime), "superseded by", e.SupersededBy)
}

// related lists the evaluations before and after one.
func related(p page, env *Env, e *client.Evaluation) {
	if len(e.RelatedEvals) == 0 {
		return
	}
	p.title("Related")
	t := columns("EVAL ID", "TRIGGERED BY", "STATUS", "AGE>", "DESCRIPTION")
	for _, r := range e.RelatedEvals {
		t.Cells(plain(p.id(r.ID)), plain(r.TriggeredBy), stated(r.Status), plain(env.ago(r.CreateTime)), plain(r.StatusDescription))
	}
	p.table(t)
}

// explainEval says why things have no place.
func explainEval(p page, e *client.Evaluation) {
	if len(e.FailedTGAllocs) == 0 {
		return
	}
	p.title("Without a place")
	for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
		explainGroup(p, name, e.QueuedAllocations[name], e.FailedTGAllocs[name])
	}
}

func newEvalExplainCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say why an evaluation found no place for something, node by node",
		Long: `Say why an evaluation found no place for something: how many nodes lacked what,
which rules excluded nodes, and why evicting lower-priority work does not help.
An evaluation whose job was placed since then says so.`,
		Example: "  cede eval explain 4f1c\n  cede eval explain 4f1c -o json",
		Args:    arguments(1, 1, "one evaluation"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		e, err := c.findEval(ctx, args[0])
		for followed := 0; err == nil && e.SupersededBy != "" && len(e.FailedTGAllocs) == 0 && followed < 100; followed++ {
			e, err = c.findEval(ctx, e.SupersededBy) // what took its place knows
		}
		if err != nil {
			return document{}, err
		}
		return document{data: e, names: []string{e.ID}, page: func(p page) {
			p.printf("Evaluation %s of job %s is %s", p.id(e.ID), e.JobID, e.Status)
			if e.StatusDescription != "" {
				p.printf(": %s", e.StatusDescription)
			}
			p.printf("\n")
			switch {
			case len(e.FailedTGAllocs) > 0:
				explainEval(p, e)
			case e.Status == "complete":
				p.printf("It found a place for everything that it was asked for.\n")
			case e.Status == "pending":
				p.printf("It was not looked at yet; `cede operator broker status` shows what waits.\n")
			}
		}}, nil
	})
}

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobStatusCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [ID]", Aliases: []string{"list", "ls"},
		Short: "List jobs, or describe one: its allocations, and what waits",
		Long: `List jobs, or describe one: how many instances of each group run, which
allocations it has, and why instances without a place have none.`,
		Example: "  cede job status\n  cede job status web\n  cede job status web -t '{{range .Allocations}}{{.NodeID}} {{end}}'",
		Args:    arguments(0, 1, "one job"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		if len(args) == 0 {
			return c.jobList(ctx)
		}
		v, err := c.jobView(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		return document{data: v, names: []string{v.Job.ID}, page: v.page}, nil
	})
}

func (c *connection) jobList(ctx context.Context) (document, error) {
	list, err := all(ctx, c.query(), c.client.Jobs().List)
	if err != nil {
		return document{}, err
	}
	return document{data: list, names: namesOf(list, func(j *client.JobStub) string { return j.ID }), page: func(p page) {
		titles := []string{"ID", "TYPE", "PRIORITY>", "STATUS", "RUNNING>", "WAITING>", "AGE>"}
		namespaces := p.wide || c.namespaceFlag() == "*"
		if namespaces {
			titles = append(titles, "NAMESPACE")
		}
		if p.wide {
			titles = append(titles, "CLASS", "VERSION>", "DATACENTERS", "META")
		}
		t := columns(titles...)
		for _, j := range list {
			running, waiting := 0, 0
			if j.JobSummary != nil {
				for _, g := range j.JobSummary.Summary {
					running, waiting = running+g.Running+g.Starting, waiting+g.Queued
				}
			}
			status := j.Status
			if j.Stop {
				status += " (stopped)"
			}
			cells := []term.Cell{
				plain(j.ID), plain(j.Type), plain(fmt.Sprint(j.Priority)),
				{Text: status, Look: look(j.Status)},
				plain(fmt.Sprint(running)), plain(fmt.Sprint(waiting)), plain(c.env.ago(j.SubmitTime)),
			}
			if namespaces {
				cells = append(cells, plain(j.Namespace))
			}
			if p.wide {
				cells = append(cells, plain(j.PriorityClass), plain(fmt.Sprint(j.Version)), plain(strings.Join(j.Datacenters, ",")), plain(texts(j.Meta)))
			}
			t.Cells(cells...)
		}
		p.list(t, "jobs", "cede job run FILE runs one")
	}}, nil
}

// lister is a call that answers a page of a list.
type lister[T any] = func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)

// all reads every page of a list.
func all[T any](ctx context.Context, q *client.QueryOptions, get lister[T]) ([]T, error) {
	list := []T{}
	err := client.AllPages(ctx, q, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		page, meta, err := get(ctx, q)
		list = append(list, page...)
		return meta, err
	})
	return list, interruptedBy(ctx, err)
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = name(e)
	}
	return names
}

// list prints a table, or that there is nothing to print.
func (p page) list(t *term.Table, what, hint string) {
	if t.Len() > 0 || p.bare {
		p.table(t)
		return
	}
	p.printf("There are no %s; %s\n", what, hint)
}

// jobView is a job and what became of it.
type jobView struct {
	Job         *client.Job
	Summary     map[string]client.TaskGroupSummary
	Allocations []*client.AllocationStub
	Evaluations []*client.Evaluation

	env *Env
}

func (c *connection) jobView(ctx context.Context, id string) (*jobView, error) {
	job, err := c.findJob(ctx, id)
	if err != nil {
		return nil, err
	}
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	v := &jobView{Job: job, env: c.env}
	q := &client.QueryOptions{Namespace: job.Namespace}
	summary, _, err := api.Jobs().Summary(ctx, job.ID, q)
	if err == nil {
		v.Summary = summary.Summary
		v.Allocations, _, err = api.Jobs().Allocations(ctx, job.ID, q)
	}
	if err == nil {
		v.Evaluations, _, err = api.Jobs().Evaluations(ctx, job.ID, q)
	}
	return v, interruptedBy(ctx, err)
}

func (v *jobView) page(p page) {
	j := v.Job
	priority := ""
	if j.Priority != nil {
		priority = fmt.Sprint(*j.Priority)
	}
	if j.PriorityClass != "" {
		priority += " (" + j.PriorityClass + ")"
	}
	status := j.Status
	if j.Stop {
		status += " (stopped)"
	}
	preemption := ""
	if j.PreemptionPolicy == "Never" {
		preemption = "evicts nobody"
	}
	if j.Preemptible != nil && !*j.Preemptible {
		preemption = strings.TrimPrefix(preemption+", is never evicted", ", ")
	}
	p.facts("id", j.ID, "name", j.Name, "namespace", j.Namespace, "type", j.Type, "priority", priority, "preemption", preemption,
		"policy", j.Policy, "datacenters", strings.Join(j.Datacenters, ", "), "status", status, "version", fmt.Sprint(j.Version),
		"submitted", v.env.when(j.SubmitTime), "meta", texts(j.Meta), "waits", v.rechecks())
	p.title("Groups")
	groupTable(p, v.Summary)
	if e := v.waiting(); e != nil {
		p.title("Without a place")
		for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
			explainGroup(p, name, e.QueuedAllocations[name], e.FailedTGAllocs[name])
		}
	}
	if shown := v.allocations(p.wide); len(shown) > 0 {
		p.title("Allocations")
		p.allocTable(v.env, shown, true)
		p.more(len(v.Allocations), len(shown))
	}
	if p.wide && len(v.Evaluations) > 0 {
		p.title("Evaluations")
		p.evalTable(v.env, v.Evaluations)
	}
}

// rechecks is why instances that failed are not there, and when they will be.
func (v *jobView) rechecks() string {
	var said []string
	for _, e := range v.Evaluations {
		if e.Status == "pending" && e.WaitUntil != nil && e.StatusDescription != "" {
			said = append(said, e.StatusDescription)
		}
	}
	slices.Sort(said)
	return strings.Join(slices.Compact(said), "; ")
}

// waiting is the newest evaluation that found no place for something, if that is
// still so.
func (v *jobView) waiting() *client.Evaluation {
	var newest *client.Evaluation
	for _, e := range v.Evaluations {
		if e.Status != "cancelled" && (newest == nil || e.ModifyIndex > newest.ModifyIndex) {
			newest = e
		}
	}
	if newest == nil || len(newest.FailedTGAllocs) == 0 {
		return nil
	}
	return newest
}

// allocations are those that people want to see: what lives first, the newest
// first.
func (v *jobView) allocations(wide bool) []*client.AllocationStub {
	list := slices.Clone(v.Allocations)
	dead := func(a *client.AllocationStub) bool {
		return !lives(a.ClientStatus)
	}
	slices.SortStableFunc(list, func(a, b *client.AllocationStub) int {
		switch {
		case dead(a) != dead(b) && dead(a):
			return 1
		case dead(a) != dead(b):
			return -1
		case a.CreateIndex != b.CreateIndex && a.CreateIndex > b.CreateIndex:
			return -1
		case a.CreateIndex != b.CreateIndex:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	if len(list) > maxRows && !wide {
		list = list[:maxRows]
	}
	return list
}

// groupTable counts groups' allocations. Few are ever kept for a node that is silent,
// so that has its column where there are some.
func groupTable(p page, summary map[string]client.TaskGroupSummary) {
	unknown := 0
	for _, g := range summary {
		unknown += g.Unknown
	}
	titles := []string{"GROUP", "WAITING>", "STARTING>", "RUNNING>", "UNKNOWN>", "COMPLETE>", "FAILED>", "LOST>", "EVICTED>"}
	const at = 4
	if unknown == 0 {
		titles = slices.Delete(titles, at, at+1)
	}
	t := columns(titles...)
	for _, name := range slices.Sorted(maps.Keys(summary)) {
		g := summary[name]
		row := []string{name}
		for _, n := range []int{g.Queued, g.Starting, g.Running, g.Unknown, g.Complete, g.Failed, g.Lost, g.Evicted} {
			row = append(row, fmt.Sprint(n))
		}
		if unknown == 0 {
			row = slices.Delete(row, at, at+1)
		}
		t.Row(row...)
	}
	p.table(t)
}

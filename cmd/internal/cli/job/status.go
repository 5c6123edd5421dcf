package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobStatusCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [ID]", Aliases: []string{"list", "ls"},
		Short: "List jobs, or describe one job",
		Long: `List jobs, or describe one: how many instances of each group run, its allocations, and
why pending instances could not be placed.`,
		Example: "  cede job status\n  cede job status web\n  cede job status web -t '{{range .Allocations}}{{.NodeID}} {{end}}'",
		Args:    cmdutil.PositionalArgs(0, 1, "one job"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		if len(args) == 0 {
			return jobListDocument(ctx, c)
		}
		v, err := getJobView(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: v, Names: []string{v.Job.ID}, Page: v.page}, nil
	})
}

func jobListDocument(ctx context.Context, c *cmdutil.Connection) (cmdutil.Document, error) {
	list, err := cmdutil.ListAll(ctx, c.QueryOptions(), c.Client.Jobs().List)
	if err != nil {
		return cmdutil.Document{}, err
	}
	return cmdutil.Document{Data: list, Names: cmdutil.NamesOf(list, func(j *client.JobStub) string { return j.ID }), Page: func(p cmdutil.Page) {
		titles := []string{"ID", "TYPE", "PRIORITY>", "STATUS", "RUNNING>", "WAITING>", "AGE>"}
		namespaces := p.Wide || c.RequestedNamespace() == "*"
		if namespaces {
			titles = append(titles, "NAMESPACE")
		}
		if p.Wide {
			titles = append(titles, "CLASS", "VERSION>", "DATACENTERS", "META")
		}
		t := cmdutil.NewTable(titles...)
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
				cmdutil.Cell(j.ID), cmdutil.Cell(j.Type), cmdutil.Cell(fmt.Sprint(j.Priority)),
				{Text: status, Look: cmdutil.StatusEmphasis(j.Status)},
				cmdutil.Cell(fmt.Sprint(running)), cmdutil.Cell(fmt.Sprint(waiting)), cmdutil.Cell(c.Env.Age(j.SubmitTime)),
			}
			if namespaces {
				cells = append(cells, cmdutil.Cell(j.Namespace))
			}
			if p.Wide {
				cells = append(cells, cmdutil.Cell(j.PriorityClass), cmdutil.Cell(fmt.Sprint(j.Version)), cmdutil.Cell(strings.Join(j.Datacenters, ",")), cmdutil.Cell(cmdutil.FormatLabels(j.Meta)))
			}
			t.Cells(cells...)
		}
		p.List(t, "jobs", "cede job run FILE runs one")
	}}, nil
}

// jobView is a job with its allocations and evaluations.
type jobView struct {
	Job         *client.Job
	Summary     map[string]client.TaskGroupSummary
	Allocations []*client.AllocationStub
	Evaluations []*client.Evaluation

	env *cmdutil.Env
}

func getJobView(ctx context.Context, c *cmdutil.Connection, id string) (*jobView, error) {
	job, err := apiview.FindJob(ctx, c, id)
	if err != nil {
		return nil, err
	}
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	v := &jobView{Job: job, env: c.Env}
	q := &client.QueryOptions{Namespace: job.Namespace}
	summary, _, err := api.Jobs().Summary(ctx, job.ID, q)
	if err == nil {
		v.Summary = summary.Summary
		v.Allocations, _, err = api.Jobs().Allocations(ctx, job.ID, q)
	}
	if err == nil {
		v.Evaluations, _, err = api.Jobs().Evaluations(ctx, job.ID, q)
	}
	return v, cmdutil.InterruptError(ctx, err)
}

func (v *jobView) page(p cmdutil.Page) {
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
		preemption = "never evicts"
	}
	if j.Preemptible != nil && !*j.Preemptible {
		preemption = strings.TrimPrefix(preemption+", not preemptible", ", ")
	}
	p.Properties("id", j.ID, "name", j.Name, "namespace", j.Namespace, "type", j.Type, "priority", priority, "preemption", preemption,
		"policy", j.Policy, "datacenters", strings.Join(j.Datacenters, ", "), "status", status, "version", fmt.Sprint(j.Version),
		"submitted", v.env.TimeAndAge(j.SubmitTime), "meta", cmdutil.FormatLabels(j.Meta), "pending", v.rechecks())
	p.Title("Groups")
	groupTable(p, v.Summary)
	if e := v.waiting(); e != nil {
		p.Title("Unplaced")
		for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
			apiview.ExplainGroup(p, name, e.QueuedAllocations[name], e.FailedTGAllocs[name])
		}
	}
	if shown := v.allocations(p.Wide); len(shown) > 0 {
		p.Title("Allocations")
		apiview.AllocTable(p, v.env, shown, true)
		p.Omitted(len(v.Allocations), len(shown))
	}
	if p.Wide && len(v.Evaluations) > 0 {
		p.Title("Evaluations")
		apiview.EvalTable(p, v.env, v.Evaluations)
	}
}

// rechecks returns why failed instances are not running, and when they are retried.
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

// waiting returns the newest evaluation with unplaced allocations, if they are still
// unplaced.
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

// allocations returns the allocations to print: live ones first, then newest first.
func (v *jobView) allocations(wide bool) []*client.AllocationStub {
	list := slices.Clone(v.Allocations)
	dead := func(a *client.AllocationStub) bool {
		return !apiview.IsLive(a.ClientStatus)
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
	if len(list) > cmdutil.MaxRows && !wide {
		list = list[:cmdutil.MaxRows]
	}
	return list
}

// groupTable counts allocations by group. The column for unknown ones is only present if
// there are any.
func groupTable(p cmdutil.Page, summary map[string]client.TaskGroupSummary) {
	unknown := 0
	for _, g := range summary {
		unknown += g.Unknown
	}
	titles := []string{"GROUP", "WAITING>", "STARTING>", "RUNNING>", "UNKNOWN>", "COMPLETE>", "FAILED>", "LOST>", "EVICTED>"}
	const at = 4
	if unknown == 0 {
		titles = slices.Delete(titles, at, at+1)
	}
	t := cmdutil.NewTable(titles...)
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
	p.Table(t)
}

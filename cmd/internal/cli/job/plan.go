package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobPlanCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what running a job would place and evict",
		Long: `Show what running a job would do: which fields change, what is placed on which node,
which allocations are evicted, and which instances could not be placed and why.

Nothing is changed. The plan returns a token, with which cede job run executes exactly
this plan. It is refused with exit code 5 if the cluster has changed so that the plan
no longer holds, or if another policy has become active. Instances that the plan does
not place are placed later if capacity becomes free, without evictions.`,
		Example: `  cede job plan web.hcl
  cede job plan web.hcl -o wide
  cede job plan web.hcl -t '{{.PlanToken}}' > plan.token`,
		Args: cmdutil.PositionalArgs(1, 1, "one job file"),
	}
	out, conn, file := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env), jobFileFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		read, err := file.read(args[0], conn.RequestedNamespace())
		if err != nil {
			return err
		}
		v, err := requestPlan(cmd.Context(), conn, read)
		if err != nil {
			return err
		}
		v.file = file.words(args[0])
		if v.Warnings != "" {
			env.Warn(v.Warnings)
		}
		return out.Show(cmdutil.Document{Data: v, Names: []string{v.JobID}, Page: v.page})
	}
	return cmd
}

// planView is the printed form of a plan.
type planView struct {
	JobID     string
	Namespace string
	*client.JobPlanResponse
	Changes []change `json:",omitempty"` // of the job's fields

	file string // with its variables, as arguments
	env  *cmdutil.Env

	starts bool // the job is stopped, and would be started
}

// requestPlan requests a plan, and the current version of the job to compare with.
func requestPlan(ctx context.Context, c *cmdutil.Connection, read *readJob) (*planView, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	w := &client.WriteOptions{Namespace: read.model.Namespace}
	done := c.Env.Waiting("planning " + read.model.ID)
	answer, err := api.Jobs().Plan(ctx, read.job, w)
	done()
	if err != nil {
		return nil, cmdutil.InterruptError(ctx, err)
	}
	v := &planView{JobID: read.model.ID, Namespace: read.model.Namespace, JobPlanResponse: answer, env: c.Env}
	if answer.NewJob {
		return v, nil
	}
	before, _, err := api.Jobs().Get(ctx, read.model.ID, &client.QueryOptions{Namespace: read.model.Namespace})
	switch {
	case client.IsNotFound(err):
		v.NewJob = true
	case err != nil:
		return nil, cmdutil.InterruptError(ctx, err)
	default:
		after := read.full()
		after.Priority = cmp.Or(after.Priority, before.Priority)
		after.PreemptionPolicy = cmp.Or(after.PreemptionPolicy, before.PreemptionPolicy)
		after.Name = cmp.Or(after.Name, before.Name)
		after.Stop = false // running a job starts it again if it was stopped
		v.starts = before.Stop
		v.Changes = jobChanges(before, after)
	}
	return v, nil
}

func (v *planView) page(p cmdutil.Page) {
	v.heading(p)
	v.groups(p)
	if len(v.Place) > 0 {
		p.Title("Placements")
		v.placements(p)
	}
	if len(v.Stop) > 0 {
		p.Title("Stopped")
		apiview.AllocTable(p, v.env, v.Stop, true)
	}
	if len(v.Move) > 0 {
		p.Title("Moved to make room")
		v.moves(p)
	}
	if evicted := v.preempted(); len(evicted) > 0 {
		p.Title("Preemptions")
		preemptions(p, evicted)
	}
	v.unplaced(p)
	v.next(p)
}

func (v *planView) heading(p cmdutil.Page) {
	state := "no change"
	switch {
	case v.NewJob:
		state = "new"
	case v.starts && len(v.Changes) == 1:
		state = "stopped, will start"
	case v.starts:
		state = "stopped, will start with " + cmdutil.Count(len(v.Changes)-1, "change", "changes")
	case len(v.Changes) > 0:
		state = cmdutil.Count(len(v.Changes), "change", "changes")
	}
	p.Printf("Job %s in namespace %s: %s\n", v.JobID, v.Namespace, state)
	for _, c := range v.Changes {
		p.Printf("  %s\n", c)
	}
}

// groups prints the changes of each group.
func (v *planView) groups(p cmdutil.Page) {
	if v.Annotations == nil || len(v.Annotations.DesiredTGUpdates) == 0 {
		return
	}
	p.Title("Groups")
	t := cmdutil.NewTable("GROUP", "PLACE>", "KEEP>", "STOP>", "MOVE>", "UPDATE>", "REPLACE>", "EVICT>", "UNPLACED>")
	for _, name := range slices.Sorted(maps.Keys(v.Annotations.DesiredTGUpdates)) {
		u := v.Annotations.DesiredTGUpdates[name]
		t.Row(name, fmt.Sprint(u.Place), fmt.Sprint(u.Ignore), fmt.Sprint(u.Stop), fmt.Sprint(u.Migrate),
			fmt.Sprint(u.InPlaceUpdate), fmt.Sprint(u.DestructiveUpdate), fmt.Sprint(u.Preemptions), fmt.Sprint(v.Unplaced[name]))
	}
	p.Table(t)
}

func (v *planView) placements(p cmdutil.Page) {
	titles := []string{"GROUP", "NODE", "EVICTS"}
	if p.Wide {
		titles = append(titles, "ALLOC ID", "NAME", "RESOURCES")
	}
	t := cmdutil.NewTable(titles...)
	for i, a := range v.Place {
		if i == cmdutil.MaxRows && !p.Wide {
			break
		}
		row := []string{a.TaskGroup, apiview.AllocNode(p, a), p.IDs(a.PreemptedAllocations)}
		if p.Wide {
			row = append(row, a.ID, a.Name, cmdutil.FormatResources(a.ResourceUse))
		}
		t.Row(row...)
	}
	p.Table(t)
	p.Omitted(len(v.Place), t.Len())
}

// moves prints the allocations of other jobs that are moved.
func (v *planView) moves(p cmdutil.Page) {
	t := cmdutil.NewTable("ALLOC ID", "JOB ID", "TASK GROUP", "TO NODE")
	for _, a := range v.Move {
		t.Row(p.ID(a.PreviousAllocation), a.JobID, a.TaskGroup, apiview.AllocNode(p, a))
	}
	p.Table(t)
}

func (v *planView) preempted() []*client.AllocationStub {
	if v.Annotations == nil {
		return nil
	}
	return v.Annotations.PreemptedAllocs
}

// preemptions prints the allocations that are evicted.
func preemptions(p cmdutil.Page, list []*client.AllocationStub) {
	titles := []string{"ALLOC ID", "JOB ID", "TASK GROUP"}
	if p.Wide {
		titles = append(titles, "NAMESPACE", "PRIORITY>", "NODE", "FOR", "POLICY")
	}
	t := cmdutil.NewTable(titles...)
	for i, a := range list {
		if i == cmdutil.MaxRows && !p.Wide {
			break
		}
		row := []string{p.ID(a.ID), a.JobID, a.TaskGroup}
		if p.Wide {
			row = append(row, a.Namespace, fmt.Sprint(a.Priority), a.NodeID, a.PreemptedByAllocation, a.PolicyVersion)
		}
		t.Row(row...)
	}
	p.Table(t)
	p.Omitted(len(list), t.Len())
}

func (v *planView) unplaced(p cmdutil.Page) {
	if len(v.FailedTGAllocs) == 0 {
		return
	}
	p.Title("Unplaced")
	for _, name := range slices.Sorted(maps.Keys(v.FailedTGAllocs)) {
		apiview.ExplainGroup(p, name, v.Unplaced[name], v.FailedTGAllocs[name])
	}
}

// idle reports whether the plan does nothing except leave instances pending.
func (v *planView) idle() bool {
	return len(v.Place) == 0 && len(v.Stop) == 0 && len(v.preempted()) == 0 && len(v.FailedTGAllocs) > 0
}

// next prints how to run the plan.
func (v *planView) next(p cmdutil.Page) {
	if p.NoHeaders {
		return
	}
	if v.PlanToken == "" {
		p.Printf("\nNo changes.\n")
		return
	}
	namespace := ""
	if v.Namespace != "default" {
		namespace = " --namespace " + v.Namespace
	}
	until := ""
	if !v.Expires.IsZero() {
		until = ", valid until " + v.Expires.UTC().Format("15:04:05 MST")
	}
	if v.idle() {
		p.Printf("\nThis plan places and evicts nothing: if it is run, the job is registered and waits for free capacity.\n")
	}
	p.Printf("\nPlan token%s:\n  %s\n", until, v.PlanToken)
	command := "cede job run " + v.file + namespace
	if len(v.PlanToken) <= 100 {
		p.Printf("\nTo run exactly this plan:\n  %s --plan %s\n", command, v.PlanToken)
		return
	}
	p.Printf("\nTo run exactly this plan:\n  %s --plan TOKEN\nor store the token of a new plan in a file:\n", command)
	p.Printf("  cede job plan %s%s -t '{{.PlanToken}}' > plan.token\n  %s --plan @plan.token\n", v.file, namespace, command)
}

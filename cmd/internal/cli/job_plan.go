package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobPlanCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what running a job would do, and whom it would evict",
		Long: `Show what running a job would do: what changes of it, what is placed where, whom
it would evict, and what would find no place and why. Nothing is done.

The plan's token makes cede job run do exactly this, or nothing: it exits 5 when
the cluster has changed so that the plan no longer holds, or when another policy
decides by then who is evicted. What the plan leaves without a place takes free room
later, and evicts nobody: whoever runs it evicts those that it shows and no others.`,
		Example: `  cede job plan web.hcl
  cede job plan web.hcl -o wide
  cede job plan web.hcl -t '{{.PlanToken}}' > plan.token`,
		Args: arguments(1, 1, "one job file"),
	}
	out, conn, file := outputFlags(cmd, env), serverFlags(cmd, env), jobFileFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		read, err := file.read(args[0], conn.namespaceFlag())
		if err != nil {
			return err
		}
		v, err := conn.plan(cmd.Context(), read)
		if err != nil {
			return err
		}
		v.file = file.words(args[0])
		if v.Warnings != "" {
			env.warn(v.Warnings)
		}
		return out.show(document{data: v, names: []string{v.JobID}, page: v.page})
	}
	return cmd
}

// namespaceFlag is the namespace that was asked for, by flag or environment.
func (c *connection) namespaceFlag() string {
	return cmp.Or(c.namespace, c.env.Getenv("CEDE_NAMESPACE"))
}

// planView is a plan as it is shown.
type planView struct {
	JobID     string
	Namespace string
	*client.JobPlanResponse
	Changes []change `json:",omitempty"` // of what the job says

	file string // with its variables, for a command line
	env  *Env

	starts bool // it is stopped, and would run again
}

// plan asks for a plan, and what there is to compare the job with.
func (c *connection) plan(ctx context.Context, read *readJob) (*planView, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	w := &client.WriteOptions{Namespace: read.model.Namespace}
	answer, err := api.Jobs().Plan(ctx, read.job, w)
	if err != nil {
		return nil, interruptedBy(ctx, err)
	}
	v := &planView{JobID: read.model.ID, Namespace: read.model.Namespace, JobPlanResponse: answer, env: c.env}
	if answer.NewJob {
		return v, nil
	}
	before, _, err := api.Jobs().Get(ctx, read.model.ID, &client.QueryOptions{Namespace: read.model.Namespace})
	switch {
	case client.IsNotFound(err):
		v.NewJob = true
	case err != nil:
		return nil, interruptedBy(ctx, err)
	default:
		after := read.full()
		after.Priority = cmp.Or(after.Priority, before.Priority)
		after.PreemptionPolicy = cmp.Or(after.PreemptionPolicy, before.PreemptionPolicy)
		after.Name = cmp.Or(after.Name, before.Name)
		after.Stop = false // whoever runs a job starts it
		v.starts = before.Stop
		v.Changes = jobChanges(before, after)
	}
	return v, nil
}

func (v *planView) page(p page) {
	v.heading(p)
	v.groups(p)
	if len(v.Place) > 0 {
		p.title("Placements")
		v.placements(p)
	}
	if len(v.Stop) > 0 {
		p.title("Stopped")
		p.allocTable(v.env, v.Stop, true)
	}
	if evicted := v.preempted(); len(evicted) > 0 {
		p.title("Preemptions")
		preemptions(p, evicted)
	}
	v.unplaced(p)
	v.next(p)
}

func (v *planView) heading(p page) {
	state := "no change"
	switch {
	case v.NewJob:
		state = "new"
	case v.starts && len(v.Changes) == 1:
		state = "stopped, and starts again"
	case v.starts:
		state = "stopped, and starts again with " + count(len(v.Changes)-1, "change", "changes")
	case len(v.Changes) > 0:
		state = count(len(v.Changes), "change", "changes")
	}
	p.printf("Job %s in namespace %s: %s\n", v.JobID, v.Namespace, state)
	for _, c := range v.Changes {
		p.printf("  %s\n", c)
	}
}

// groups says what becomes of each group.
func (v *planView) groups(p page) {
	if v.Annotations == nil || len(v.Annotations.DesiredTGUpdates) == 0 {
		return
	}
	p.title("Groups")
	t := columns("GROUP", "PLACE>", "KEEP>", "STOP>", "MOVE>", "UPDATE>", "REPLACE>", "EVICT>", "UNPLACED>")
	for _, name := range slices.Sorted(maps.Keys(v.Annotations.DesiredTGUpdates)) {
		u := v.Annotations.DesiredTGUpdates[name]
		t.Row(name, fmt.Sprint(u.Place), fmt.Sprint(u.Ignore), fmt.Sprint(u.Stop), fmt.Sprint(u.Migrate),
			fmt.Sprint(u.InPlaceUpdate), fmt.Sprint(u.DestructiveUpdate), fmt.Sprint(u.Preemptions), fmt.Sprint(v.Unplaced[name]))
	}
	p.table(t)
}

// maxRows is how many rows of a plan a table shows.
const maxRows = 20

func (v *planView) placements(p page) {
	titles := []string{"GROUP", "NODE", "EVICTS"}
	if p.wide {
		titles = append(titles, "ALLOC ID", "NAME", "RESOURCES")
	}
	t := columns(titles...)
	for i, a := range v.Place {
		if i == maxRows && !p.wide {
			break
		}
		row := []string{a.TaskGroup, p.node(a), p.ids(a.PreemptedAllocations)}
		if p.wide {
			row = append(row, a.ID, a.Name, amounts(a.ResourceUse))
		}
		t.Row(row...)
	}
	p.table(t)
	p.more(len(v.Place), t.Len())
}

// more says how many rows were left out.
func (p page) more(all, shown int) {
	if all > shown {
		p.printf("  and %s more; -o wide shows all\n", thousands(all-shown))
	}
}

func (v *planView) preempted() []*client.AllocationStub {
	if v.Annotations == nil {
		return nil
	}
	return v.Annotations.PreemptedAllocs
}

// preemptions lists who is evicted.
func preemptions(p page, list []*client.AllocationStub) {
	titles := []string{"ALLOC ID", "JOB ID", "TASK GROUP"}
	if p.wide {
		titles = append(titles, "NAMESPACE", "PRIORITY>", "NODE", "FOR", "POLICY")
	}
	t := columns(titles...)
	for i, a := range list {
		if i == maxRows && !p.wide {
			break
		}
		row := []string{p.id(a.ID), a.JobID, a.TaskGroup}
		if p.wide {
			row = append(row, a.Namespace, fmt.Sprint(a.Priority), a.NodeID, a.PreemptedByAllocation, a.PolicyVersion)
		}
		t.Row(row...)
	}
	p.table(t)
	p.more(len(list), t.Len())
}

func (v *planView) unplaced(p page) {
	if len(v.FailedTGAllocs) == 0 {
		return
	}
	p.title("Without a place")
	for _, name := range slices.Sorted(maps.Keys(v.FailedTGAllocs)) {
		explainGroup(p, name, v.Unplaced[name], v.FailedTGAllocs[name])
	}
}

// idle is whether all that the plan does is to have the job wait.
func (v *planView) idle() bool {
	return len(v.Place) == 0 && len(v.Stop) == 0 && len(v.preempted()) == 0 && len(v.FailedTGAllocs) > 0
}

// next says how to carry the plan out.
func (v *planView) next(p page) {
	if p.bare {
		return
	}
	if v.PlanToken == "" {
		p.printf("\nThere is nothing to do.\n")
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
		p.printf("\nThis plan places nothing and evicts nobody: run, the job is registered, and waits for free room.\n")
	}
	p.printf("\nPlan token%s:\n  %s\n", until, v.PlanToken)
	command := "cede job run " + v.file + namespace
	if len(v.PlanToken) <= 100 {
		p.printf("\nRun exactly this plan with\n  %s --plan %s\n", command, v.PlanToken)
		return
	}
	p.printf("\nRun exactly this plan with\n  %s --plan TOKEN\nor keep the token of the next one in a file:\n", command)
	p.printf("  cede job plan %s%s -t '{{.PlanToken}}' > plan.token\n  %s --plan @plan.token\n", v.file, namespace, command)
}

// explainGroup says why instances of a group found no place, node by node.
func explainGroup(p page, name string, n int, m *client.AllocationMetric) {
	indent := "  "
	if p.bare {
		indent = ""
	}
	missing := ""
	if n > 0 {
		missing = " (" + count(n, "instance", "instances") + ")"
	}
	p.printf("%s%s%s: %s\n", indent, name, missing, cmp.Or(m.Explanation, "no node was suitable"))
	reasons := columns("NODES>", "WHY")
	for _, part := range []struct {
		words  string
		counts map[string]int
	}{
		{"lack %s", m.DimensionExhausted}, {"%s", m.NotReady}, {"excluded by %s", m.ConstraintFiltered}, {"eviction does not help: %s", m.Preemption},
	} {
		keys := slices.SortedFunc(maps.Keys(part.counts), func(a, b string) int {
			return cmp.Or(cmp.Compare(part.counts[b], part.counts[a]), strings.Compare(a, b))
		})
		for _, k := range keys {
			reasons.Row(fmt.Sprint(part.counts[k]), fmt.Sprintf(part.words, k))
		}
	}
	if m.NoEviction != "" {
		reasons.Row("all", "nobody is evicted: "+remedied(m.NoEviction))
	}
	if reasons.Len() > 0 {
		p.table(reasons)
	}
	if len(m.Samples) == 0 {
		return
	}
	samples := columns("NODE", "WHY NOT")
	for i, s := range m.Samples {
		if i == maxRows && !p.wide {
			break
		}
		samples.Row(p.id(s.NodeID), s.Reason)
	}
	p.table(samples)
}

// preemptionOff is how a server says that preemption is off for a type of job, or
// for bindings.
var preemptionOff = regexp.MustCompile(`^preemption is off for (?:([a-z]+) jobs|(binding)s)$`)

// heldBack is how a server says that what a plan left without a place evicts nobody.
const heldBack = "the job was run by a plan that did not show whom this would evict"

// remedied is why nobody is evicted, with what to do about it where that is a switch.
func remedied(why string) string {
	if why == heldBack {
		return why + "; cede job plan shows it now"
	}
	m := preemptionOff.FindStringSubmatch(why)
	if m == nil {
		return why
	}
	return why + "; switch it on: cede operator scheduler set --preempt-" + m[1] + m[2]
}

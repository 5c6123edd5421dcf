package counterfactual_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A job that is registered with the priority of a level evicts the allocations of that level,
// and one of the priority just below evicts those of the level before. No state is changed.
func TestNextOnNode_EqualsRegistrations(t *testing.T) {
	t.Parallel()
	for name, set := range policies(t) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, uint64(len(name))))
			levels, cases := 0, soak.Count(15, 400)
			for range cases {
				kind := []caseKind{plainCase, wholeCase}[r.IntN(2)]
				c := drawCase(r, set, kind)
				f, err := counterfactual.NextOnNode(t.Context(), c, "n0")
				must(t, err)
				if f.Evaluations > counterfactual.MaxEvaluations || f.Reason == "" && f.Resource != "cpu" {
					t.Fatalf("%+v", f)
				}
				var before []string
				for _, l := range f.Levels {
					var ids []string
					for _, v := range l.Victims {
						if v.NodeID != "n0" && kind == plainCase || v.Name == "" { // a whole job has victims elsewhere
							t.Errorf("victim %+v", v)
						}
						ids = append(ids, v.ID)
					}
					if got := evictedBy(t, c, f, l.From); !slices.Equal(got, ids) {
						t.Fatalf("priority %d evicts %v, forecast %v", l.From, got, ids)
					}
					if got := evictedBy(t, c, f, l.From-1); levelsApart(f, l.From) && !slices.Equal(got, before) {
						t.Fatalf("priority %d evicts %v, forecast %v", l.From-1, got, before)
					}
					before = ids
					levels++
				}
			}
			if levels < cases {
				t.Errorf("only %d levels in %d cases", levels, cases)
			}
		})
	}
}

// levelsApart reports whether the priority below a level is not itself that of a level.
func levelsApart(f *counterfactual.Forecast, from int32) bool {
	return !slices.ContainsFunc(f.Levels, func(l counterfactual.Level) bool { return l.From == from-1 })
}

// evictedBy registers a job that runs on n0 only, and returns the IDs of its victims.
func evictedBy(t *testing.T, c counterfactual.Case, f *counterfactual.Forecast, priority int32) []string {
	t.Helper()
	job := coretest.Job("real").Priority(priority).Ask(f.Amount, 0, 0).With(func(g *model.Group) {
		g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: model.OpEqual, Value: "n0"}}
	}).Obj()
	fork := c.Snap.Fork(c.Snap.Index() + 1)
	must(t, fork.JobWriter().Upsert(job))
	out, err := scheduler.New(scheduler.Config{Policies: c.Policies, Forget: true}).Process(coretest.Eval(job), fork.Snapshot(), c.Now)
	must(t, err)
	must(t, out.Fault)
	var ids []string
	for i := range out.Plan.Groups {
		for _, e := range out.Plan.Groups[i].Evictions {
			ids = append(ids, e.AllocID)
		}
	}
	slices.Sort(ids)
	return ids
}

// If nothing can be evicted, the forecast states why.
func TestNextOnNode_StatesWhyNothingIsEvicted(t *testing.T) {
	t.Parallel()
	set := policyP(t, coretest.Policies())
	c := drawCase(rand.New(rand.NewPCG(1, 1)), set, plainCase)
	change := func(f func(*model.SchedulerConfig, *model.Node)) counterfactual.Case {
		fork := c.Snap.Fork(c.Snap.Index() + 1)
		config, node := *c.Snap.Config(), *c.Snap.Node("n0")
		f(&config, &node)
		fork.ConfigWriter().Set(&config)
		must(t, fork.NodeWriter().Upsert(&node))
		changed := c
		changed.Snap = fork.Snapshot()
		return changed
	}
	for want, changed := range map[string]counterfactual.Case{
		"disabled for jobs of every type": change(func(c *model.SchedulerConfig, _ *model.Node) { c.Preemption = [model.EvalTypes]bool{} }),
		"receives no allocations":         change(func(_ *model.SchedulerConfig, n *model.Node) { n.Ineligible = true }),
	} {
		f, err := counterfactual.NextOnNode(t.Context(), changed, "n0")
		if err != nil || len(f.Levels) > 0 || !strings.Contains(f.Reason, want) {
			t.Errorf("%+v, %v, want %q", f, err, want)
		}
	}
	if _, err := counterfactual.NextOnNode(t.Context(), c, "n99"); err == nil {
		t.Error("an unknown node has a forecast")
	}
}

package preempt_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// reader is a policy that reads additional columns, and counts the rows that it is shown.
type reader struct {
	victimPolicy
	also sdk.Columns
	rows *int
}

type victimPolicy interface {
	sdk.Policy
	sdk.VictimSelector
	sdk.OptionScorer
}

func (r reader) Info() sdk.Info {
	info := r.victimPolicy.Info()
	info.Columns |= r.also
	return info
}

func (r reader) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	*r.rows += in.Rows.Len()
	return r.victimPolicy.SelectVictims(in, out)
}

// uniformCluster returns a cluster with few distinct nodes, many of them with the same
// allocations.
func uniformCluster(d source, nodes int) (*state.Snapshot, *model.Group) {
	store := state.New()
	txn := store.Begin(1)
	var jobs []*model.Job
	for i := range 4 {
		jobs = append(jobs, coretest.Job(fmt.Sprintf("j%d", i)).Priority(int32(oneOf(d, 10, 10, 20))).
			Change(func(j *model.Job) {
				j.NonPreemptible = d.IntN(8) == 0
				j.Groups[0].Labels = map[string]string{"app": oneOf(d, "x", "y", "z")}
			}).
			Ask(int64(d.in(1, 3)), int64(d.in(1, 2)), 0).With(func(g *model.Group) { g.MaxParallelEvictions = d.in(0, 2) }).Obj())
		must(txn.JobWriter().Upsert(jobs[i]))
	}
	ask := coretest.Job("preemptor").Priority(50).Ask(int64(d.in(1, 4)), int64(d.in(1, 3)), 0).Count(3).Obj()
	must(txn.JobWriter().Upsert(ask))
	earlier := coretest.Job("preemptor").Priority(10).Ask(jobs[0].Groups[0].Resources["cpu"], jobs[0].Groups[0].Resources["memory"], 0).Obj()
	for i := range nodes {
		id := fmt.Sprintf("n%03d", i)
		held := [2]int64{}
		for k := range oneOf(d, 2, 3) {
			j := oneOf(d, jobs...)
			if d.IntN(16) == 0 {
				j = earlier // of the preemptor's own job: not a candidate
			}
			a := coretest.Running(fmt.Sprintf("%s-%d", id, k), j, 0, i, id)
			a.StartTime = int64(d.IntN(100))
			txn.AllocWriter().Upsert(a)
			held[0], held[1] = held[0]+j.Groups[0].Resources["cpu"], held[1]+j.Groups[0].Resources["memory"]
		}
		spare := oneOf[int64](d, 0, 0, 1)
		must(txn.NodeWriter().Upsert(coretest.Node(id, held[0]+spare, held[1]+spare, 0)))
	}
	for _, app := range []string{"x", "y"} {
		if d.IntN(3) == 0 {
			continue
		}
		txn.BudgetWriter().Upsert(&model.Budget{
			Namespace: model.DefaultNamespace, Name: app, Labels: map[string]string{"app": app}, Strict: d.IntN(2) == 0,
			MinAvailable: &model.Bound{Number: int32(d.IntN(60))},
		})
	}
	return txn.Commit(), ask.Groups[0]
}

// Nodes that a policy cannot distinguish are shown to it once, and get the same result as
// from a policy that reads a column that distinguishes them.
func TestFinder_DuplicatesShareAnswers(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	for name, make := range map[string]func() victimPolicy{
		"default": func() victimPolicy { return rules.New() },
		"nomad":   func() victimPolicy { return nomad.New() },
	} {
		t.Run(name, func(t *testing.T) {
			var rows [2]int
			var versions [2]*policy.Version
			for i, also := range []sdk.Columns{0, sdk.StartColumn} {
				versions[i] = coretest.Version(func() sdk.Policy { return reader{make(), also, &rows[i]} })
			}
			var finders [2]preempt.Finder // reused: retained contents must not change the result
			rapid.Check(t, func(t *rapid.T) {
				snap, group := uniformCluster(drawSource(t), 60)
				var results [2]string
				for i, v := range versions {
					f := &finders[i]
					if err := f.Start(snap, preempt.Request{
						Group: group, Policy: v, Default: coretest.Policies().Default(), Nodes: snap.NodeOrder(), Now: 1000,
					}); err != nil {
						t.Fatal(err)
					}
					results[i] = summary(t, snap, f)
					for k := range snap.NodeOrder() {
						if b := f.BlockingBudget(k); b != nil {
							results[i] += fmt.Sprintf("\n%d: %s", k, b.Name)
						}
					}
					results[i] += updateSummary(t, snap, f, group)
					f.Release()
				}
				if results[0] != results[1] {
					t.Fatalf("with duplicates\n%s\nwithout\n%s", results[0], results[1])
				}
			})
			if 4*rows[0] > 3*rows[1] {
				t.Errorf("policy was shown %d rows of %d: too few duplicates", rows[0], rows[1])
			}
		})
	}
}

// updateSummary places the group on the best node and returns the updated results.
func updateSummary(t tb, snap *state.Snapshot, f *preempt.Finder, group *model.Group) string {
	c, ok, err := f.Best()
	if err != nil || !ok {
		return ""
	}
	txn := snap.Fork(snap.Index() + 1)
	var groups []*model.Group
	for _, v := range c.Victims {
		gone := *v
		gone.Desired = model.DesiredEvict
		txn.AllocWriter().Upsert(&gone)
		groups = append(groups, v.Group)
	}
	txn.AllocWriter().Upsert(coretest.Running("placed", group.Job, 0, 0, snap.NodeAt(c.Pos).ID))
	next := txn.Snapshot()
	if err := f.Update(next, []int32{c.Pos}, groups); err != nil {
		t.Fatal(err)
	}
	return summary(t, next, f)
}

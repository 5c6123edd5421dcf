package planner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Construction (e): 1,000 nodes with 10 allocations each. A plan places one
// allocation of 500/1024/300 on each of k nodes and evicts two there. Only the
// verification is measured; such a job has no placement rules.
func BenchmarkE_PlanVerification(b *testing.B) {
	store := coretest.FilledStore(1000, 10)
	asker := coretest.PreemptingJob(1000).Obj()
	snap := coretest.PutJobs(store, asker)
	for _, k := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", k), func(b *testing.B) {
			plan := evictingPlan(asker, snap.Index(), k)
			var scratch planner.Scratch
			var rules feasible.Verifier
			b.ReportAllocs()
			for b.Loop() {
				v, err := planner.Verify(snap, plan, 0, &rules, &scratch)
				if err != nil || len(v.Committed) != k || len(v.Rejected) > 0 {
					b.Fatalf("committed %d of %d groups, rejected %v, %v", len(v.Committed), k, v.Rejected, err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(k)/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}

func evictingPlan(asker *model.Job, index uint64, k int) *model.Plan {
	plan := &model.Plan{EvalID: "e", Job: asker.Key(), Priority: asker.Priority, SnapshotIndex: index}
	for i := range k {
		a := coretest.Running(fmt.Sprintf("new-%05d", i), asker, 0, i, fmt.Sprintf("n%05d", i))
		a.Client, a.Started = model.ClientPending, false
		g := model.CommitGroup{Placements: []*model.Allocation{a}}
		for slot := range 2 {
			victim := fmt.Sprintf("a%05d-%02d", i, slot)
			a.Preempted = append(a.Preempted, victim)
			g.Evictions = append(g.Evictions, model.Eviction{AllocID: victim, By: a.ID})
		}
		plan.Groups = append(plan.Groups, g)
	}
	return plan
}

// Plans of one placement each through the whole applier, 128 to an entry,
// without the cost of the log.
func BenchmarkApplier_OnePlacementPlans(b *testing.B) {
	const plans = 128
	store := coretest.FilledStore(1000, 5)
	asker := coretest.PreemptingJob(1 << 20).Obj()
	coretest.PutJobs(store, asker)
	base := store.Snapshot()
	batch := make([]*model.Plan, plans)
	for i := range batch {
		a := coretest.Running(fmt.Sprintf("new-%05d", i), asker, 0, i, fmt.Sprintf("n%05d", i*7))
		a.Client, a.Started = model.ClientPending, false
		batch[i] = &model.Plan{
			EvalID: "e", Job: asker.Key(), Priority: asker.Priority, SnapshotIndex: base.Index(),
			Groups: []model.CommitGroup{{Placements: []*model.Allocation{a}}},
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		applier := planner.NewApplier(planner.Config{Store: store, Committer: discard{}})
		applier.Queue().SetEnabled(true)
		for _, p := range batch {
			if _, err := applier.Queue().Enqueue(p); err != nil {
				b.Fatal(err)
			}
		}
		if n, err := applier.Step(context.Background()); n != plans || err != nil {
			b.Fatal(n, err)
		}
		if s := applier.Stats(); s.Groups != plans {
			b.Fatalf("%+v", s)
		}
	}
	b.ReportMetric(float64(b.N)*plans/b.Elapsed().Seconds(), "plans/s")
}

// discard commits nothing, so that every batch finds the same state.
type discard struct{}

func (discard) Commit(context.Context, *apply.Batch) (planner.CommitResult, error) {
	return planner.CommitResult{}, nil
}

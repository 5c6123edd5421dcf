package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// underOne returns a full node with three allocations, and a budget over label x that
// allows so many disruptions: s, which a policy evicts first, the larger w, and free,
// which is under no budget. The job fits only if w and free are evicted. If w is
// evicted all-or-none, it has other members.
func underOne(t *testing.T, lets int, large *model.Job, ids ...string) *fixture {
	w := newFixture(t)
	w.node("n0")
	w.node("n1", func(n *model.Node) { n.Taints = []model.Taint{{Key: "kept", Effect: model.NoSchedule}} })
	x := func(g *model.Group) { g.Labels = labels("x") }
	w.run(job("s", 10, 2, 1).With(x).Obj(), "s0", "n0")
	w.run(large, ids...)
	w.run(job("free", 30, 2, 1).Obj(), "free0", "n0")
	w.write(func(txn *state.Txn) {
		txn.BudgetWriter().Upsert(&model.Budget{
			Namespace: model.DefaultNamespace, Name: "x", Labels: labels("x"), Strict: true,
			MinAvailable: &model.Bound{Number: int32(1 + len(ids)/2 - lets)},
		})
	})
	w.job(job("p", 50, 8, 1).Obj())
	return w
}

// A strict budget with one disruption left is used for the victim that frees enough.
func TestBudgetSearch_ExcludesFirstVictimThatExhaustsBudget(t *testing.T) {
	t.Parallel()
	large := job("w", 20, 6, 1).With(func(g *model.Group) { g.Labels = labels("x") }).Obj()
	underOne(t, 1, large, "w0", "n0").want("p", "p.g[0]@n0 over free0 w0")
}

// A cohort with a member on another node costs two disruptions: a budget that allows
// all evictions on the node does not allow the cohort and s together.
func TestBudgetSearch_CountsCohortOnOtherNodes(t *testing.T) {
	t.Parallel()
	large := job("w", 20, 6, 1).Count(2).With(func(g *model.Group) { g.Labels = labels("x") }).
		Change(func(j *model.Job) { j.AllOrNone = true }).Obj()
	underOne(t, 2, large, "w0", "n0", "w1", "n1").want("p", "p.g[0]@n0 over free0 w0 w1")
}

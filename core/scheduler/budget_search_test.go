package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// underOne is a full node of three, of whom the budget over x lets so many go: s, whom a
// policy takes first, the larger w, and free, which is under no budget. Eight of ten are
// made room for by w and free alone. Where w goes whole, others go with it.
func underOne(t *testing.T, lets int, large *model.Job, ids ...string) *town {
	w := newTown(t)
	w.node("n0")
	w.node("n1", func(n *model.Node) { n.Taints = []model.Taint{{Key: "kept", Effect: model.NoSchedule}} })
	x := func(g *model.Group) { g.Labels = labels("x") }
	w.run(job("s", 10, 2, 1).With(x).Obj(), "s0", "n0")
	w.run(large, ids...)
	w.run(job("free", 30, 2, 1).Obj(), "free0", "n0")
	w.write(func(txn *state.Txn) {
		txn.UpsertBudget(&model.Budget{
			Namespace: model.DefaultNamespace, Name: "x", Labels: labels("x"), Strict: true,
			MinAvailable: &model.Bound{Number: int32(1 + len(ids)/2 - lets)},
		})
	})
	w.job(job("p", 50, 8, 1).Obj())
	return w
}

// A strict budget that lets go of one lets go of the one who makes room.
func TestSparing_WhoIsTakenFirstUsesUpABudget(t *testing.T) {
	large := job("w", 20, 6, 1).With(func(g *model.Group) { g.Labels = labels("x") }).Obj()
	underOne(t, 1, large, "w0", "n0").want("p", "p.g[0]@n0 over free0 w0")
}

// Two go with a job that goes whole, though one of them is elsewhere: a budget that lets
// go of all who are under it on the node does not let go of these and of s.
func TestSparing_WhoGoesWholeUsesUpMoreThanIsOnTheNode(t *testing.T) {
	large := job("w", 20, 6, 1).Count(2).With(func(g *model.Group) { g.Labels = labels("x") }).
		Change(func(j *model.Job) { j.AllOrNone = true }).Obj()
	underOne(t, 2, large, "w0", "n0", "w1", "n1").want("p", "p.g[0]@n0 over free0 w0 w1")
}

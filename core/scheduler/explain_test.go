package scheduler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// rollFull returns a cluster of several chunks on which a job cannot be placed: the
// feasible nodes are full of allocations that are never evicted for it.
func rollFull(w *fixture, d *rand.Rand) {
	var running []*model.Allocation
	run := func(j *model.Job, node int) {
		running = append(running, coretest.Running(fmt.Sprint(j.ID, ".", node), j, 0, 100+node, fmt.Sprint("n", node)))
	}
	var others []*model.Job
	for i, priority := range []int32{10, 20, 45} {
		j := job(fmt.Sprint("o", i), priority, int64(d.IntN(3)), int64(d.IntN(3))).Obj()
		j.NonPreemptible = d.IntN(4) == 0
		others = append(others, j)
	}
	high := job("high", 90, 6, 6).Obj()
	asks := job("j", 50, int64(5+d.IntN(3)), int64(1+d.IntN(6))).Count(1 + d.IntN(3)).With(func(g *model.Group) {
		if d.IntN(2) == 0 {
			g.Constraints = []model.Constraint{{Attribute: "zone", Operator: "=", Value: "a"}}
		}
		if d.IntN(2) == 0 {
			g.Labels, g.Separate = labels("me"), term("me", "node")
		}
		if d.IntN(2) == 0 {
			g.Ports = []uint16{80}
		}
	}).Obj()
	for _, j := range append(others, high, asks) {
		w.job(j)
	}
	g := asks.Groups[0]
	for n := range 200 {
		at := []string{"a", "b"}[d.IntN(2)]
		change := []func(*model.Node){zone(at)}
		never := len(g.Constraints) > 0 && at == "b"
		switch d.IntN(10) {
		case 0:
			change, never = append(change, func(n *model.Node) { n.Status = model.NodeDown }), true
		case 1:
			change, never = append(change, func(n *model.Node) { n.Drain = true }), true
		case 2:
			change, never = append(change, func(n *model.Node) { n.Ports = []uint16{80} }), never || len(g.Ports) > 0
		case 3:
			run(asks, n)
			never = never || len(g.Separate) > 0
		}
		w.node(fmt.Sprint("n", n), change...)
		if !never || d.IntN(2) == 0 {
			run(high, n)
		}
		for _, j := range others {
			if d.IntN(3) == 0 {
				run(j, n)
			}
		}
	}
	w.write(func(txn *state.Txn) { txn.AllocWriter().Upsert(running...) })
}

// Explanations that count by columns equal those that examine node after node. A strict
// budget, even one that covers nothing, selects the latter.
func TestExplanation_ColumnsEqualNodeByNode(t *testing.T) {
	t.Parallel()
	unplaced := 0
	for seed := range uint64(soak.Count(15, 2000)) {
		var texts [2]string
		for i := range texts {
			w := newFixture(t)
			rollFull(w, rand.New(rand.NewPCG(seed, 0)))
			if i == 1 {
				w.write(func(txn *state.Txn) {
					txn.BudgetWriter().Upsert(&model.Budget{
						Namespace: model.DefaultNamespace, Name: "nobody", Strict: true,
						Labels: map[string]string{"app": "none"}, MinAvailable: &model.Bound{Number: 1},
					})
				})
			}
			for _, why := range maps.All(w.plan("j").Failed) {
				texts[i] = fmt.Sprintf("%+v", *why)
				unplaced++
			}
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d: by columns\n%s\nnode by node\n%s", seed, texts[0], texts[1])
		}
	}
	if unplaced == 0 {
		t.Error("everything was placed: no explanation was checked")
	}
}

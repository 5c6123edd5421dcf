package worker_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A job must run near another one, which is placed while an evaluation of the first is being
// processed on an older state. That evaluation becomes blocked later, and must not miss it.
func TestFeed_UnblocksEvaluationThatMissedPlacementWhileProcessed(t *testing.T) {
	q := newQueue(t)
	target := coretest.Job("target").With(func(g *model.Group) { g.Labels = map[string]string{"app": "z"} }).Obj()
	near := coretest.Job("near").With(func(g *model.Group) {
		g.Colocate = []model.LabelTerm{{Labels: map[string]string{"app": "z"}, TopologyKey: "node"}}
	}).Obj()
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		for _, err := range []error{txn.NodeWriter().Upsert(coretest.Node("n1", 9, 9, 9)), txn.JobWriter().Upsert(target), txn.JobWriter().Upsert(near)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		e := coretest.Eval(near)
		txn.EvalWriter().Upsert(e)
		return []*model.Evaluation{e}
	})
	seen, d := q.store.Snapshot().Index(), q.next()

	q.apply(func(txn *state.Txn) []*model.Evaluation {
		txn.AllocWriter().Upsert(coretest.Running("target.0", target, 0, 0, "n1"))
		return nil
	})
	q.feed.Placed(q.store.Snapshot(), 1, "n1")
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		done, blocked := *d.Eval, *coretest.Eval(near)
		done.Status, done.Failed = model.EvalComplete, map[string]*model.Explanation{near.Groups[0].Name: {}}
		blocked.ID, blocked.Status, blocked.SnapshotIndex, blocked.Escaped, blocked.Failed = "blocked", model.EvalBlocked, seen, true, done.Failed
		txn.EvalWriter().Upsert(&done, &blocked)
		return []*model.Evaluation{&done, &blocked}
	})
	if err := q.broker.Ack(d.Eval.ID, d.Token, seen); err != nil {
		t.Fatal(err)
	}
	if next := q.next(); next.Eval.ID != "blocked" {
		t.Errorf("next is %s", next.Eval.ID)
	}
}

// A removed node takes its zone out of a hard spread, so that another zone may get more. An
// evaluation without such a rule gains nothing.
func TestFeed_UnblocksHardSpreadWhenNodeIsRemoved(t *testing.T) {
	q := newQueue(t)
	spread := coretest.Job("spread").With(func(g *model.Group) {
		g.Spread = []model.Spread{{Attribute: "zone", MaxSkew: 1}}
	}).Obj()
	plain := coretest.Job("plain").Obj()
	q.apply(func(txn *state.Txn) (evals []*model.Evaluation) {
		for _, err := range []error{txn.NodeWriter().Upsert(coretest.Node("n1", 9, 9, 9)), txn.JobWriter().Upsert(spread), txn.JobWriter().Upsert(plain)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, j := range []*model.Job{spread, plain} {
			e := coretest.Eval(j)
			e.Status, e.SnapshotIndex, e.Escaped = model.EvalBlocked, txn.Index(), true
			e.Failed = map[string]*model.Explanation{j.Groups[0].Name: {}}
			evals = append(evals, e)
		}
		txn.EvalWriter().Upsert(evals...)
		return evals
	})
	q.apply(func(txn *state.Txn) []*model.Evaluation { return apply.NodeDelete(txn, 1, []string{"n1"}) })
	q.feed.Freed(q.store.Snapshot(), 1, "n1")
	q.expectNext("spread")
}

package worker_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// newCohort applies an all-or-none job with an instance on each of n1 and n2, and two jobs
// that are blocked on n1 since index 2. At index 3 the instance on n2 ends: n1 does not
// change, but the instance there may now be evicted.
func newCohort(q *queue) (ended *state.Snapshot) {
	whole := coretest.Job("whole").Type(model.JobBatch).Priority(10).Ask(5, 0, 0).Change(func(j *model.Job) { j.AllOrNone = true }).Obj()
	brief := &model.Allocation{}
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		txn.ConfigWriter().Set(coretest.AllPreempt())
		for _, n := range []*model.Node{coretest.Node("n1", 9, 9, 9), coretest.Node("n2", 5, 5, 5)} {
			if err := txn.NodeWriter().Upsert(n); err != nil {
				q.t.Fatal(err)
			}
		}
		if err := txn.JobWriter().Upsert(whole); err != nil {
			q.t.Fatal(err)
		}
		brief = coretest.Running("whole.1", whole, 0, 1, "n2")
		txn.AllocWriter().Upsert(coretest.Running("whole.0", whole, 0, 0, "n1"), brief)
		return nil
	})
	q.apply(func(txn *state.Txn) (evals []*model.Evaluation) {
		for _, id := range []string{"first", "second"} {
			j := coretest.Job(id).Priority(90).Ask(8, 0, 0).Obj()
			if err := txn.JobWriter().Upsert(j); err != nil {
				q.t.Fatal(err)
			}
			e := coretest.Eval(j)
			e.Status, e.SnapshotIndex = model.EvalBlocked, txn.Index()
			e.Failed = map[string]*model.Explanation{j.Groups[0].Name: {}}
			evals = append(evals, e)
		}
		txn.EvalWriter().Upsert(evals...)
		return evals
	})
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		apply.ClientUpdates(txn, 1, []apply.ClientUpdate{{AllocID: brief.ID, Status: model.ClientComplete}})
		return nil
	})
	return q.store.Snapshot()
}

func (q *queue) expectNext(job string) broker.Delivery {
	q.t.Helper()
	d := q.next()
	if d.Eval.JobID != job {
		q.t.Fatalf("next is %s, want %s", d.Eval.JobID, job)
	}
	if _, more := q.broker.TryDequeue(nil); more {
		q.t.Fatal("two evaluations unblocked for the capacity of one")
	}
	return d
}

// The first one may be placed on another node. Then the second one is offered the change
// that unblocked the first: it has already seen the last change of the node itself.
func TestFeed_RetryDeferredOffersNodeOfEndedMember(t *testing.T) {
	q := newQueue(t)
	ended := newCohort(q)
	if got := ended.ChangedCohortNodes(); len(got) != 1 || got[0] != "n1" {
		t.Fatalf("members on %v", got)
	}
	q.feed.Freed(ended, 1, ended.ChangedCohortNodes()...)
	d := q.expectNext("first")
	if err := q.broker.Ack(d.Eval.ID, d.Token, ended.Index()); err != nil {
		t.Fatal(err)
	}
	if !q.feed.RetryDeferred(ended, 1) {
		t.Fatal("the second evaluation is still blocked")
	}
	q.expectNext("second")
}

// The previous leader stopped at the change, and unblocked nothing.
func TestFeed_RestoreOffersNodeOfEndedMember(t *testing.T) {
	q := newQueue(t)
	ended := newCohort(q)
	q.broker.Disable()
	q.broker.Enable()
	q.feed.Restore(ended, 1, 0, nil)
	q.expectNext("first")
}

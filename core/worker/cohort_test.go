package worker_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// halves is a job that goes whole, with an instance on each of n1 and n2, and two
// that wait for n1 since index 2. At index 3 the instance on n2 ends: nothing
// happens on n1, but who kept the other there is gone.
func halves(q *queue) (ended *state.Snapshot) {
	whole := coretest.Job("whole").Type(model.JobBatch).Priority(10).Ask(5, 0, 0).Change(func(j *model.Job) { j.AllOrNone = true }).Obj()
	brief := &model.Allocation{}
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		txn.SetConfig(coretest.AllPreempt())
		for _, n := range []*model.Node{coretest.Node("n1", 9, 9, 9), coretest.Node("n2", 5, 5, 5)} {
			if err := txn.UpsertNode(n); err != nil {
				q.t.Fatal(err)
			}
		}
		if err := txn.UpsertJob(whole); err != nil {
			q.t.Fatal(err)
		}
		brief = coretest.Running("whole.1", whole, 0, 1, "n2")
		txn.UpsertAllocs(coretest.Running("whole.0", whole, 0, 0, "n1"), brief)
		return nil
	})
	q.apply(func(txn *state.Txn) (evals []*model.Evaluation) {
		for _, id := range []string{"first", "second"} {
			j := coretest.Job(id).Priority(90).Ask(8, 0, 0).Obj()
			if err := txn.UpsertJob(j); err != nil {
				q.t.Fatal(err)
			}
			e := coretest.Eval(j)
			e.Status, e.SnapshotIndex = model.EvalBlocked, txn.Index()
			e.Failed = map[string]*model.Explanation{j.Groups[0].Name: {}}
			evals = append(evals, e)
		}
		txn.UpsertEvals(evals...)
		return evals
	})
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		apply.ClientUpdates(txn, 1, []apply.ClientUpdate{{AllocID: brief.ID, Status: model.ClientComplete}})
		return nil
	})
	return q.store.Snapshot()
}

func (q *queue) wants(job string) broker.Delivery {
	q.t.Helper()
	d := q.next()
	if d.Eval.JobID != job {
		q.t.Fatalf("%s is next, not %s", d.Eval.JobID, job)
	}
	if _, more := q.broker.TryDequeue(nil); more {
		q.t.Fatal("two are woken for the room of one")
	}
	return d
}

// The first may go elsewhere. Then the second is asked, as of what woke the first:
// the last change on the node itself it has seen.
func TestFeedSettle_OffersNodeOfEndedMemberToNextEval(t *testing.T) {
	q := newQueue(t)
	ended := halves(q)
	if got := ended.ChangedCohortNodes(); len(got) != 1 || got[0] != "n1" {
		t.Fatalf("mates on %v", got)
	}
	q.feed.Freed(ended, 1, ended.ChangedCohortNodes()...)
	d := q.wants("first")
	if err := q.broker.Ack(d.Eval.ID, d.Token, ended.Index()); err != nil {
		t.Fatal(err)
	}
	if !q.feed.RetryDeferred(ended, 1) {
		t.Fatal("the second sleeps on")
	}
	q.wants("second")
}

// The server that led before ended with the change, and woke nobody.
func TestFeedRestore_OffersNodeOfEndedMember(t *testing.T) {
	q := newQueue(t)
	ended := halves(q)
	q.broker.Disable()
	q.broker.Enable()
	q.feed.Restore(ended, 1, 0)
	q.wants("first")
}

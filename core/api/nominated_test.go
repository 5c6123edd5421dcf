package api

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// starting returns the only live allocation of a job, and the counts of its group.
func (w *fixture) starting(id string) (*client.AllocationStub, client.TaskGroupSummary) {
	w.t.Helper()
	list, _, err := w.client.Jobs().Allocations(w.t.Context(), id, nil)
	w.check(err)
	var live *client.AllocationStub
	for _, a := range list {
		if a.DesiredStatus != "run" {
			continue
		}
		if live != nil {
			w.t.Fatalf("job %s has two live allocations, %s and %s", id, live.ID, a.ID)
		}
		live = a
	}
	summary, _, err := w.client.Jobs().Summary(w.t.Context(), id, nil)
	w.check(err)
	return live, summary.Summary["app"]
}

// report reports the status of an allocation of n1.
func (w *fixture) report(a, status string) {
	w.t.Helper()
	_, err := w.client.NodeAgent().Update(w.t.Context(), "n1", testNodeSecret, []client.AllocUpdate{{AllocID: a, ClientStatus: status}})
	w.check(err)
}

// Kubernetes' nominated node corresponds to the node of an allocation whose victims
// have not stopped yet. It is reported until the allocation starts, or until a higher
// priority evicts it.
func TestAllocations_NominatedWhileVictimsStop(t *testing.T) {
	w := start(t)
	w.enablePreemption()
	conf, _, err := w.client.Scheduler().Get(t.Context(), nil)
	w.check(err)
	conf.Policy = "kubernetes"
	_, err = w.client.Scheduler().Set(t.Context(), conf, nil)
	w.check(err)
	w.addNode("n1", 1000, 1000)
	w.register(job("slow", 10, 1, 900, 100))
	w.reportRunning()
	victim, _ := w.starting("slow")

	r := w.register(job("first", 50, 1, 900, 100))
	first, n := w.starting("first")
	if first == nil || first.NodeID != "n1" || first.ClientStatus != "pending" || len(first.PreemptedAllocations) != 1 || first.PreemptedAllocations[0] != victim.ID {
		t.Fatalf("first is %+v", first)
	}
	if n.Starting != 1 || n.Queued != 0 || n.Running != 0 {
		t.Errorf("summary of first: %+v", n)
	}
	of, _, err := w.client.Evaluations().Allocations(t.Context(), r.EvalID, nil)
	w.check(err)
	if len(of) != 1 || of[0].NodeID != "n1" || of[0].ClientStatus != "pending" {
		t.Errorf("the evaluation placed %+v", of)
	}
	if a, _, err := w.client.Allocations().Get(t.Context(), victim.ID, nil); err != nil || a.DesiredStatus != "evict" || a.ClientStatus != "running" || a.PreemptedByAllocation != first.ID {
		t.Errorf("the victim is %+v, %v", a, err)
	}

	w.register(job("urgent", 90, 1, 900, 100))
	urgent, _ := w.starting("urgent")
	if urgent == nil || urgent.NodeID != "n1" || len(urgent.PreemptedAllocations) != 1 || urgent.PreemptedAllocations[0] != first.ID {
		t.Fatalf("urgent is %+v", urgent)
	}
	w.waitFor("first is queued again", func() bool {
		a, n := w.starting("first")
		return a == nil && n.Queued == 1 && n.Starting == 0 && n.Running == 0
	})
	lost, _, err := w.client.Allocations().Get(t.Context(), first.ID, nil)
	if w.check(err); lost.DesiredStatus != "evict" || lost.PreemptedByAllocation != urgent.ID {
		t.Errorf("the evicted allocation of first is %+v", lost)
	}

	// The node reports the further progress.
	w.report(first.ID, "complete")
	w.report(victim.ID, "complete")
	w.reportRunning()
	if a, n := w.starting("urgent"); a == nil || a.ClientStatus != "running" || n.Running != 1 || n.Starting != 0 {
		t.Errorf("urgent is %+v, summary %+v", a, n)
	}
	if a, n := w.starting("first"); a != nil || n.Queued != 1 {
		t.Errorf("first is %+v, summary %+v", a, n)
	}
}

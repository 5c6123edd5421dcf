package api

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// starting is the one allocation of a job that is to run, and how many wait, start and
// run of it.
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
			w.t.Fatalf("job %s has %s and %s", id, live.ID, a.ID)
		}
		live = a
	}
	summary, _, err := w.client.Jobs().Summary(w.t.Context(), id, nil)
	w.check(err)
	return live, summary.Summary["app"]
}

// report says what became of an allocation of n1.
func (w *fixture) report(a, status string) {
	w.t.Helper()
	_, err := w.client.NodeAgent().Update(w.t.Context(), "n1", testNodeSecret, []client.AllocUpdate{{AllocID: a, ClientStatus: status}})
	w.check(err)
}

// What Kubernetes calls a nominated node is the node of an allocation that waits for
// its victims to leave: everybody who asks is told of it, until it starts, or until a
// higher priority takes its place.
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
		t.Errorf("of first %+v", n)
	}
	of, _, err := w.client.Evaluations().Allocations(t.Context(), r.EvalID, nil)
	w.check(err)
	if len(of) != 1 || of[0].NodeID != "n1" || of[0].ClientStatus != "pending" {
		t.Errorf("its evaluation placed %+v", of)
	}
	if a, _, err := w.client.Allocations().Get(t.Context(), victim.ID, nil); err != nil || a.DesiredStatus != "evict" || a.ClientStatus != "running" || a.PreemptedByAllocation != first.ID {
		t.Errorf("the victim is %+v, %v", a, err)
	}

	w.register(job("urgent", 90, 1, 900, 100))
	urgent, _ := w.starting("urgent")
	if urgent == nil || urgent.NodeID != "n1" || len(urgent.PreemptedAllocations) != 1 || urgent.PreemptedAllocations[0] != first.ID {
		t.Fatalf("urgent is %+v", urgent)
	}
	w.waitFor("first waits again", func() bool {
		a, n := w.starting("first")
		return a == nil && n.Queued == 1 && n.Starting == 0 && n.Running == 0
	})
	lost, _, err := w.client.Allocations().Get(t.Context(), first.ID, nil)
	if w.check(err); lost.DesiredStatus != "evict" || lost.PreemptedByAllocation != urgent.ID {
		t.Errorf("what first had is %+v", lost)
	}

	// The node says how it goes on.
	w.report(first.ID, "complete")
	w.report(victim.ID, "complete")
	w.reportRunning()
	if a, n := w.starting("urgent"); a == nil || a.ClientStatus != "running" || n.Running != 1 || n.Starting != 0 {
		t.Errorf("urgent is %+v of %+v", a, n)
	}
	if a, n := w.starting("first"); a != nil || n.Queued != 1 {
		t.Errorf("first is %+v of %+v", a, n)
	}
}

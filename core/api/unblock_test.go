package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/client"
)

// awaitPlacement waits until a job has a live allocation on a node.
func (w *fixture) awaitPlacement(job, node string) {
	w.t.Helper()
	w.waitFor("job "+job+" is placed on "+node, func() bool {
		list, _, err := w.client.Jobs().Allocations(w.t.Context(), job, nil)
		w.check(err)
		for _, a := range list {
			if a.DesiredStatus == "run" && a.NodeID == node {
				return true
			}
		}
		return false
	})
}

// taint changes the taints of a node, once the cluster version supports taints.
func (w *fixture) taint(node string, untaint, taint []client.Taint) {
	w.t.Helper()
	var err error
	w.waitFor("the cluster version supports taints", func() bool {
		_, err = w.client.Nodes().Taint(w.t.Context(), node, untaint, taint)
		return !client.IsConflict(err)
	})
	w.check(err)
}

// A job that is blocked by a taint is placed when the taint is removed.
func TestUnblock_OnTaintRemoval(t *testing.T) {
	w := start(t)
	w.addNode("n1", 100, 1000)
	spot := []client.Taint{{Key: "spot", Effect: "NoSchedule"}}
	w.taint("n1", nil, spot)
	if e := w.awaitEval(w.register(job("web", 50, 1, 10, 10)).EvalID); len(e.FailedTGAllocs) != 1 {
		t.Fatal("an allocation was placed without a toleration for the taint")
	}
	w.taint("n1", spot, nil)
	w.awaitPlacement("web", "n1")
}

// A job that is blocked by a strict budget is placed when the budget allows the
// evictions.
func TestUnblock_OnBudgetChange(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.enablePreemption()
	w.addNode("n1", 100, 1000)
	low := labelledJob("low", 1)
	*low.Priority, *low.TaskGroups[0].Tasks[0].Resources.CPU = 20, 100
	w.register(low)
	w.reportRunning()
	budget := &client.Budget{Name: "low", Labels: map[string]string{"app": "low"}, MinAvailable: "1", Enforcement: "strict"}
	_, err := w.client.Budgets().Put(ctx, budget, nil)
	w.check(err)
	if e := w.awaitEval(w.register(job("high", 80, 1, 100, 10)).EvalID); len(e.FailedTGAllocs) == 0 {
		t.Fatal("the budget was exceeded")
	}
	budget.MinAvailable = "0"
	_, err = w.client.Budgets().Put(ctx, budget, nil)
	w.check(err)
	w.awaitPlacement("high", "n1")
}

// A NoExecute taint moves the allocations of a node to another one.
func TestUnblock_OnNoExecuteTaint(t *testing.T) {
	w := start(t)
	w.addNode("n1", 100, 1000)
	w.register(job("web", 50, 1, 10, 10))
	w.awaitPlacement("web", "n1")
	w.reportRunning()
	w.addNode("n2", 100, 1000)
	w.taint("n1", nil, []client.Taint{{Key: "failing", Effect: "NoExecute"}})
	w.awaitPlacement("web", "n2")
}

// statusOf returns the status of a job's first allocation.
func statusOf(list []*client.AllocationStub, job string) string {
	for _, a := range list {
		if a.JobID == job {
			return a.ClientStatus
		}
	}
	return "none"
}

// The unknown status of an allocation is stored at its node. Blocking queries for the
// allocation must return nevertheless.
func TestBlockingQuery_WakesWhenNodeGoesDown(t *testing.T) {
	w := start(t)
	w.addNode("n1", 100, 1000)
	kept := job("kept", 50, 1, 10, 10)
	kept.TaskGroups[0].Disconnect = &client.DisconnectStrategy{}
	w.register(kept)
	w.register(job("other", 50, 1, 10, 10))
	w.reportRunning()
	list, meta, err := w.client.Jobs().Allocations(t.Context(), "kept", nil)
	w.check(err)
	ctx, q := t.Context(), &client.QueryOptions{Index: meta.LastIndex, Wait: time.Minute}
	heard := map[string]chan string{}
	ask := func(what string, status func() (string, error)) {
		heard[what] = make(chan string, 1)
		go func() {
			word, err := status()
			heard[what] <- fmt.Sprint(word, err)
		}()
	}
	ask("the allocation", func() (string, error) {
		a, _, err := w.client.Allocations().Get(ctx, list[0].ID, q)
		return a.ClientStatus, err
	})
	ask("the job's allocations", func() (string, error) {
		all, _, err := w.client.Jobs().Allocations(ctx, "kept", q)
		return statusOf(all, "kept"), err
	})
	ask("all allocations", func() (string, error) {
		all, _, err := w.client.Allocations().List(ctx, q)
		return statusOf(all, "kept"), err
	})
	ask("the summary", func() (string, error) {
		s, _, err := w.client.Jobs().Summary(ctx, "kept", q)
		if err != nil || s.Summary["app"].Unknown != 1 {
			return "known", err
		}
		return "unknown", nil
	})
	_, err = w.node.Apply(ctx, &replication.Entry{Time: time.Now().UnixNano(), Command: &replication.ChangeNodes{
		IDs: []string{"n1"}, Change: apply.NodeChange{Status: new(model.NodeDown)},
	}})
	w.check(err)
	for what, c := range heard {
		select {
		case got := <-c:
			if got != "unknown<nil>" {
				t.Errorf("%s: %s", what, got)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: no response", what)
		}
	}
}

package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// Pending and blocked evaluations can be cancelled, once and again, and no worker receives
// them afterwards.
func TestEvaluations_CancelPendingAndBlocked(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	blocked := w.register(job("large", 50, 1, 100_000, 10))
	blockedID := w.awaitEval(blocked.EvalID).BlockedEval
	done := w.register(job("small", 50, 1, 10, 10))
	_, err := w.client.Operator().BrokerPause(ctx)
	w.check(err)
	pending, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), nil)
	w.check(err)
	status := func(id string) string {
		e, _, err := w.client.Evaluations().Get(ctx, id, nil)
		w.check(err)
		return e.Status
	}

	// One error lists everything that is not possible, and nothing is cancelled.
	_, err = w.client.Evaluations().Cancel(ctx, []string{pending.EvalID, done.EvalID, "unknown", blockedID}, nil)
	if !client.IsConflict(err) {
		t.Fatalf("cancelling a complete evaluation: %v", err)
	}
	for _, want := range []string{"cannot cancel 2 of 4 evaluations", done.EvalID + " of job small is complete", `evaluation "unknown" not found`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %q", err, want)
		}
	}
	if status(pending.EvalID) != "pending" || status(blockedID) != "blocked" {
		t.Errorf("a refused call left %s and %s", status(pending.EvalID), status(blockedID))
	}

	var last uint64
	for range 2 { // a repeated call has no effect
		r, err := w.client.Evaluations().Cancel(ctx, []string{pending.EvalID, blockedID, pending.EvalID}, nil)
		w.check(err)
		if r.Index == 0 || last != 0 && r.Index != last {
			t.Errorf("cancelled at %d, then at %d", last, r.Index)
		}
		last = r.Index
	}
	e, _, err := w.client.Evaluations().Get(ctx, pending.EvalID, nil)
	w.check(err)
	if e.Status != "cancelled" || e.StatusDescription != "cancelled by an operator" || status(blockedID) != "cancelled" {
		t.Errorf("%s (%s), %s", e.Status, e.StatusDescription, status(blockedID))
	}
	if _, blocked := w.server.BrokerStats(); blocked.Total != 0 {
		t.Errorf("%d evaluations are blocked", blocked.Total)
	}
	_, err = w.client.Operator().BrokerResume(ctx)
	w.check(err)
	w.register(job("other", 50, 1, 10, 10)) // the workers have passed the cancelled evaluations
	if list, _, err := w.client.Jobs().Allocations(ctx, "web", nil); err != nil || len(list) > 0 {
		t.Errorf("a cancelled evaluation placed %d allocations (%v)", len(list), err)
	}
	next := w.register(job("web", 60, 1, 10, 10)) // the job itself is not affected
	if list, _, err := w.client.Evaluations().Allocations(ctx, next.EvalID, nil); err != nil || len(list) != 1 {
		t.Errorf("%d allocations (%v)", len(list), err)
	}
}

// A refused call leaves the evaluations queued.
func TestEvaluations_RefusedCancellationLeavesThemQueued(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	done := w.register(job("small", 50, 1, 10, 10))
	_, err := w.client.Operator().BrokerPause(ctx)
	w.check(err)
	pending, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), nil)
	w.check(err)
	if _, err := w.client.Evaluations().Cancel(ctx, []string{pending.EvalID, done.EvalID}, nil); !client.IsConflict(err) {
		t.Fatal(err)
	}
	_, err = w.client.Operator().BrokerResume(ctx)
	w.check(err)
	if e := w.awaitEval(pending.EvalID); e.Status != "complete" {
		t.Errorf("the evaluation is %s", e.Status)
	}
}

// The number of evaluations in a call is limited, and Nomad's filters are refused.
func TestEvaluations_CancelValidatesTheRequest(t *testing.T) {
	w := start(t)
	for body, want := range map[string]int{
		`{"EvalIDs": []}`: http.StatusBadRequest,
		`{"EvalIDs": ["` + strings.Repeat(`x","`, 1000) + `x"]}`: http.StatusBadRequest,
		`{"EvalIDs": ["x"]}`:                  http.StatusNotFound,
		`{"Filter": "Status == \"pending\""}`: http.StatusNotImplemented,
		`{"EvalIDs": ["x"], "Force": true}`:   http.StatusBadRequest,
	} {
		if r, text := w.send(http.MethodDelete, "/v1/evaluations", body, "Content-Type", "application/json"); r.StatusCode != want {
			t.Errorf("%.60s: %d, want %d: %.200s", body, r.StatusCode, want, text)
		}
	}
}

package client

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
)

// If the connection breaks after the server received a write, the client repeats it with
// the same key. If a repeated deletion finds nothing, the first one has taken effect.
func TestClient_RepeatsWritesWithUnknownOutcome(t *testing.T) {
	var requests atomic.Int32
	var keys []string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		switch {
		case requests.Add(1) == 1:
			panic(http.ErrAbortHandler) // the client receives no response
		case r.Method == http.MethodDelete:
			answer(w, http.StatusNotFound, &Error{Code: CodeNotFound, Message: "it does not exist"})
		default:
			answer(w, http.StatusOK, map[string]any{"Index": 1})
		}
	})
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"register":     func() error { _, err := c.Jobs().Register(ctx, &Job{ID: "web"}, nil); return err },
		"stop alloc":   func() error { _, err := c.Allocations().Stop(ctx, "a", nil); return err },
		"set config":   func() error { _, err := c.Scheduler().Set(ctx, &SchedulerConfiguration{}, nil); return err },
		"pause":        func() error { _, err := c.Operator().BrokerPause(ctx); return err },
		"activate":     func() error { _, err := c.Policies().Activate(ctx, "p", "v"); return err },
		"delete node":  func() error { _, err := c.Nodes().Delete(ctx, "n"); return err },
		"delete class": func() error { _, err := c.PriorityClasses().Delete(ctx, "gold"); return err },
	} {
		requests.Store(0)
		keys = nil
		if err := do(); err != nil || requests.Load() != 2 {
			t.Errorf("%s: %d requests: %v", name, requests.Load(), err)
		}
		if slices.Sort(keys); len(slices.Compact(keys)) != 1 {
			t.Errorf("%s: keys %q", name, keys)
		}
	}
	// A second rollback would activate the version that the first one replaced.
	requests.Store(0)
	if _, err := c.Policies().Rollback(ctx, "p"); !OutcomeUnknown(err) || requests.Load() != 1 {
		t.Errorf("rollback: %d requests: %v", requests.Load(), err)
	}
	requests.Store(1)
	if _, err := c.Nodes().Delete(ctx, "n"); !IsNotFound(err) {
		t.Errorf("deletion of a missing node: %v", err)
	}
}

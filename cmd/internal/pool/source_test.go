package pool

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// connect returns a client of a server with one handler.
func connect(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Address: server.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Servers that do not support the query respond at once, with the index of the whole state.
func TestSource_WatchPausesBetweenEqualVersions(t *testing.T) {
	for _, grows := range []bool{false, true} {
		var requests, changes atomic.Int64
		c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			n := requests.Add(1)
			if !grows {
				n = 7
			}
			w.Header().Set("X-Nomad-Index", strconv.FormatInt(n, 10))
			_ = json.NewEncoder(w).Encode(&client.PolicyStatus{PolicyStub: client.PolicyStub{Name: "rules", Active: "v1", ModifyIndex: 3}})
		})
		s, err := NewSource(c, "rules", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		s.Watch(ctx, func() { changes.Add(1) })
		cancel()
		if n := requests.Load(); n > 3 || changes.Load() != 1 {
			t.Errorf("index grows %t: %d requests and %d changes in 300 ms, want 2 and 1", grows, n, changes.Load())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestActiveVersion_IncludesGrantsFaultsAndLimits(t *testing.T) {
	status := func(change func(*client.PolicyVersion)) string {
		v := &client.PolicyVersion{ID: "v1"}
		change(v)
		return activeVersion(&client.PolicyStatus{PolicyStub: client.PolicyStub{Active: "v1"}, Loaded: []*client.PolicyVersion{v, {ID: "v2"}}})
	}
	same := status(func(*client.PolicyVersion) {})
	if got := status(func(v *client.PolicyVersion) { v.Checks = map[string]client.PolicyCheck{"s1": {OK: true}} }); got != same {
		t.Errorf("a check changes %s to %s", same, got)
	}
	for what, change := range map[string]func(*client.PolicyVersion){
		"settings": func(v *client.PolicyVersion) { v.Config = json.RawMessage(`{"a":1}`) },
		"grants":   func(v *client.PolicyVersion) { v.Grants = []string{"clock"} },
		"faults":   func(v *client.PolicyVersion) { v.OnFault = "deny" },
		"limits":   func(v *client.PolicyVersion) { v.Limits = &client.PolicyLimits{Fuel: 1} },
	} {
		if status(change) == same {
			t.Errorf("%s make no difference", what)
		}
	}
}

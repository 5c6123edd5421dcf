package api

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// restartedServer is a server that may not have caught up with a leader.
type restartedServer struct {
	Server
	uninformed atomic.Bool
}

func (r *restartedServer) CaughtUp() bool { return !r.uninformed.Load() }

func TestRead_FailsUntilCaughtUpWithALeader(t *testing.T) {
	r := &restartedServer{}
	w := start(t, func(c *Config) { r.Server = c.Server; c.Server = r })
	r.uninformed.Store(true)
	if _, _, err := w.client.Jobs().List(t.Context(), nil); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("a list of jobs before catching up: %v", err)
	}
	if _, _, err := w.client.Jobs().List(t.Context(), &client.QueryOptions{Stale: true}); err != nil {
		t.Errorf("a stale read: %v", err)
	}
	r.uninformed.Store(false)
	if _, _, err := w.client.Jobs().List(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestRead_TokensNotRejectedUntilCaughtUp(t *testing.T) {
	r := &restartedServer{}
	w := start(t, func(c *Config) { r.Server = c.Server; c.Server = r; c.Security = true })
	c := w.connect("11111111-2222-3333-4444-555555555555")
	for _, step := range []struct {
		uninformed bool
		want       string
	}{{true, client.CodeNoLeader}, {false, client.CodeUnauthenticated}} {
		r.uninformed.Store(step.uninformed)
		if _, _, err := c.Jobs().List(t.Context(), nil); !client.HasCode(err, step.want) {
			t.Errorf("behind=%v: want %s, got %v", step.uninformed, step.want, err)
		}
	}
}

// A "not found" may be as outdated as any other response.
func TestRead_NotFoundHasStateHeaders(t *testing.T) {
	w := start(t)
	answer, err := w.http.Get(w.url + "/v1/job/nowhere")
	w.check(err)
	w.check(answer.Body.Close())
	if answer.StatusCode != http.StatusNotFound || answer.Header.Get(headerLeader) != "true" || answer.Header.Get(headerContact) != "0" {
		t.Errorf("%s, %v", answer.Status, answer.Header)
	}
}

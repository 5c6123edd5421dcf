package api

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// restartedServer is a server that may not have heard a leader yet.
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
		t.Errorf("a list of jobs that may be anything: %v", err)
	}
	if _, _, err := w.client.Jobs().List(t.Context(), &client.QueryOptions{Stale: true}); err != nil {
		t.Errorf("whoever asks for what there is: %v", err)
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
			t.Errorf("uninformed %v: want %s, got %v", step.uninformed, step.want, err)
		}
	}
}

// That there is no such thing may be as old an answer as any other.
func TestRead_NotFoundHasStateHeaders(t *testing.T) {
	w := start(t)
	answer, err := w.http.Get(w.url + "/v1/job/nowhere")
	w.check(err)
	w.check(answer.Body.Close())
	if answer.StatusCode != http.StatusNotFound || answer.Header.Get(headerLeader) != "true" || answer.Header.Get(headerContact) != "0" {
		t.Errorf("%s, %v", answer.Status, answer.Header)
	}
}

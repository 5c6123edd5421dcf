package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// A slowBarrier is a log whose leader learns late about earlier writes.
type slowBarrier struct {
	Log
	learns chan struct{}
}

func (l slowBarrier) Barrier(ctx context.Context) error {
	select {
	case <-l.learns:
		return l.Log.Barrier(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A server that was just elected changes no policy before its term is established: it may
// not have applied that a version was loaded again or disabled.
func TestPolicies_RequireEstablishedLeader(t *testing.T) {
	var learns chan struct{}
	change := func(c *Config) {
		learns = make(chan struct{}) // of the bubble with virtual time
		c.Log = slowBarrier{c.Log, learns}
	}
	runServers(t, 1, change, func(w *harness) {
		s := w.members[0].server
		for !s.cfg.Log.IsLeader() {
			time.Sleep(10 * time.Millisecond)
		}
		rollback := func() error {
			_, err := s.RollbackPolicy(w.ctx, "mine")
			return err
		}
		calls := map[string]func() error{
			"load":     func() error { _, err := s.LoadPolicy(w.ctx, policy.LoadRequest{}); return err },
			"shadow":   func() error { _, err := s.ShadowPolicy(w.ctx, "mine", "v"); return err },
			"activate": func() error { _, err := s.ActivatePolicy(w.ctx, "mine", "v"); return err },
			"rollback": rollback,
			"unload":   func() error { _, err := s.UnloadPolicy(w.ctx, "mine", "v"); return err },
			"reset":    func() error { _, err := s.ResetPolicy(w.ctx, "mine", ""); return err },
		}
		for name, call := range calls {
			if err := call(); apierror.CodeOf(err) != apierror.CodeNoLeader {
				t.Errorf("%s: %v", name, err)
			}
		}
		close(learns)
		w.leader()
		if err := rollback(); err == nil || apierror.CodeOf(err) == apierror.CodeNoLeader || errors.Is(err, context.Canceled) {
			t.Errorf("after leadership is established: %v", err)
		}
	})
}

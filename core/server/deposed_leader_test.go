package server

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
)

// A deposedLog is the log of a leader that may be deposed without having noticed.
type deposedLog struct {
	Log
	deposed *atomic.Bool
}

func (l deposedLog) VerifyLeader(ctx context.Context) error {
	if l.deposed.Load() {
		return replication.ErrNotLeader
	}
	return l.Log.VerifyLeader(ctx)
}

// A deposed leader may lack an object that the next leader wrote. The simulated clusters
// found a binding that was written, but reported as missing to the client that stopped it.
func TestEndpoints_DeposedLeaderDoesNotReturnNotFound(t *testing.T) {
	var deposed atomic.Bool
	runServers(t, 1, func(cfg *Config) { cfg.Log = deposedLog{cfg.Log, &deposed} }, func(w *harness) {
		s, key := w.leader().server, model.JobKey{Namespace: model.DefaultNamespace, ID: "unknown"}
		asked := map[string]func() error{
			"stop a job":     func() error { _, err := s.StopJob(w.ctx, key, endpoint.StopOptions{}); return err },
			"stop a binding": func() error { _, err := s.StopBinding(w.ctx, key, endpoint.StopOptions{}); return err },
			"evaluate":       func() error { _, err := s.Evaluate(w.ctx, key); return err },
			"stop alloc":     func() error { _, err := s.StopAlloc(w.ctx, "unknown"); return err },
			"drain":          func() error { _, err := s.Drain(w.ctx, "unknown", endpoint.DrainOptions{}); return err },
			"delete node":    func() error { _, err := s.DeleteNode(w.ctx, "unknown"); return err },
			"delete cluster": func() error { _, err := s.DeleteCluster(w.ctx, "unknown", false); return err },
			"delete budget": func() error {
				_, err := s.DeleteBudget(w.ctx, model.BudgetKey{Namespace: "default", Name: "unknown"})
				return err
			},
			"delete class": func() error { _, err := s.DeletePriorityClass(w.ctx, "unknown"); return err },
			"delete token": func() error { _, err := s.DeleteToken(w.ctx, "unknown"); return err },
		}
		for _, is := range []bool{false, true} {
			deposed.Store(is)
			for what, ask := range asked {
				err := ask()
				if is && (!isRetryable(err) || apierror.CodeOf(err) == apierror.CodeUnknownOutcome) || !is && apierror.CodeOf(err) != apierror.CodeNotFound {
					t.Errorf("deposed: %t, %s: %v", is, what, err)
				}
			}
		}
		deposed.Store(false)
	})
}

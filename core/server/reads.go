package server

import (
	"context"

	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// Snapshot is the newest state that this server has.
func (s *Server) Snapshot() *state.Snapshot { return s.cfg.Store.Snapshot() }

// WaitIndex waits until this server has the state at index or later.
func (s *Server) WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error) {
	snap, err := s.cfg.Store.WaitIndex(ctx, index)
	if err != nil {
		return nil, apierror.Interrupted(err)
	}
	return snap, nil
}

// Watch registers interest in keys of the state; see state.Store.
func (s *Server) Watch(keys ...state.Key) *state.Watch { return s.cfg.Store.Watch(keys...) }

// Consistent is a state that has everything that was written before the call:
// a majority confirms that this server leads, in a term in which it has taken over.
// Only the leader has it.
func (s *Server) Consistent(ctx context.Context) (*state.Snapshot, error) {
	return s.writer.Consistent(ctx)
}

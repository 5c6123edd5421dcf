package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/state"
)

// stateWait is how long a worker waits for this server's state to reach what its
// evaluation needs. Beyond that another server may be faster, so it goes back.
const stateWait = 5 * time.Second

// patient waits for the state, with a limit.
type patient struct {
	store *state.Store
	late  func(index uint64) // is told what was not reached; nil: nobody is
}

// WaitIndex waits until the state is at index or later.
func (p patient) WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error) {
	if snap := p.store.Snapshot(); snap.Index() >= index {
		return snap, nil
	}
	limited, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	snap, err := p.store.WaitIndex(limited, index)
	if err != nil && ctx.Err() == nil {
		if p.late != nil {
			p.late(index)
		}
		return nil, fmt.Errorf("not reached in %v, it is at %d", stateWait, p.store.Snapshot().Index())
	}
	return snap, err
}

// source hands work out to this server's workers, its own or the leader's, while it
// has every policy that is active.
type source struct{ s *Server }

// Dequeue waits for an evaluation.
func (q source) Dequeue(ctx context.Context) (broker.Delivery, error) {
	for {
		changed := q.s.began.wait()
		if q.s.term.Load() == nil && q.s.cfg.Peers == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return broker.Delivery{}, ctx.Err()
			}
		}
		if err := q.s.policies.WaitReady(ctx); err != nil {
			return broker.Delivery{}, err
		}
		if q.s.term.Load() == nil && q.s.cfg.Peers != nil {
			d, err := q.s.fetcher.dequeue(ctx)
			if errors.Is(err, errLeads) {
				continue
			}
			return d, err
		}
		d, err := q.s.broker.Dequeue(ctx, nil, 0)
		if err == nil {
			q.s.metrics.delivered(&d)
		}
		return d, err
	}
}

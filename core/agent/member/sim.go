package member

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Sim is a driver that runs nothing: work begins at once, takes its duration, and
// stops within its kill timeout. What it pretends does not outlive the process. Make
// it with NewSim.
type Sim struct {
	capacity map[string]int64

	mu   sync.Mutex
	work map[string]*simWorkload
}

var _ Driver = (*Sim)(nil)

// simWorkload is work that is pretended.
type simWorkload struct {
	Workload
	began time.Time
	gone  time.Time // when it will have stopped; zero: nobody stops it
}

// NewSim makes a driver for a cluster of this capacity.
func NewSim(capacity map[string]int64) *Sim {
	return &Sim{capacity: maps.Clone(capacity), work: map[string]*simWorkload{}}
}

// Resources is what the cluster was said to have.
func (s *Sim) Resources(context.Context) (*ClusterResources, error) {
	return &ClusterResources{Capacity: maps.Clone(s.capacity)}, nil
}

// Run begins work, or changes it.
func (s *Sim) Run(_ context.Context, w *Workload) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.work[w.ID]; p != nil {
		p.Workload, p.gone = *w, time.Time{}
		return nil
	}
	s.work[w.ID] = &simWorkload{Workload: *w, began: time.Now()}
	return nil
}

// Stop has work be gone after its kill timeout.
func (s *Sim) Stop(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.work[id]; p != nil && p.gone.IsZero() {
		p.gone = time.Now().Add(p.KillTimeout)
	}
	return nil
}

// Status is what is pretended.
func (s *Sim) Status(context.Context) (map[string]Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all := time.Now(), map[string]Status{}
	for id, p := range s.work {
		switch {
		case !p.gone.IsZero() && !now.Before(p.gone):
			delete(s.work, id)
		case p.gone.IsZero() && p.Duration > 0 && now.Sub(p.began) >= p.Duration:
			all[id] = Status{Complete: true, Text: "its time is over"}
		default:
			all[id] = Status{Ready: p.Replicas, Held: p.Replicas, Text: "it pretends"}
		}
	}
	return all, nil
}

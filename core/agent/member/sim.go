package member

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Sim is a driver that simulates workloads: they start immediately, run for their
// duration, and stop within their kill timeout. Its state is lost when the process
// exits. Create it with NewSim.
type Sim struct {
	capacity map[string]int64

	mu   sync.Mutex
	work map[string]*simWorkload
}

var _ Driver = (*Sim)(nil)

// A simWorkload is a simulated workload.
type simWorkload struct {
	Workload
	began time.Time
	gone  time.Time // when it will have stopped; zero if it is not stopping
}

// NewSim returns a driver for a cluster with the given capacity.
func NewSim(capacity map[string]int64) *Sim {
	return &Sim{capacity: maps.Clone(capacity), work: map[string]*simWorkload{}}
}

// Resources returns the configured capacity.
func (s *Sim) Resources(context.Context) (*ClusterResources, error) {
	return &ClusterResources{Capacity: maps.Clone(s.capacity)}, nil
}

// Run starts or changes a workload.
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

// Stop ends a workload after its kill timeout.
func (s *Sim) Stop(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.work[id]; p != nil && p.gone.IsZero() {
		p.gone = time.Now().Add(p.KillTimeout)
	}
	return nil
}

// Status returns the status of the simulated workloads.
func (s *Sim) Status(context.Context) (map[string]Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all := time.Now(), map[string]Status{}
	for id, p := range s.work {
		switch {
		case !p.gone.IsZero() && !now.Before(p.gone):
			delete(s.work, id)
		case p.gone.IsZero() && p.Duration > 0 && now.Sub(p.began) >= p.Duration:
			all[id] = Status{Complete: true, Text: "completed"}
		default:
			all[id] = Status{Ready: p.Replicas, Held: p.Replicas, Text: "simulated"}
		}
	}
	return all, nil
}

// Package report holds what controllers of Kubernetes clusters report to a server: their
// state and their latest decisions. It decides nothing, and nothing depends on it.
//
// The reports are in memory, bounded, and not replicated: a controller reports to one
// server, and reports everything current again after it has connected to another one.
//
// A Store is safe for concurrent use.
package report

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Bounds of a Store. A report that exceeds them replaces the oldest ones.
const (
	MaxControllers = 64
	MaxDecisions   = 2048 // of all controllers
	maxID          = 253  // as the name of a host
)

// ErrInvalidID means that the ID of a controller is empty or too long.
var ErrInvalidID = errors.New("the ID of a controller must have 1 to 253 characters")

// A Store holds the reports. Create one with New.
type Store struct {
	clock clock.Clock

	mu          sync.Mutex
	controllers map[string]*client.KubernetesController
	decisions   []*client.KubernetesDecision // oldest first
}

// New returns an empty store.
func New(c clock.Clock) *Store {
	return &Store{clock: c, controllers: map[string]*client.KubernetesController{}}
}

// Put stores a report. It takes ownership of r.
func (s *Store) Put(r *client.KubernetesReport) error {
	if r.ID == "" || len(r.ID) > maxID {
		return ErrInvalidID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Time = s.clock.Now().UnixNano()
	s.controllers[r.ID] = &r.KubernetesController
	if len(s.controllers) > MaxControllers {
		oldest := slices.MinFunc(slices.Collect(maps.Values(s.controllers)), func(a, b *client.KubernetesController) int {
			return int(min(max(a.Time-b.Time, -1), 1))
		})
		delete(s.controllers, oldest.ID)
	}
	for _, d := range r.Decisions {
		if d != nil {
			d.Controller = r.ID
			s.decisions = append(s.decisions, d)
		}
	}
	if n := len(s.decisions) - MaxDecisions; n > 0 {
		s.decisions = slices.Delete(s.decisions, 0, n)
	}
	return nil
}

// Controllers returns the state of each controller, by ID. The caller must not modify it.
func (s *Store) Controllers() []*client.KubernetesController {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*client.KubernetesController, 0, len(s.controllers))
	for _, id := range slices.Sorted(maps.Keys(s.controllers)) {
		list = append(list, s.controllers[id])
	}
	return list
}

// Decisions returns the decisions of a controller, newest first; "" means those of all. The
// caller must not modify them.
func (s *Store) Decisions(controller string) []*client.KubernetesDecision {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []*client.KubernetesDecision{}
	for _, d := range slices.Backward(s.decisions) {
		if controller == "" || d.Controller == controller {
			list = append(list, d)
		}
	}
	return list
}

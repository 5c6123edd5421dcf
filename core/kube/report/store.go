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
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Bounds of a Store. A report that exceeds them replaces the oldest ones.
const (
	MaxControllers = 64
	MaxDecisions   = 2048     // of all controllers
	MaxBytes       = 16 << 20 // of memory, for the decisions of all controllers
	maxID          = 253      // as the name of a host
	maxText        = 4 << 10  // bytes of a text in the state of a controller
)

// ErrInvalidID means that the ID of a controller is empty or too long.
var ErrInvalidID = errors.New("the ID of a controller must have 1 to 253 characters")

// A Store holds the reports. Create one with New.
type Store struct {
	clock clock.Clock

	mu          sync.Mutex
	controllers map[string]*client.KubernetesController
	decisions   []*client.KubernetesDecision // oldest first
	bytes       int                          // of decisions; see sizeOf
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
	state := r.KubernetesController // a copy, because a pointer into r would retain its decisions
	for _, text := range []*string{&state.Version, &state.Problem, &state.Policy, &state.PolicyVersion, &state.PolicyProblem} {
		*text = truncate(*text)
	}
	s.controllers[r.ID] = &state
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
			s.bytes += sizeOf(d)
		}
	}
	n := 0
	for len(s.decisions)-n > MaxDecisions || s.bytes > MaxBytes {
		s.bytes -= sizeOf(s.decisions[n])
		n++
	}
	s.decisions = slices.Delete(s.decisions, 0, n)
	return nil
}

func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "") // a substring would retain the whole text
}

// sizeOf returns the approximate size of a decision in memory. Structures count too, because
// empty ones are much larger than their JSON.
func sizeOf(d *client.KubernetesDecision) int {
	const decision, pod, text = 200, 56, 16 // bytes without texts
	n := decision + sizeOfPod(&d.Pod) + len(d.Node) + len(d.Outcome) + len(d.Problem) + len(d.PolicyVersion)
	for i := range d.Victims {
		n += pod + sizeOfPod(&d.Victims[i])
	}
	for _, reason := range d.Reasons {
		n += text + len(reason)
	}
	return n
}

// sizeOfPod returns the size of the texts of a pod.
func sizeOfPod(p *client.KubernetesPod) int { return len(p.Namespace) + len(p.Name) + len(p.UID) }

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

package app

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/replication"
)

// observerBuffer connects the log to the server that is created from it. The log applies
// its entries when it is opened, before the server exists; entries applied until then are
// buffered.
type observerBuffer struct {
	mu       sync.Mutex
	pending  []replication.Applied
	observer func([]replication.Applied)
}

func (r *observerBuffer) observe(list []replication.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.observer == nil {
		// The newest snapshot holds all that came before it.
		if i := slices.IndexFunc(list, func(a replication.Applied) bool { return a.Entry == nil }); i >= 0 {
			r.pending, list = nil, list[i:]
		}
		r.pending = append(r.pending, list...)
		return
	}
	r.observer(list)
}

// attach passes the buffered entries to the server, and all later ones.
func (r *observerBuffer) attach(to func([]replication.Applied)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		to(r.pending)
	}
	r.pending, r.observer = nil, to
}

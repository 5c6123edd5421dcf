package app

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/replication"
)

// observerBuffer joins the log to the server that is made from it. The log applies what it
// holds as soon as it is opened, and the server is made with the log: what comes
// before there is a server is kept for it.
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

// attach gives the server what has come, and from now on whatever comes.
func (r *observerBuffer) attach(to func([]replication.Applied)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		to(r.pending)
	}
	r.pending, r.observer = nil, to
}

package app

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/replication"
)

// relay joins the log to the server that is made from it. The log applies what it
// holds as soon as it is opened, and the server is made with the log: what comes
// before there is a server is kept for it.
type relay struct {
	mu      sync.Mutex
	waiting []replication.Applied
	to      func([]replication.Applied)
}

func (r *relay) observe(list []replication.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		// The newest snapshot holds all that came before it.
		if i := slices.IndexFunc(list, func(a replication.Applied) bool { return a.Entry == nil }); i >= 0 {
			r.waiting, list = nil, list[i:]
		}
		r.waiting = append(r.waiting, list...)
		return
	}
	r.to(list)
}

// attach gives the server what has come, and from now on whatever comes.
func (r *relay) attach(to func([]replication.Applied)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 {
		to(r.waiting)
	}
	r.waiting, r.to = nil, to
}

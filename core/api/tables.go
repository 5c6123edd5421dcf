package api

import (
	"sync"

	"github.com/cede-scheduler/cede/core/state"
)

// tableWatches knows when whole tables last changed.
//
// The naive way compares the index of a query with that of the state: on a busy
// cluster every query would then be answered at once, whatever it asks about.
// ModifyIndex tells what was written, but not what is gone. So one watch is kept
// on each table that is asked about, and looked at when somebody asks: once it
// has fired, the table is taken to have changed at the newest index there is.
// That may be later than it was, never earlier.
type tableWatches struct {
	states States
	mu     sync.Mutex
	known  map[state.Table]*tableWatch
}

type tableWatch struct {
	watch *state.Watch
	index uint64
}

func newTables(s States) *tableWatches {
	return &tableWatches{states: s, known: map[state.Table]*tableWatch{}}
}

// changed is the index of a table's last change, or a later one.
func (t *tableWatches) changed(table state.Table) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known[table]
	if w != nil {
		select {
		case <-w.watch.C:
		default:
			return w.index
		}
	}
	w = &tableWatch{watch: t.states.Watch(table.All())}
	w.index = t.states.Snapshot().Index()
	t.known[table] = w
	return w.index
}

package api

import (
	"sync"

	"github.com/cede-scheduler/cede/core/state"
)

// tableWatches tracks when whole tables last changed.
//
// The naive way is to compare the index of a query with the index of the state. On a
// busy cluster every query would then return at once, whether or not its result
// changed. ModifyIndex covers updates, but not deletions. Therefore one watch is kept
// for each queried table and checked by the next query: if it has fired, the table
// counts as changed at the current index of the state. That may be later than the
// actual change, but never earlier.
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

// changed returns the index of a table's last change, or a later index.
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

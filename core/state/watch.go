package state

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cede-scheduler/cede/core/model"
)

// A Table identifies what a watch covers.
type Table uint8

// The tables. TableConfig covers the settings of operators, including priority
// classes. TablePolicies covers versions by ID and states by name. TableJobAllocs
// and the next two are views of allocations and evaluations by owner. TableClusters
// is also touched by assignments and claims on the cluster, TableBindings by
// assignments of the binding.
const (
	TableNodes Table = iota
	TableJobs
	TableAllocs
	TableEvals
	TableClaims
	TableConfig
	TableJobAllocs
	TableNodeAllocs
	TableJobEvals
	TableJobVersions
	TableClasses
	TablePolicies
	TableTokens
	TableBudgets
	TableClusters
	TableBindings
	TableAssignments
	TableNamespaces
	TableSigners
	TableAudit
	tables = iota
)

// A Key identifies a table, or one row of it. Namespace is set for jobs, bindings
// and budgets only. If ID is empty, the key stands for the whole table.
type Key struct {
	Table     Table
	Namespace string
	ID        string
}

// All returns the key of the whole table.
func (t Table) All() Key { return Key{Table: t} }

// Of returns the key of the row with an ID.
func (t Table) Of(id string) Key { return Key{Table: t, ID: id} }

// OfJob returns the key of the row of a job or binding.
func (t Table) OfJob(key model.JobKey) Key {
	return Key{Table: t, Namespace: key.Namespace, ID: key.ID}
}

// A Watch is closed once, by the first commit that touches one of its keys. It may
// be closed spuriously, but it never stays open after such a commit.
type Watch struct {
	C    <-chan struct{}
	ch   chan struct{}
	hub  *hub
	keys []Key
}

// Stop ends the watch. It may be called more than once, and after C was closed.
func (w *Watch) Stop() { w.hub.stop(w) }

// A hub is the registry of watches. A commit needs two atomic loads to find that there
// are none: a watch is counted before its owner reads a snapshot, and a commit
// publishes before it reads the counts, so one of the two observes the other. Writers
// hold no lock of the hub while they change the state, and only for a moment when they
// publish it.
type hub struct {
	waiters atomic.Int64 // watches and index waits
	keyed   atomic.Int64 // watches with a key of a single row

	mu      sync.Mutex
	watches map[Key]map[*Watch]struct{}
	indexes []*indexWait
}

type indexWait struct {
	index   uint64
	reached chan struct{}
}

func (h *hub) watchesKeys() bool { return h.keyed.Load() > 0 }

func (w *Watch) keyed() bool {
	return slices.ContainsFunc(w.keys, func(k Key) bool { return k.ID != "" })
}

func (h *hub) watch(keys []Key) *Watch {
	ch := make(chan struct{})
	w := &Watch{C: ch, ch: ch, hub: h, keys: slices.Clone(keys)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters.Add(1)
	if w.keyed() {
		h.keyed.Add(1)
	}
	if h.watches == nil {
		h.watches = map[Key]map[*Watch]struct{}{}
	}
	for _, k := range w.keys {
		if h.watches[k] == nil {
			h.watches[k] = map[*Watch]struct{}{}
		}
		h.watches[k][w] = struct{}{}
	}
	return w
}

func (h *hub) stop(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(w)
}

// remove removes a watch from every set. It returns false if the watch was closed
// or stopped before.
func (h *hub) remove(w *Watch) bool {
	if w.ch == nil {
		return false
	}
	h.waiters.Add(-1)
	if w.keyed() {
		h.keyed.Add(-1)
	}
	for _, k := range w.keys {
		delete(h.watches[k], w)
		if len(h.watches[k]) == 0 {
			delete(h.watches, k)
		}
	}
	w.ch = nil
	return true
}

// waitIndex returns a channel that is closed once a commit reaches the index. The
// caller must call cancel, and must compare the index again after registering, because
// the commit may have come before.
func (h *hub) waitIndex(index uint64) (reached <-chan struct{}, cancel func()) {
	w := &indexWait{index: index, reached: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters.Add(1)
	h.indexes = append(h.indexes, w)
	return w.reached, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if i := slices.Index(h.indexes, w); i >= 0 {
			h.indexes = slices.Delete(h.indexes, i, i+1)
			h.waiters.Add(-1)
		}
	}
}

// notify closes the watches of the keys that t wrote. It is called after the new
// snapshot is published, so that a reader that it wakes finds the change.
func (h *hub) notify(t *Txn) {
	if h.waiters.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.indexes = slices.DeleteFunc(h.indexes, func(w *indexWait) bool {
		if w.index > t.index {
			return false
		}
		close(w.reached)
		h.waiters.Add(-1)
		return true
	})
	switch {
	case t.restores:
		h.wakeWhere(func(Key) bool { return true })
	case t.records:
		for table := range Table(tables) {
			if t.tables&(1<<table) != 0 {
				h.wake(table.All())
			}
		}
		for _, k := range t.touched {
			h.wake(k)
		}
	case len(h.watches) > 0:
		// No watch of a single row existed when t began, so it recorded no keys.
		h.wakeWhere(func(k Key) bool { return t.tables&(1<<k.Table) != 0 })
	}
}

// wake closes the watches of a key. Several keys of one commit may belong to one watch;
// remove reports whether this is the first.
func (h *hub) wake(k Key) {
	for w := range h.watches[k] {
		ch := w.ch
		if h.remove(w) {
			close(ch)
		}
	}
}

func (h *hub) wakeWhere(match func(Key) bool) {
	for k := range h.watches {
		if match(k) {
			h.wake(k)
		}
	}
}

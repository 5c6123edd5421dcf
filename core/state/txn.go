package state

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// A Txn is a branch of the state that is being written. It is the facade of all
// tables: it has more than 30 methods because each of the 15 tables has an upsert
// and a delete, which also maintain the lists of other tables. Bookkeeping within
// one table is in the methods of that table.
type Txn struct {
	View
	owner    cow.Owner
	store    *Store // nil if it is a fork
	records  bool   // touched is recorded, since a watch of a single key exists
	restores bool   // values retain the indexes they are written with
	ended    bool
	tables   uint32 // bit set of the written Tables
	touched  []Key
}

// Fork branches the snapshot. The branch reads and writes like a transaction at the
// given index and is never published.
func (sn *Snapshot) Fork(index uint64) *Txn {
	if index < sn.index {
		panic(fmt.Sprintf("state: fork at index %d of %d", index, sn.index))
	}
	return &Txn{View: sn.at(index), owner: cow.NewOwner()}
}

// Snapshot returns the current state of the branch; more writes may follow.
func (t *Txn) Snapshot() *Snapshot {
	// From here on, the snapshot shares the blocks that the branch owned.
	t.owner = cow.NewOwner()
	return &Snapshot{View: t.View}
}

// Draft returns the current state of the branch for callers that alternate between
// writes and reads. It costs no later copies, but it is invalid after the next
// write.
func (t *Txn) Draft() *Snapshot { return &Snapshot{View: t.View} }

// Commit publishes the transaction and closes the watches of what it wrote. It
// panics if the transaction is a fork or has ended.
func (t *Txn) Commit() *Snapshot {
	if t.store == nil {
		panic("state: a fork cannot be committed")
	}
	t.end()
	sn := &Snapshot{View: t.View}
	t.store.current.Store(sn)
	t.store.writer.Unlock()
	t.store.hub.notify(t)
	return sn
}

// Abort drops the transaction. It does nothing after Commit, so that it can be
// deferred.
func (t *Txn) Abort() {
	if t.ended || t.store == nil {
		return
	}
	t.end()
	t.store.writer.Unlock()
}

func (t *Txn) end() {
	if t.ended {
		panic("state: transaction has ended")
	}
	t.ended = true
	t.owner = 0
}

// touch records a written key for the watches.
func (t *Txn) touch(k Key) {
	if t.ended {
		panic("state: write to a transaction that has ended")
	}
	t.tables |= 1 << k.Table
	if t.records {
		t.touched = append(t.touched, k)
	}
}

// GrowDimensions adds resource names in the given order. A restore calls it first,
// because vectors have no meaning without that order.
func (t *Txn) GrowDimensions(names ...string) error {
	for _, name := range names {
		if err := t.RequireDimensions(model.Resources{name: 0}); err != nil {
			return err
		}
	}
	return nil
}

// RequireDimensions adds the resource names of rs that are missing. It returns
// model.ErrTooManyDimensions without a change if there would be too many. New
// names appear at most a dozen times in the life of a cluster, so every chunk is
// widened at once.
func (t *Txn) RequireDimensions(rs ...model.Resources) error {
	dims, err := t.dims.With(rs...)
	if err != nil || dims == t.dims {
		return err
	}
	t.dims = dims
	for i := range t.chunks {
		t.ownChunk(t.owner, i).widen(dims.Len())
	}
	return nil
}

// stamp sets the indexes of a value that is being written. created is the index at
// which it was first written, or 0 if that is now.
func (t *Txn) stamp(create, modify *uint64, created uint64) {
	if t.restores {
		return
	}
	*modify = t.index
	*create = t.index
	if created != 0 {
		*create = created
	}
}

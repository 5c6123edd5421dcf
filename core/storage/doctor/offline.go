package doctor

import (
	"errors"
	"fmt"
	"os"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
)

// Stopped is what the data directory of a server that is stopped holds, for
// whoever only reads.
type Offline struct {
	layout    datadir.Layout
	db        *badger.DB
	state     raftlog.State
	snapshots []snapshot.Info
}

// ReadStopped shows the directory of a server that is stopped to look, and
// changes nothing there: what must be opened is copied to the folder for
// temporary files. It is ErrLocked while a server runs, and a *DamageError where
// the log, read whole, is not as it was written.
func Inspect(dir string, look func(*Offline) error) (err error) {
	layout := datadir.Layout{Dir: dir}
	if _, err := os.Stat(layout.Log()); err != nil {
		return fmt.Errorf("there is no log: %w", err)
	}
	lock, err := datadir.AcquireReadLock(layout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	mark, vouched, err := raftlog.Prepare(layout)
	if err != nil {
		return err
	}
	s := &Offline{layout: layout}
	if s.snapshots, err = snapshot.List(layout, true); err != nil {
		return err
	}
	return badgerdb.WithCopy(layout.Log(), func(db *badger.DB) error {
		v, err := raftlog.Verify(db, mark, vouched, -1)
		if err := v.Err(layout, err); err != nil {
			return err
		}
		if err := snapshot.CheckCoverage(layout, s.snapshots, v.State.First, v.State.Floor); err != nil {
			return err
		}
		s.db, s.state = db, v.State
		return look(s)
	}, func(err error) error {
		return badgerdb.OpenError("raft log", layout.Log(), datadir.RemedyRejoin, err)
	})
}

// Range is the first and the last entry of the log, and up to where it is known
// that entries are committed; 0: none.
func (s *Offline) Range() (first, last, commit uint64) {
	return s.state.First, s.state.Last, s.state.Commit
}

// Entry reads the entry at index.
func (s *Offline) Entry(index uint64, into *raft.Log) error {
	if !s.state.Contains(index) {
		return raft.ErrLogNotFound
	}
	if err := raftlog.ReadEntry(s.db, index, into); err != nil {
		return raftlog.Damage(s.layout, fmt.Sprintf("entry %d cannot be read", index), err)
	}
	return nil
}

// Snapshots are those that can be used, newest first.
func (s *Offline) Snapshots() (usable []snapshot.Info) {
	for _, snap := range s.snapshots {
		if !snap.Unfinished && snap.Problem == nil {
			usable = append(usable, snap)
		}
	}
	return usable
}

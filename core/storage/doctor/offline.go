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

// An Offline gives read access to the data directory of a stopped server. It is valid
// only during the call of Inspect that created it.
type Offline struct {
	layout    datadir.Layout
	db        *badger.DB
	state     raftlog.State
	snapshots []snapshot.Info
}

// Inspect calls look with read access to the directory of a stopped server, and changes
// nothing there: the log is copied to a temporary directory. It returns ErrLocked while a
// server runs, and a *DamageError if any entry of the log is damaged.
func Inspect(dir string, look func(*Offline) error) (err error) {
	layout := datadir.Layout{Dir: dir}
	if _, err := os.Stat(layout.Log()); err != nil {
		return fmt.Errorf("no log: %w", err)
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
		// A caller that replays the log would compute a wrong state from a damaged one,
		// so every entry is verified first.
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

// Range returns the first and the last index of the log, and an index up to which entries
// are known to be committed. All are 0 if the log is empty.
func (s *Offline) Range() (first, last, commit uint64) {
	return s.state.First, s.state.Last, s.state.Commit
}

// Entry reads the entry at index. It returns raft.ErrLogNotFound if the log does not
// contain it. It reads from the disk each time: into is overwritten and belongs to the
// caller.
func (s *Offline) Entry(index uint64, into *raft.Log) error {
	if !s.state.Contains(index) {
		return raft.ErrLogNotFound
	}
	if err := raftlog.ReadEntry(s.db, index, into); err != nil {
		return raftlog.Damage(s.layout, fmt.Sprintf("cannot read entry %d", index), err)
	}
	return nil
}

// Snapshots returns the usable snapshots, newest first. A remnant has a Problem, so it
// is left out.
func (s *Offline) Snapshots() (usable []snapshot.Info) {
	for _, snap := range s.snapshots {
		if !snap.Unfinished && snap.Problem == nil {
			usable = append(usable, snap)
		}
	}
	return usable
}

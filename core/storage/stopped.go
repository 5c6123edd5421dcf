package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"
)

// Stopped is what the data directory of a server that is stopped holds, for
// whoever only reads.
type Stopped struct {
	layout    Layout
	db        *badger.DB
	state     logState
	snapshots []Snapshot
}

// ReadStopped shows the directory of a server that is stopped to look, and
// changes nothing there: what must be opened is copied to the folder for
// temporary files. It is ErrLocked while a server runs, and a *DamageError where
// the log, read whole, is not as it was written.
func ReadStopped(dir string, look func(*Stopped) error) (err error) {
	layout := Layout{dir}
	if _, err := os.Stat(layout.Log()); err != nil {
		return fmt.Errorf("there is no log: %w", err)
	}
	lock, err := borrowLock(layout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.unlock()) }()
	mark, vouched, err := prepareLog(layout)
	if err != nil {
		return err
	}
	s := &Stopped{layout: layout}
	if s.snapshots, err = ListSnapshots(layout, true); err != nil {
		return err
	}
	return withShadow(layout.Log(), func(db *badger.DB) error {
		v, err := verifyLog(db, mark, vouched, -1)
		if err := v.verdict(layout, err); err != nil {
			return err
		}
		if err := checkCover(layout, s.snapshots, v.state.first, v.state.floor); err != nil {
			return err
		}
		s.db, s.state = db, v.state
		return look(s)
	}, func(err error) error {
		return engineError("raft log", layout.Log(), remedyRejoin, err)
	})
}

// Range is the first and the last entry of the log, and up to where it is known
// that entries are committed; 0: none.
func (s *Stopped) Range() (first, last, commit uint64) {
	return s.state.first, s.state.last, s.state.commit
}

// Entry reads the entry at index.
func (s *Stopped) Entry(index uint64, into *raft.Log) error {
	if !s.state.has(index) {
		return raft.ErrLogNotFound
	}
	if err := readEntry(s.db, index, into); err != nil {
		return logDamage(s.layout, fmt.Sprintf("entry %d cannot be read", index), err)
	}
	return nil
}

// Snapshots are those that can be used, newest first.
func (s *Stopped) Snapshots() (usable []Snapshot) {
	for _, snap := range s.snapshots {
		if !snap.Unfinished && snap.Problem == nil {
			usable = append(usable, snap)
		}
	}
	return usable
}

// Open reads the snapshot's state.
func (s Snapshot) Open() (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.Path, "state.bin"))
}

package raftshim

import (
	"errors"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"
)

// An FSM is the state machine that Start drives. Its ApplyBatch must skip entries
// at or below StateIndex: after an outdated snapshot, Raft replays the entries
// that follow the snapshot.
type FSM interface {
	raft.BatchingFSM
	// StateIndex returns the index of the last entry in the state.
	StateIndex() uint64
	// Err returns the error that the FSM halted with, or nil.
	Err() error
}

// A snapshotLock is held while a snapshot is written, installed or restored.
// Raft lets the state be replaced while a snapshot of the old state is being
// written. Once written, that snapshot counts as the newest; a leader then sends
// it in a loop to a follower that needs the snapshot that came between.
type snapshotLock chan struct{}

// lock waits for the lock. It returns false if stop is closed first.
func (l snapshotLock) lock(stop <-chan struct{}) bool {
	select {
	case l <- struct{}{}:
		return true
	case <-stop:
		return false
	}
}

func (l snapshotLock) tryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l snapshotLock) unlock() { <-l }

// ErrSnapshotBusy means that another snapshot is being written, installed or
// restored.
var ErrSnapshotBusy = errors.New("another snapshot is in progress")

// fsm adds the lock and the check for outdated snapshots to an FSM.
type fsm struct {
	FSM
	lock       snapshotLock
	log        *slog.Logger
	restoreErr error // of the last Restore that failed; raft.NewRaft drops it
}

var _ raft.BatchingFSM = (*fsm)(nil)

// Snapshot implements raft.FSM. It fails while the state is being replaced.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	if !f.lock.tryLock() {
		return nil, ErrSnapshotBusy
	}
	s, err := f.FSM.Snapshot()
	if err != nil {
		f.lock.unlock()
		return nil, err
	}
	return &lockedSnapshot{FSMSnapshot: s, lock: f.lock}, nil
}

// A lockedSnapshot holds the lock until it is released.
type lockedSnapshot struct {
	raft.FSMSnapshot
	lock     snapshotLock
	released bool
}

// Release implements raft.FSMSnapshot. It may be called more than once.
func (s *lockedSnapshot) Release() {
	if s.released {
		return
	}
	s.released = true
	s.FSMSnapshot.Release()
	s.lock.unlock()
}

// Restore implements raft.FSM.
//
// It ignores a snapshot older than the state. Raft installs such a snapshot if it
// was in transit for long, and replays the entries that follow it. The transport
// filter rejects it earlier, but not every transport has a filter. To go back
// would show readers an older state than they have already read; the state
// contains everything that the snapshot does.
func (f *fsm) Restore(in io.ReadCloser) error {
	if err := f.Err(); err != nil {
		_ = in.Close() // the FSM's error matters
		return err
	}
	if index, ok := snapshotIndex(in); ok && index < f.StateIndex() {
		f.log.Info("outdated snapshot ignored", "index", index, "state_index", f.StateIndex())
		_ = in.Close() // nothing was read from it
		return nil
	}
	f.restoreErr = f.FSM.Restore(in)
	return f.restoreErr
}

// indexedSnapshots is a snapshot store whose readers carry their snapshot's log
// index, which raft.FSM.Restore does not receive otherwise.
type indexedSnapshots struct{ raft.SnapshotStore }

type indexedReader struct {
	io.ReadCloser
	index uint64
}

// Open implements raft.SnapshotStore.
func (s indexedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, in, err := s.SnapshotStore.Open(id)
	if err != nil {
		return nil, nil, err
	}
	return meta, &indexedReader{in, meta.Index}, nil
}

// snapshotIndex returns the log index of a snapshot that was opened by
// indexedSnapshots, and false for any other reader.
func snapshotIndex(in io.ReadCloser) (uint64, bool) {
	for {
		switch r := in.(type) {
		case *indexedReader:
			return r.index, true
		case raft.ReadCloserWrapper:
			in = r.WrappedReadCloser()
		default:
			return 0, false
		}
	}
}

package replication

import (
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// Snapshot implements raft.FSM. It costs nothing: the state is immutable.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.stopped(); err != nil {
		return nil, err // what the log says next is not in this state
	}
	return &frozen{snap: f.store.Snapshot(), fsm: f, end: f.modules.read()}, nil
}

// frozen is a state that Raft may want on the disk.
type frozen struct {
	snap *state.Snapshot
	fsm  *fsm
	end  func(*state.Snapshot)
}

// Persist implements raft.FSMSnapshot.
func (s *frozen) Persist(sink raft.SnapshotSink) error {
	if err := writeSnapshot(sink, s.snap, s.fsm.modules.get); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *frozen) Release() {
	if s.end != nil {
		s.end(s.fsm.store.Snapshot())
		s.end = nil
	}
}

// Restore implements raft.FSM: the state is replaced at once, or not at all.
func (f *fsm) Restore(in io.ReadCloser) error {
	defer func() { _ = in.Close() }()
	if err := f.stopped(); err != nil {
		return err
	}
	before := f.store.Snapshot()
	s := &restorer{keep: f.modules.keep, begin: func(index uint64) *state.Txn {
		// An operator may go back to an older state: indexes still only grow, as
		// others wait for them.
		return f.store.BeginRestore(max(index, before.Index()))
	}}
	defer func() {
		if s.txn != nil {
			s.txn.Abort()
		}
	}()
	if err := s.read(in); err != nil {
		f.unread = err
		return err
	}
	snap := s.txn.Commit()
	var unused []string
	for _, v := range before.PolicyVersions() {
		unused = append(unused, v.Digest)
	}
	f.modules.drop(snap, unused)
	f.applied.Store(snap.Index())
	f.observe([]Applied{{Index: snap.Index(), Snap: snap}})
	return nil
}

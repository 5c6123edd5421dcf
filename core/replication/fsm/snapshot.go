package fsm

import (
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// Snapshot implements raft.FSM. It costs nothing, since a state is immutable. It
// fails if the FSM has halted: the log's next entry is not in the state.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &pinnedState{snap: f.store.Snapshot(), fsm: f, release: f.PinModules()}, nil
}

// A pinnedState is a state that Raft may write to disk, with its modules. While it
// exists, no module of the state is deleted.
type pinnedState struct {
	snap    *state.Snapshot
	fsm     *FSM
	release func() // nil once it was called
}

// Persist implements raft.FSMSnapshot. Raft calls it on a goroutine of its own, while
// entries are being applied.
func (s *pinnedState) Persist(sink raft.SnapshotSink) error {
	if err := snapshot.Write(sink, s.snap, s.fsm.Module); err != nil {
		_ = sink.Cancel() // the first error matters
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot. It may be called more than once.
func (s *pinnedState) Release() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Restore implements raft.FSM. It replaces the whole state, or returns an error
// and changes nothing.
func (f *FSM) Restore(in io.ReadCloser) error {
	defer func() { _ = in.Close() }() // it was read to its end, or the read error matters
	if err := f.Err(); err != nil {
		return err
	}
	before := f.store.Snapshot()
	r := snapshot.Restorer{Modules: f.modules.storeWhole, Begin: f.store.BeginRestore}
	txn, err := r.Read(in)
	if err != nil {
		return err
	}
	snap, err := f.commitRestore(before, txn)
	if err != nil {
		return err
	}
	f.observe([]replication.Applied{{Index: snap.Index(), Snap: snap}})
	return nil
}

// commitRestore replaces the state by a restored one, unless this release does not
// understand it, and deletes modules that only the earlier state used.
func (f *FSM) commitRestore(before *state.Snapshot, txn *state.Txn) (*state.Snapshot, error) {
	if err := f.versions.CheckNewest(txn.Meta().Version); err != nil {
		txn.Abort()
		return nil, err
	}
	snap := txn.Commit()
	// Modules of the state before are deleted unless the restored one uses them too.
	var replaced []string
	for _, v := range before.PolicyVersions() {
		replaced = append(replaced, v.Digest)
	}
	f.modules.delete(snap, replaced)
	return snap, nil
}

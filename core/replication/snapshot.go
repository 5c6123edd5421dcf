package replication

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// oneAtATime lets one go on at a time. Raft does not mind when the state is replaced while
// a snapshot of it is on its way to the disk: once that is there it takes it for
// the newest, and as a leader sends it to who needs the one that came between, without a
// pause and for ever.
type oneAtATime chan struct{}

// begin is false where stop is closed before it is one's turn.
func (o oneAtATime) begin(stop <-chan struct{}) bool {
	select {
	case o <- struct{}{}:
		return true
	case <-stop:
		return false
	}
}

func (o oneAtATime) end() { <-o }

// errReplaced is why no snapshot is written for now.
var errReplaced = errors.New("the state is being replaced by a snapshot")

// Snapshot implements raft.FSM. It costs nothing: the state is immutable.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.stopped(); err != nil {
		return nil, err // what the log says next is not in this state
	}
	select {
	case f.writing <- struct{}{}:
	default:
		return nil, errReplaced
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
		s.fsm.writing.end()
	}
}

// placed tells the state machine behind which index of the log a snapshot stands.
type placed struct{ raft.SnapshotStore }

type placedSource struct {
	io.ReadCloser
	index uint64
}

// Open implements raft.SnapshotStore.
func (p placed) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, in, err := p.SnapshotStore.Open(id)
	if err != nil {
		return nil, nil, err
	}
	return meta, &placedSource{in, meta.Index}, nil
}

// placeOf is the index behind which a snapshot stands that Raft hands over; false for
// one that does not come from a placed store.
func placeOf(in io.ReadCloser) (uint64, bool) {
	for {
		switch r := in.(type) {
		case *placedSource:
			return r.index, true
		case raft.ReadCloserWrapper:
			in = r.WrappedReadCloser()
		default:
			return 0, false
		}
	}
}

// Restore implements raft.FSM: the state is replaced at once, or not at all.
//
// Raft would take a snapshot that was long under way when more than it holds is applied,
// and hand over again what follows it in the log. Such a one does not get there (known.go)
// but on a transport without an inbox. Going back would show readers a state that they have
// seen the end of; what is here holds all of that, so it stays, and so does what comes
// twice (see ApplyBatch).
func (f *fsm) Restore(in io.ReadCloser) error {
	defer func() { _ = in.Close() }()
	if err := f.stopped(); err != nil {
		return err
	}
	before := f.store.Snapshot()
	if at, known := placeOf(in); known && at < before.Index() {
		f.log.Info("a snapshot came too late", "index", at, "state", before.Index())
		return nil
	}
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
	err := s.read(in)
	if err == nil {
		err = f.version.tooNew(s.txn.Meta().Version)
	}
	if err != nil {
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

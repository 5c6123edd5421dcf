package raftshim

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"
)

// counter is an FSM whose state is the index of the last entry and the number of
// entries that were applied.
type counter struct{ index, applied uint64 }

func (c *counter) Apply(l *raft.Log) any { return c.ApplyBatch([]*raft.Log{l})[0] }

func (c *counter) ApplyBatch(logs []*raft.Log) []any {
	for _, l := range logs {
		if l.Index > c.index {
			c.index, c.applied = l.Index, c.applied+1
		}
	}
	return make([]any, len(logs))
}

func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return counterSnapshot{byte(c.index)}, nil }

func (c *counter) Restore(in io.ReadCloser) error {
	data, err := io.ReadAll(in)
	c.index = uint64(data[0])
	return errors.Join(err, in.Close())
}

func (c *counter) StateIndex() uint64 { return c.index }
func (c *counter) Err() error         { return nil }

type counterSnapshot struct{ index byte }

func (s counterSnapshot) Persist(sink raft.SnapshotSink) error {
	_, err := sink.Write([]byte{s.index})
	return errors.Join(err, sink.Close())
}

func (counterSnapshot) Release() {}

func entries(from, to uint64) (list []*raft.Log) {
	for i := from; i <= to; i++ {
		list = append(list, &raft.Log{Index: i})
	}
	return list
}

// A snapshot that was in transit for long does not take the state back, and entries
// that Raft replays after it are not applied twice. UPSTREAM.md, section 15.
func TestFSM_IgnoresOutdatedSnapshot(t *testing.T) {
	state := &counter{}
	f := &fsm{FSM: state, lock: make(snapshotLock, 1), log: slog.New(slog.DiscardHandler)}
	f.ApplyBatch(entries(1, 5))
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	snaps := indexedSnapshots{raft.NewInmemSnapshotStore()}
	_, transport := raft.NewInmemTransport("s")
	sink, err := snaps.Create(1, 5, 1, raft.Configuration{}, 0, transport)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Persist(sink); err != nil {
		t.Fatal(err)
	}
	f.ApplyBatch(entries(6, 8))
	_, in, err := snaps.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(in); err != nil {
		t.Fatal(err)
	}
	f.ApplyBatch(entries(6, 9))
	if state.index != 9 || state.applied != 9 {
		t.Errorf("the state is at %d after %d entries, want 9", state.index, state.applied)
	}
	// A snapshot of unknown index, as raft.RecoverCluster opens them, is restored.
	if err := f.Restore(io.NopCloser(bytes.NewReader([]byte{3}))); err != nil || state.index != 3 {
		t.Errorf("the state is at %d, want 3: %v", state.index, err)
	}
}

// The state is not replaced while a snapshot of it is written. UPSTREAM.md,
// section 13.
func TestFSM_HoldsTheLockWhileASnapshotIsWritten(t *testing.T) {
	f := &fsm{FSM: &counter{}, lock: make(snapshotLock, 1), log: slog.New(slog.DiscardHandler)}
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Snapshot(); !errors.Is(err, ErrSnapshotBusy) {
		t.Errorf("a second snapshot: %v, want ErrSnapshotBusy", err)
	}
	snap.Release()
	snap.Release() // has no effect
	if !f.lock.tryLock() || f.lock.tryLock() {
		t.Error("the lock was not released exactly once")
	}
}

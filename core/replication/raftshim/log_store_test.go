package raftshim

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gapless is a monotonic log in memory.
type gapless struct{ *raft.InmemCommitTrackingStore }

func (gapless) IsMonotonic() bool { return true }

// stores returns a log with entries of one term, and a snapshot at an index.
func stores(t *testing.T, from, to, term, at, atTerm uint64) (gapless, *raft.InmemSnapshotStore) {
	t.Helper()
	log, snapshots := gapless{raft.NewInmemCommitTrackingStore()}, raft.NewInmemSnapshotStore()
	for i := from; i <= to; i++ {
		if err := log.StoreLog(&raft.Log{Index: i, Term: term}); err != nil {
			t.Fatal(err)
		}
	}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, at, atTerm, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return log, snapshots
}

// A server that stopped between installing a snapshot and emptying its log empties
// it when it starts. UPSTREAM.md, section 11.
func TestLogStore_EmptiesReplacedLogAtStartup(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, term, at, atTerm uint64
		remains                    bool
	}{
		"ends before the snapshot":           {1, 5, 1, 9, 1, false},
		"has another term at the snapshot":   {1, 20, 1, 9, 2, false},
		"has the snapshot's entry":           {5, 20, 1, 9, 1, true},
		"ends with the snapshot":             {5, 9, 1, 9, 1, true},
		"starts after the snapshot":          {10, 20, 1, 9, 1, true},
		"ends with another term at its last": {5, 9, 1, 9, 2, false},
	} {
		log, snapshots := stores(t, c.from, c.to, c.term, c.at, c.atTerm)
		if _, err := wrapLogStore(log, snapshots, raft.DefaultConfig()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		last, err := log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if (last == c.to) != c.remains || !c.remains && last != 0 {
			t.Errorf("%s: the log ends at %d", name, last)
		}
	}
}

// fullDisk is a log that cannot be truncated while it is full.
type fullDisk struct {
	gapless
	full bool
}

func (d *fullDisk) DeleteRange(from, to uint64) error {
	if d.full {
		return errors.New("the disk is full")
	}
	return d.gapless.DeleteRange(from, to)
}

// While the disk refuses to empty a replaced log, nothing is read from it and
// nothing is appended. UPSTREAM.md, section 11.
func TestLogStore_IsNotReadWhileTruncationIsPending(t *testing.T) {
	log, snapshots := stores(t, 1, 20, 1, 9, 1)
	disk := &fullDisk{gapless: log}
	s, err := wrapLogStore(disk, snapshots, raft.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	disk.full = true
	if err := s.DeleteRange(1, 20); err == nil {
		t.Fatal("a log that could not be emptied is reported as empty")
	}
	var l raft.Log
	for index, want := range map[uint64]error{5: raft.ErrLogNotFound, 8: raft.ErrLogNotFound, 21: raft.ErrLogNotFound} {
		if err := s.GetLog(index, &l); !errors.Is(err, want) {
			t.Errorf("entry %d: %v, want %v", index, err, want)
		}
	}
	for index, term := range map[uint64]uint64{9: 1, 10: 0, 20: 0} { // the snapshot's entry, and substitutes
		if err := s.GetLog(index, &l); err != nil || l.Term != term || l.Index != index {
			t.Errorf("entry %d: %+v, %v, want term %d", index, l, err, term)
		}
	}
	next := &raft.Log{Index: 10, Term: 2}
	if err := s.StoreLog(next); err == nil {
		t.Error("an entry was appended to a log that should be empty")
	}
	disk.full = false
	if err := s.StoreLog(next); err != nil {
		t.Fatal(err)
	}
	if first, err := s.FirstIndex(); err != nil || first != 10 {
		t.Errorf("the log starts at %d, %v", first, err)
	}
	if err := s.GetLog(10, &l); err != nil || l.Term != 2 {
		t.Errorf("entry 10: %+v, %v", l, err)
	}
}

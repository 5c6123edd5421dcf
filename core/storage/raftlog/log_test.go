package raftlog_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestConformance_RaftsStoreInMemory(t *testing.T) {
	conformance(t, func(*testing.T) logStore { return raft.NewInmemStore() })
}

func TestConformance_Log(t *testing.T) {
	conformance(t, func(t *testing.T) logStore { return storagetest.OpenLog(t, t.TempDir()) })
}

func TestConformance_LogWithDeadline(t *testing.T) {
	conformance(t, func(t *testing.T) logStore {
		return raftlog.WithDeadline(storagetest.OpenLog(t, t.TempDir()), time.Minute, func(op string) { t.Errorf("%s hangs", op) })
	})
}

// keysOf counts the keys with a prefix in the database of a closed log.
func keysOf(t testing.TB, dir string, prefix byte) int {
	t.Helper()
	o := badger.DefaultOptions(filepath.Join(dir, "raft", "log")).WithLogger(nil)
	db, err := badger.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	n := 0
	err = db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Deleted entries leave the disk, even if the log is reopened in between.
func TestLog_RemovesDeletedEntriesFromDisk(t *testing.T) {
	dir := t.TempDir()
	cfg := storagetest.SmallLogConfig()
	cfg.SweepBatch, cfg.SweepPause = 100, time.Hour
	open := func() *raftlog.Log {
		l, err := raftlog.Open(datadir.Layout{Dir: dir}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	if err := errors.Join(l.StoreLogs(storagetest.Entries(1, 3000, 1)), l.DeleteRange(1, 2500)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := keysOf(t, dir, 'l'); n <= 500 || n > 3000 {
		t.Errorf("%d entries are on the disk before the deletion is complete", n)
	}
	cfg.SweepPause = -1
	l = open()
	first, _ := l.FirstIndex()
	if first != 2501 {
		t.Errorf("the first entry is %d", first)
	}
	deadline := time.Now().Add(10 * time.Second)
	for l.IsSweeping() && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := keysOf(t, dir, 'l'); n != 500 {
		t.Errorf("%d entries are on the disk, want the 500 live ones", n)
	}
}

// Both appends and deletions exceed one transaction.
func TestLog_SplitsLargeBatches(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("one goroutine writes many entries")
	}
	dir := t.TempDir()
	l := storagetest.OpenLog(t, dir)
	const n = 60_000
	if err := l.StoreLogs(storagetest.Entries(1, n, 1)); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteRange(11, n); err != nil {
		t.Fatal(err)
	}
	if err := l.StoreLogs(storagetest.Entries(11, 20, 2)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(t, dir, 'l'); got != 20 {
		t.Errorf("%d entries are on the disk, want 20", got)
	}
	l = storagetest.OpenLog(t, dir)
	for i := uint64(1); i <= 20; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil || e.Term != 1+i/11 {
			t.Errorf("entry %d has term %d, error %v", i, e.Term, err)
		}
	}
}

func TestLog_RefusesGapsAndOverwrites(t *testing.T) {
	l := storagetest.OpenLog(t, t.TempDir())
	if err := l.StoreLogs(storagetest.Entries(5, 9, 3)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a gap":                    l.StoreLog(storagetest.Entry(11, 3)),
		"an overwrite":             l.StoreLog(storagetest.Entry(9, 3)),
		"a lower term":             l.StoreLog(storagetest.Entry(10, 2)),
		"a gap in a batch":         l.StoreLogs([]*raft.Log{storagetest.Entry(10, 3), storagetest.Entry(12, 3)}),
		"a deletion in the middle": l.DeleteRange(6, 8),
		"entry 0":                  storagetest.OpenLog(t, t.TempDir()).StoreLog(storagetest.Entry(0, 1)),
	} {
		if !errors.Is(err, raftlog.ErrGap) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if last, _ := l.LastIndex(); last != 9 {
		t.Errorf("the last entry is %d", last)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.StoreLog(storagetest.Entry(10, 3)); !errors.Is(err, datadir.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The commit index is stored with entries and never exceeds the last index.
func TestLog_StoresCommitIndex(t *testing.T) {
	dir := t.TempDir()
	l := storagetest.OpenLog(t, dir)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(l.StoreLogs(storagetest.Entries(1, 10, 1)))
	step(l.StageCommitIndex(99))
	step(l.StoreLogs(storagetest.Entries(11, 12, 1)))
	step(l.StageCommitIndex(12))
	step(l.Close())
	l = storagetest.OpenLog(t, dir)
	if c, err := l.GetCommitIndex(); c != 12 || err != nil {
		t.Errorf("commit index %d, error %v; want 12", c, err)
	}
	step(l.DeleteRange(8, 12))
	if c, _ := l.GetCommitIndex(); c != 7 {
		t.Errorf("commit index after deleting the tail: %d", c)
	}
}

// Raft elects, applies, takes a snapshot, compacts and restarts on this log, in virtual
// time.
func TestLog_UnderRaft(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		synctest.Test(t, func(t *testing.T) {
			s, err := storage.Open(storagetest.Config(dir))
			if err != nil {
				t.Fatal(err)
			}
			fsm := &counting{}
			r := startRaft(t, s, fsm)
			for range 30 {
				time.Sleep(200 * time.Millisecond)
				if r.State() == raft.Leader {
					break
				}
			}
			for range 200 {
				if err := r.Apply([]byte("x"), 0).Error(); err != nil {
					t.Fatal(err)
				}
			}
			if want := 200 * (round + 1); fsm.n != want {
				t.Errorf("round %d: %d commands were applied, want %d", round, fsm.n, want)
			}
			if err := r.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
			if err := r.Shutdown().Error(); err != nil {
				t.Fatal(err)
			}
			if first, _ := s.Log().FirstIndex(); first < 150 {
				t.Errorf("round %d: log starts at %d", round, first)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

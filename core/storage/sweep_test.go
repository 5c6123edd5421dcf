package storage_test

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

func TestStore_ReportsBackgroundDeletions(t *testing.T) {
	reported := make(chan time.Duration, 64)
	s, err := storage.Open(storage.Config{
		Dir: t.TempDir(), Log: raftlog.Config{MinFree: -1},
		OnSweep: func(d time.Duration) { // a few records below already cause several batches
			select {
			case reported <- d:
			default: // blocking here would block the writers
			}
		},
		History: history.Config{MaxBytes: 64 << 10, SegmentBytes: 4 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	expect := func(part string) {
		t.Helper()
		select {
		case d := <-reported:
			if d <= 0 {
				t.Errorf("%s took %v", part, d)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no deletion reported for %s", part)
		}
	}
	var entries []*raft.Log
	for i := range uint64(100) {
		entries = append(entries, &raft.Log{Index: i + 1, Term: 1, Data: []byte("x")})
	}
	if err := s.Log().StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	if len(reported) > 0 {
		t.Error("deletion reported before anything was deleted")
	}
	if err := s.Log().DeleteRange(1, 50); err != nil {
		t.Fatal(err)
	}
	expect("the log")
	for i := range uint64(400) {
		if err := s.History().Append("t", i+1, 0, make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	expect("the history")
}

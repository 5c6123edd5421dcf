package storage_test

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// What is deleted in the background is told, and how long it took.
func TestStore_TellsOfWhatItDeletes(t *testing.T) {
	told := make(chan time.Duration, 64)
	s, err := storage.Open(storage.Config{
		Dir: t.TempDir(), Log: raftlog.Config{MinFree: -1},
		OnSweep: func(d time.Duration) { // there may be a batch for every few records below
			select {
			case told <- d:
			default: // whoever waits here keeps those who write waiting
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
	hears := func(what string) {
		t.Helper()
		select {
		case d := <-told:
			if d <= 0 {
				t.Errorf("%s took %v", what, d)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is not told of", what)
		}
	}
	var entries []*raft.Log
	for i := range uint64(100) {
		entries = append(entries, &raft.Log{Index: i + 1, Term: 1, Data: []byte("x")})
	}
	if err := s.Log().StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	if len(told) > 0 {
		t.Error("something is told of before anything is deleted")
	}
	if err := s.Log().DeleteRange(1, 50); err != nil {
		t.Fatal(err)
	}
	hears("the log's")
	for i := range uint64(400) {
		if err := s.History().Append("t", i+1, 0, make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	hears("the history's")
}

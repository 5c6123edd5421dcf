package raftlog_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// blockedStore is a log store whose writes wait for release.
type blockedStore struct {
	raftlog.LogStore
	release chan struct{}
}

func (s *blockedStore) StoreLogs(entries []*raft.Log) error {
	<-s.release
	return s.LogStore.StoreLogs(entries)
}

// inMemory adds the missing method to Raft's in-memory store.
type inMemory struct{ *raft.InmemCommitTrackingStore }

func (inMemory) IsMonotonic() bool { return true }

func TestDeadline_ReportsOnceAndReturnsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blockedStore{inMemory{raft.NewInmemCommitTrackingStore()}, make(chan struct{})}
		var mu sync.Mutex
		var late []string
		d := raftlog.WithDeadline(s, 10*time.Second, func(op string) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, op)
		})
		reported := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(late)
		}
		done := make(chan error, 2)
		go func() { done <- d.StoreLogs(storagetest.Entries(1, 3, 1)) }()
		go func() { done <- d.StoreLogs(storagetest.Entries(4, 5, 1)) }()
		time.Sleep(9 * time.Second)
		if got := reported(); len(got) > 0 {
			t.Errorf("reported %v before the deadline", got)
		}
		time.Sleep(time.Minute)
		if got := reported(); !slices.Equal(got, []string{"StoreLogs"}) {
			t.Errorf("reported %v", got)
		}
		close(s.release)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if last, _ := d.LastIndex(); last != 5 {
			t.Errorf("the last entry is %d", last)
		}
	})
}

func TestDeadline_IgnoresFastWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := raftlog.WithDeadline(inMemory{raft.NewInmemCommitTrackingStore()}, time.Second, func(op string) { t.Errorf("reported %s", op) })
		for _, err := range []error{
			d.StoreLog(storagetest.Entry(1, 1)), d.StoreLogs(storagetest.Entries(2, 9, 1)), d.DeleteRange(1, 4),
			d.Set([]byte("a"), []byte("b")), d.SetUint64([]byte("c"), 1),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
	})
}

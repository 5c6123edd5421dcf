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

// stuck is a log store whose writes wait for a release.
type stuck struct {
	raftlog.LogStore
	release chan struct{}
}

func (s *stuck) StoreLogs(entries []*raft.Log) error {
	<-s.release
	return s.LogStore.StoreLogs(entries)
}

// inMemory is Raft's store in memory, as far as the interface goes.
type inMemory struct{ *raft.InmemCommitTrackingStore }

func (inMemory) IsMonotonic() bool { return true }

func TestDeadline_TellsOnceAndStillAnswersTruly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{inMemory{raft.NewInmemCommitTrackingStore()}, make(chan struct{})}
		var mu sync.Mutex
		var late []string
		d := raftlog.WithDeadline(s, 10*time.Second, func(op string) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, op)
		})
		told := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(late)
		}
		done := make(chan error, 2)
		go func() { done <- d.StoreLogs(storagetest.Entries(1, 3, 1)) }()
		go func() { done <- d.StoreLogs(storagetest.Entries(4, 5, 1)) }()
		time.Sleep(9 * time.Second)
		if got := told(); len(got) > 0 {
			t.Errorf("told %v in time", got)
		}
		time.Sleep(time.Minute)
		if got := told(); !slices.Equal(got, []string{"StoreLogs"}) {
			t.Errorf("told %v", got)
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

func TestDeadline_QuickWritesAreNobodysBusiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := raftlog.WithDeadline(inMemory{raft.NewInmemCommitTrackingStore()}, time.Second, func(op string) { t.Errorf("told %s", op) })
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

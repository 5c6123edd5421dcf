package raftlog_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

var errDisk = errors.New("disk error")

// failingStore rejects writes once full is set.
type failingStore struct {
	raft.StableStore
	full bool
}

func (r *failingStore) Set(key, value []byte) error {
	if r.full {
		return errDisk
	}
	return r.StableStore.Set(key, value)
}

func (r *failingStore) SetUint64(key []byte, value uint64) error {
	if r.full {
		return errDisk
	}
	return r.StableStore.SetUint64(key, value)
}

// A failed write is reported and never returned: Raft would panic.
func TestStableStore_ReportsFailedWriteAndBlocks(t *testing.T) {
	store := &failingStore{StableStore: raft.NewInmemStore()}
	var reported error
	votes := raftlog.NewStableStore(store, func(err error) {
		reported = err
		runtime.Goexit() // otherwise the write would block forever
	})
	if err := errors.Join(votes.SetUint64([]byte("CurrentTerm"), 3), votes.Set([]byte("k"), []byte("v"))); err != nil || reported != nil {
		t.Fatal(err)
	}
	if got, err := votes.GetUint64([]byte("CurrentTerm")); got != 3 || err != nil {
		t.Errorf("term %d, %v", got, err)
	}
	store.full = true
	for _, write := range []func() error{
		func() error { return votes.Set([]byte("k"), []byte("w")) },
		func() error { return votes.SetUint64([]byte("CurrentTerm"), 4) },
	} {
		reported = nil
		returned, done := false, make(chan struct{})
		go func() {
			defer close(done)
			_ = write()
			returned = true
		}()
		<-done
		if returned || !errors.Is(reported, errDisk) {
			t.Errorf("write returned: %t, reported error: %v", returned, reported)
		}
	}
}

package raftlog_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

var errDisk = errors.New("the disk said no")

// reluctant writes nothing once it is full.
type reluctant struct {
	raft.StableStore
	full bool
}

func (r *reluctant) Set(key, value []byte) error {
	if r.full {
		return errDisk
	}
	return r.StableStore.Set(key, value)
}

func (r *reluctant) SetUint64(key []byte, value uint64) error {
	if r.full {
		return errDisk
	}
	return r.StableStore.SetUint64(key, value)
}

// A vote that cannot be written is told, and never answered: Raft would panic.
func TestVotes_ThatCannotBeWrittenAreToldAndNotAnswered(t *testing.T) {
	store := &reluctant{StableStore: raft.NewInmemStore()}
	var told error
	votes := raftlog.NewStableStore(store, func(err error) {
		told = err
		runtime.Goexit() // or it would wait for ever
	})
	if err := errors.Join(votes.SetUint64([]byte("CurrentTerm"), 3), votes.Set([]byte("k"), []byte("v"))); err != nil || told != nil {
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
		told = nil
		answered, done := false, make(chan struct{})
		go func() {
			defer close(done)
			_ = write()
			answered = true
		}()
		<-done
		if answered || !errors.Is(told, errDisk) {
			t.Errorf("answered: %t, told %v", answered, told)
		}
	}
}

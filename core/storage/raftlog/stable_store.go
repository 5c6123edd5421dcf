package raftlog

import "github.com/hashicorp/raft"

// Votes is where Raft keeps its votes and terms. Raft 1.8 panics where one of them
// cannot be written, in a goroutine of its own: an operator would read a stack
// instead of what the disk said. So failed is called, and the write does not return:
// a server that cannot vote has to end, and whoever is told of it ends the process.
type StableStore struct {
	raft.StableStore
	onError func(error)
}

var _ raft.StableStore = (*StableStore)(nil)

// NewVotes keeps votes in store. failed is called on Raft's own goroutine and must
// not wait for Raft.
func NewStableStore(store raft.StableStore, failed func(error)) *StableStore {
	return &StableStore{store, failed}
}

// Set stores one of Raft's own values.
func (v *StableStore) Set(key, value []byte) error { return v.failStop(v.StableStore.Set(key, value)) }

// SetUint64 stores one of Raft's own numbers.
func (v *StableStore) SetUint64(key []byte, value uint64) error {
	return v.failStop(v.StableStore.SetUint64(key, value))
}

func (v *StableStore) failStop(err error) error {
	if err == nil {
		return nil
	}
	v.onError(err)
	select {}
}

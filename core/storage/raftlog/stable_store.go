package raftlog

import "github.com/hashicorp/raft"

// A StableStore reports failed writes of votes and terms instead of returning them. Raft
// 1.8 panics in its own goroutine if such a write fails, so an operator would see a stack
// trace rather than the error of the disk. Set calls onError and does not return: a server
// that cannot vote must exit, and onError ends the process.
type StableStore struct {
	raft.StableStore
	onError func(error)
}

var _ raft.StableStore = (*StableStore)(nil)

// NewStableStore returns a stable store on top of store. failed is called in Raft's
// goroutine and must not wait for Raft.
func NewStableStore(store raft.StableStore, failed func(error)) *StableStore {
	return &StableStore{store, failed}
}

// Set stores a value of Raft's stable store.
func (v *StableStore) Set(key, value []byte) error { return v.failStop(v.StableStore.Set(key, value)) }

// SetUint64 stores a number of Raft's stable store.
func (v *StableStore) SetUint64(key []byte, value uint64) error {
	return v.failStop(v.StableStore.SetUint64(key, value))
}

// failStop returns only if err is nil.
func (v *StableStore) failStop(err error) error {
	if err == nil {
		return nil
	}
	v.onError(err)
	select {}
}

package storage

import "github.com/hashicorp/raft"

// Votes is where Raft keeps its votes and terms. Raft 1.8 panics where one of them
// cannot be written, in a goroutine of its own: an operator would read a stack
// instead of what the disk said. So failed is called, and the write does not return:
// a server that cannot vote has to end, and whoever is told of it ends the process.
type Votes struct {
	raft.StableStore
	failed func(error)
}

var _ raft.StableStore = (*Votes)(nil)

// NewVotes keeps votes in store. failed is called on Raft's own goroutine and must
// not wait for Raft.
func NewVotes(store raft.StableStore, failed func(error)) *Votes { return &Votes{store, failed} }

// Set stores one of Raft's own values.
func (v *Votes) Set(key, value []byte) error { return v.hold(v.StableStore.Set(key, value)) }

// SetUint64 stores one of Raft's own numbers.
func (v *Votes) SetUint64(key []byte, value uint64) error {
	return v.hold(v.StableStore.SetUint64(key, value))
}

func (v *Votes) hold(err error) error {
	if err == nil {
		return nil
	}
	v.failed(err)
	select {}
}

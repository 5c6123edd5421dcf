package raftlog

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Deadline watches the writes of a log store. A leader whose disk hangs goes on
// sending heartbeats: it leads for ever, and nothing is ever committed. Raft
// itself has no remedy, so after the deadline late is called, once for all, and
// the server gives up its office or ends. Where the hang takes the process as a whole,
// as writes through a memory map may with one processor, its heartbeats end with it.
//
// The write goes on meanwhile, and what it returns is true: to answer with an
// error would be a guess, for the write may still reach the disk.
type Deadline struct {
	LogStore
	after      time.Duration
	onExceeded func(op string)
	once       sync.Once
}

var _ LogStore = (*Deadline)(nil)

// WithDeadline watches store. late is called on a goroutine of its own, with
// the name of the operation that hangs.
func WithDeadline(store LogStore, after time.Duration, late func(op string)) *Deadline {
	return &Deadline{LogStore: store, after: after, onExceeded: late}
}

func (d *Deadline) watch(op string) *time.Timer {
	return time.AfterFunc(d.after, func() { d.once.Do(func() { d.onExceeded(op) }) })
}

// StoreLog appends one entry.
func (d *Deadline) StoreLog(entry *raft.Log) error {
	defer d.watch("StoreLogs").Stop()
	return d.LogStore.StoreLog(entry)
}

// StoreLogs appends entries.
func (d *Deadline) StoreLogs(entries []*raft.Log) error {
	defer d.watch("StoreLogs").Stop()
	return d.LogStore.StoreLogs(entries)
}

// DeleteRange deletes the oldest or the newest entries.
func (d *Deadline) DeleteRange(low, high uint64) error {
	defer d.watch("DeleteRange").Stop()
	return d.LogStore.DeleteRange(low, high)
}

// Set stores one of Raft's own values.
func (d *Deadline) Set(key, value []byte) error {
	defer d.watch("Set").Stop()
	return d.LogStore.Set(key, value)
}

// SetUint64 stores one of Raft's own numbers.
func (d *Deadline) SetUint64(key []byte, value uint64) error {
	defer d.watch("Set").Stop()
	return d.LogStore.SetUint64(key, value)
}

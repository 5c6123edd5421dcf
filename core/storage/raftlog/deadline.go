package raftlog

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A Deadline watches the writes of a log store. A leader whose disk hangs keeps sending
// heartbeats, so it stays leader and nothing is committed; Raft has no remedy for this.
// After the deadline, onExceeded is called once, and the server gives up leadership or
// exits. If the hang stops the whole process, as a write to mapped memory can on a single
// processor, the heartbeats stop too.
//
// The write continues, and its real result is returned. Returning an error would be a
// guess, because the write may still reach the disk.
type Deadline struct {
	LogStore
	after      time.Duration
	onExceeded func(op string)
	once       sync.Once
}

var _ LogStore = (*Deadline)(nil)

// WithDeadline returns store with watched writes. late is called in its own goroutine with
// the name of the operation that hangs.
func WithDeadline(store LogStore, after time.Duration, late func(op string)) *Deadline {
	return &Deadline{LogStore: store, after: after, onExceeded: late}
}

// watch starts the timer for one operation. The caller stops it when the operation returns.
func (d *Deadline) watch(op string) *time.Timer {
	return time.AfterFunc(d.after, func() { d.once.Do(func() { d.onExceeded(op) }) })
}

// StoreLog appends one entry.
func (d *Deadline) StoreLog(entry *raft.Log) error {
	defer d.watch("StoreLogs").Stop()
	return d.LogStore.StoreLog(entry)
}

// StoreLogs appends entries in order.
func (d *Deadline) StoreLogs(entries []*raft.Log) error {
	defer d.watch("StoreLogs").Stop()
	return d.LogStore.StoreLogs(entries)
}

// DeleteRange deletes the oldest or the newest entries.
func (d *Deadline) DeleteRange(low, high uint64) error {
	defer d.watch("DeleteRange").Stop()
	return d.LogStore.DeleteRange(low, high)
}

// Set stores a value of Raft's stable store.
func (d *Deadline) Set(key, value []byte) error {
	defer d.watch("Set").Stop()
	return d.LogStore.Set(key, value)
}

// SetUint64 stores a number of Raft's stable store.
func (d *Deadline) SetUint64(key []byte, value uint64) error {
	defer d.watch("Set").Stop()
	return d.LogStore.SetUint64(key, value)
}

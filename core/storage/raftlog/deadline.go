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
// Only time in which this process runs counts. A host or a process that was paused for longer
// than the deadline resumes with expired timers, although its disk is fine; so the deadline is
// divided into short ticks, and a pause counts as one of them.
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

// deadlineTicks is the number of ticks of a deadline.
const deadlineTicks = 20

// A writeWatch watches one operation.
type writeWatch struct {
	d  *Deadline
	op string

	mu    sync.Mutex
	left  int // ticks
	timer *time.Timer
}

// watch starts to watch one operation. The caller stops it when the operation returns.
func (d *Deadline) watch(op string) *writeWatch {
	w := &writeWatch{d: d, op: op, left: deadlineTicks}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(d.after/deadlineTicks, w.tick)
	return w
}

// tick counts one tick, however late it is.
func (w *writeWatch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.left--; {
	case w.left > 0:
		w.timer.Reset(w.d.after / deadlineTicks)
	case w.left == 0:
		w.d.once.Do(func() { go w.d.onExceeded(w.op) })
	}
}

// Stop ends the watch.
func (w *writeWatch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = -1 // also for a tick that waits for the lock
	w.timer.Stop()
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

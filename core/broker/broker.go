package broker

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
)

// A Broker queues the evaluations that can be processed. New creates it.
type Broker struct {
	cfg   Config
	start time.Time // origin of the nanoseconds in entries

	mu          sync.Mutex
	enabled     bool
	hold        hold
	sheddingOff bool // every evaluation runs; see SetShedding

	queue   jobQueue  // every evaluation, and which of its job has the turn
	due     dueQueue  // deliveries and delays that end by time
	reap    reapQueue // what the state must record: cancelable and failed evaluations
	waiters []*waiter // blocked calls of Dequeue, in order of arrival
	waits   [model.EvalTypes]WaitStats

	blocked *Blocked // set once by NewBlocked
}

// hold states why nothing is delivered.
type hold struct {
	paused  bool
	batches int // running calls of Batch
}

// New returns a disabled broker: the broker of a follower is empty, and a leader
// that forgets to enable it fails at once. It returns an error if cfg is invalid.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	cfg = cfg.withDefaults()
	b := &Broker{cfg: cfg, start: cfg.Clock.Now(), reap: reapQueue{wakeup: make(chan struct{}, 1)}}
	b.queue.seed = maphash.MakeSeed()
	b.due.clock, b.due.tick = cfg.Clock, b.tick
	return b, nil
}

// Enable starts accepting and delivering evaluations. The caller then enqueues the
// pending evaluations of the state.
func (b *Broker) Enable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enabled = true
}

// Disable drops every evaluation, here and in the broker's Blocked, voids every
// lease, and returns ErrDisabled from pending calls of Dequeue.
func (b *Broker) Disable() {
	b.mu.Lock()
	b.enabled = false
	b.flush()
	blocked := b.blocked
	b.mu.Unlock()
	if blocked != nil {
		blocked.Flush()
	}
}

// Enabled reports whether the broker accepts evaluations.
func (b *Broker) Enabled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enabled
}

// Pause holds all deliveries; pending calls of Dequeue keep waiting. Everything
// else continues: evaluations are queued, leases expire, deliveries can be acked.
func (b *Broker) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold.paused = true
}

// Resume ends Pause.
func (b *Broker) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold.paused = false
	b.serveWaiters()
}

// Paused reports whether deliveries are held.
func (b *Broker) Paused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hold.paused
}

// Batch calls add and delivers nothing meanwhile. Evaluations that add enqueues or unblocks
// are therefore delivered by priority. Without it, a waiting worker would receive the one
// that is added first.
func Batch(b *Broker, add func()) {
	addBatches(b, 1)
	defer addBatches(b, -1)
	add()
}

func addBatches(b *Broker, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold.batches += n
	b.serveWaiters()
}

// SetShedding sets whether an ack cancels the other evaluations of the job that its
// snapshot or a newer evaluation covers. It is on by default. If it is off, every
// evaluation of a job is processed, one after another.
func (b *Broker) SetShedding(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sheddingOff = !on
}

func (b *Broker) flush() {
	b.queue.reset()
	b.due.reset()
	b.reap.cancels, b.reap.fails = list{}, list{}
	for _, w := range b.waiters {
		w.finish(ErrDisabled)
	}
	b.waiters = nil
}

// now returns the time on the scale of entries. It uses the monotonic reading of
// the Clock if there is one: a change of the wall clock expires no lease.
func (b *Broker) now() int64 { return int64(clock.Since(b.cfg.Clock, b.start)) }

package broker

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// A Broker queues the evaluations that can be processed. New creates it.
type Broker struct {
	cfg   Config
	start time.Time // origin of the nanoseconds in entries

	mu          sync.Mutex
	enabled     bool
	paused      bool
	sheddingOff bool // every evaluation runs; see SetShedding
	seq         uint64

	seed    maphash.Seed
	entries arena[entry]
	evals   table // all entries, by evaluation ID
	jobs    arena[job]
	keys    table // jobs by key

	ready   [model.EvalTypes]heapq.Bucketed[ref]
	leases  list // unacked entries with a running lease; all leases have the same length, so this is the order of expiry
	delays  heapq.Heap[ref]
	cancels list // cancelable, oldest first
	fails   list // failed, oldest first

	waiters []*waiter     // blocked calls of Dequeue, in order of arrival
	wakeup  chan struct{} // one slot; see Wakeup

	timer    clock.Timer // nil until first needed
	armed    bool
	armedFor int64

	counts [numStates][model.EvalTypes]int
	waits  [model.EvalTypes]WaitStats

	blocked *Blocked // set once by NewBlocked
}

// A ref points from a heap to an entry as it was when it was pushed. It contains no
// pointer, so the garbage collector need not scan the heaps.
type ref struct{ id, gen uint32 }

func (e *entry) ref() ref { return ref{e.id, e.gen} }

func (b *Broker) stale(r ref) bool { return b.entries.at(r.id).gen != r.gen }

// New returns a disabled broker: the broker of a follower is empty, and a leader
// that forgets to enable it fails at once. It returns an error if cfg is invalid.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Broker{
		cfg:    cfg,
		start:  cfg.Clock.Now(),
		seed:   maphash.MakeSeed(),
		wakeup: make(chan struct{}, 1),
	}, nil
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
	b.paused = true
}

// Resume ends Pause.
func (b *Broker) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = false
	b.serveWaiters()
}

// Paused reports whether deliveries are held.
func (b *Broker) Paused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused
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
	b.disarm()
	b.evals.reset()
	b.keys.reset()
	b.entries, b.jobs = arena[entry]{}, arena[job]{}
	for t := range b.ready {
		b.ready[t].Reset()
	}
	b.delays.Reset()
	b.leases, b.cancels, b.fails = list{}, list{}, list{}
	b.counts = [numStates][model.EvalTypes]int{}
	for _, w := range b.waiters {
		w.finish(ErrDisabled)
	}
	b.waiters = nil
}

// now returns the time on the scale of entries. It uses the monotonic reading of
// the Clock if there is one: a change of the wall clock expires no lease.
func (b *Broker) now() int64 { return int64(clock.Since(b.cfg.Clock, b.start)) }

// total returns the number of evaluations in state s.
func (b *Broker) total(s State) int {
	n := 0
	for _, c := range &b.counts[s] {
		n += c
	}
	return n
}

// move changes the state of e. The caller removes it from the list of the old state
// and adds it to that of the new one.
func (b *Broker) move(e *entry, to State) {
	b.counts[e.state][e.typ]--
	e.gen++
	e.state = to
	b.counts[to][e.typ]++
}

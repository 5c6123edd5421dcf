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

// Broker queues the evaluations that could run. Make it with New.
type Broker struct {
	cfg   Config
	start time.Time // what the nanoseconds in entries count from

	mu      sync.Mutex
	enabled bool
	paused  bool
	keepAll bool // nothing is shed
	seq     uint64

	seed    maphash.Seed
	entries arena[entry]
	evals   table // everything held, by evaluation id
	jobs    arena[job]
	keys    table // jobs by key

	ready   [model.EvalTypes]heapq.Bucketed[ref]
	leases  list // unacked with a running lease; all leases are equally long, so by due time
	delays  heapq.Heap[ref]
	cancels list // cancelable, oldest first
	fails   list // failed, oldest first

	waiters []*waiter     // blocked calls of Dequeue, first come first
	chores  chan struct{} // one slot: something awaits a reaper

	timer    clock.Timer // nil until first needed
	armed    bool
	armedFor int64

	counts [numStates][model.EvalTypes]int
	waits  [model.EvalTypes]WaitStats

	blocked *Blocked // set once by NewBlocked
}

// ref points from a heap to an entry as it was when it was put there. It has no
// pointer, so the collector need not look at the heaps.
type ref struct{ id, gen uint32 }

func (e *entry) ref() ref { return ref{e.id, e.gen} }

func (b *Broker) stale(r ref) bool { return b.entries.at(r.id).gen != r.gen }

// New makes a broker that is disabled: a follower's broker holds nothing, and
// forgetting to enable one shows at once.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	cfg = cfg.filled()
	return &Broker{
		cfg:    cfg,
		start:  cfg.Clock.Now(),
		seed:   maphash.MakeSeed(),
		chores: make(chan struct{}, 1),
	}, nil
}

// Enable starts taking and delivering evaluations; the caller then enqueues
// what the state holds.
func (b *Broker) Enable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enabled = true
}

// Disable forgets every evaluation, here and in the Blocked that belongs to the
// broker, voids every lease and sends waiting Dequeue calls home.
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

// Enabled is whether the broker takes evaluations.
func (b *Broker) Enabled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enabled
}

// Pause holds all deliveries; waiting Dequeue calls go on waiting. Everything
// else goes on: evaluations are queued, leases run, work can be settled.
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
	b.serve()
}

// Paused is whether deliveries are held.
func (b *Broker) Paused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused
}

// SetShedding says whether an Ack makes needless what its snapshot covers, and
// what a newer evaluation of the job stands for. It does unless told otherwise;
// without it every evaluation of a job runs, one after another.
func (b *Broker) SetShedding(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keepAll = !on
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

// now is the time on the scale of entries. It is read from the Clock's
// monotonic reading where there is one: a stepped wall clock ends no lease.
func (b *Broker) now() int64 { return int64(clock.Since(b.cfg.Clock, b.start)) }

// total is how many evaluations are in state s.
func (b *Broker) total(s State) int {
	n := 0
	for _, c := range &b.counts[s] {
		n += c
	}
	return n
}

// move changes the state of e; the caller has taken it out of the list of its
// old state and puts it into that of the new one.
func (b *Broker) move(e *entry, to State) {
	b.counts[e.state][e.typ]--
	e.gen++
	e.state = to
	b.counts[to][e.typ]++
}

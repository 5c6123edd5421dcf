// Package groupcommit combines the writes of many callers into few log entries.
//
// An entry costs a disk write and a round trip, independent of its size. A Batcher
// therefore writes one entry at a time. If values arrive meanwhile, they form the next one:
// a single caller waits for no other, and under load entries grow with the latency of the
// log.
//
// It does not interpret the values, and never retries.
package groupcommit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// Config configures a Batcher. Clock, Limit and Write are required.
type Config[T any] struct {
	Clock clock.Clock
	// Window is how long the first value of an idle Batcher waits for others; 0: not at
	// all.
	Window time.Duration
	// Limit returns the largest size of one entry, in units of Size. A single value may
	// exceed it.
	Limit func() int
	Size  func(T) int // default: every value counts as 1
	// Write writes the values as one entry.
	Write func(ctx context.Context, values []T) (*replication.Result, error)
}

// A Batcher writes values in batches. It is safe for concurrent use.
//
// If a write fails, every caller of the batch receives the error and nothing was
// written. If the state refuses a batch, its values are written one by one, because
// the refusal may be due to one of them.
type Batcher[T any] struct {
	cfg Config[T]

	mu      sync.Mutex
	ctx     context.Context // of the writes; nil before start
	queue   []*item[T]
	total   int  // size of queue
	writing bool // a goroutine writes, or waits for the window to end
	closed  bool
	full    chan struct{} // one slot: queue has reached the limit
	group   sync.WaitGroup
}

// item is the value of one caller.
type item[T any] struct {
	value  T
	done   chan struct{} // closed when result and err are set
	result *replication.Result
	err    error
}

// A Group starts and stops the batchers of one server together.
type Group struct{ members []member }

type member interface {
	start(ctx context.Context)
	wait()
}

// New returns a Batcher that belongs to a group. It rejects values before Start.
func New[T any](g *Group, c Config[T]) *Batcher[T] {
	if c.Size == nil {
		c.Size = func(T) int { return 1 }
	}
	b := &Batcher[T]{cfg: c}
	g.members = append(g.members, b)
	return b
}

// Start lets every batcher of the group write until ctx ends.
func (g *Group) Start(ctx context.Context) {
	for _, m := range g.members {
		m.start(ctx)
	}
}

// Wait rejects further values and waits for writes in flight. It is called after the
// context of Start has ended.
func (g *Group) Wait() {
	for _, m := range g.members {
		m.wait()
	}
}

// Add writes a value and waits until it is applied. If ctx ends while the value is queued, it
// is not written; if ctx ends later, the outcome is unknown.
func (b *Batcher[T]) Add(ctx context.Context, value T) (*replication.Result, error) {
	it := &item[T]{value: value, done: make(chan struct{})}
	b.mu.Lock()
	if b.ctx == nil || b.closed {
		b.mu.Unlock()
		return nil, apierror.New(apierror.CodeUnavailable, "server is not running").WithHint("send the request to another server, or try again")
	}
	b.queue = append(b.queue, it)
	b.total += b.cfg.Size(value)
	if !b.writing {
		b.writing, b.full = true, make(chan struct{}, 1)
		b.group.Go(b.run)
	}
	if b.total >= b.cfg.Limit() {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
	b.mu.Unlock()
	select {
	case <-it.done:
		return it.result, it.err
	case <-ctx.Done():
		if b.withdraw(it) {
			return nil, apierror.Interrupted(ctx.Err())
		}
		return nil, apierror.UnknownOutcome(ctx.Err())
	}
}

// withdraw removes an item from the queue. It returns false if the item is being written.
func (b *Batcher[T]) withdraw(it *item[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, it)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(slices.Clone(b.queue), i, i+1) // batches in progress share the array
	b.total -= b.cfg.Size(it.value)
	return true
}

// AddIndex is Add, but returns the index at which the value is visible, or the
// refusal as an error.
func (b *Batcher[T]) AddIndex(ctx context.Context, value T) (index uint64, err error) {
	result, err := b.Add(ctx, value)
	if err != nil {
		return 0, err
	}
	return result.Index, logwriter.Refusal(result)
}

// run writes batches until the queue is empty.
func (b *Batcher[T]) run() {
	b.waitWindow()
	for {
		batch := b.next()
		if len(batch) == 0 {
			return
		}
		b.write(batch)
	}
}

// waitWindow waits until the window ends or the queue holds a full entry.
func (b *Batcher[T]) waitWindow() {
	if b.cfg.Window <= 0 {
		return
	}
	b.mu.Lock()
	ctx, full := b.ctx, b.full
	b.mu.Unlock()
	over := make(chan struct{})
	defer b.cfg.Clock.AfterFunc(b.cfg.Window, func() { close(over) }).Stop()
	select {
	case <-over:
	case <-full:
	case <-ctx.Done():
	}
}

// next removes the values of the next entry from the queue. If there are none, the
// caller must return: the next Add starts another goroutine.
func (b *Batcher[T]) next() []*item[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.writing = false
		return nil
	}
	limit, n, total := b.cfg.Limit(), 0, 0
	for n < len(b.queue) && (n == 0 || total+b.cfg.Size(b.queue[n].value) <= limit) {
		total += b.cfg.Size(b.queue[n].value)
		n++
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	b.total -= total
	return batch
}

func (b *Batcher[T]) write(batch []*item[T]) {
	values := make([]T, len(batch))
	for i, it := range batch {
		values[i] = it.value
	}
	b.mu.Lock()
	ctx := b.ctx
	b.mu.Unlock()
	result, err := b.cfg.Write(ctx, values)
	if err == nil && result.Err != nil && len(batch) > 1 {
		for _, it := range batch {
			b.write([]*item[T]{it})
		}
		return
	}
	for _, it := range batch {
		it.result, it.err = result, err
		close(it.done)
	}
}

func (b *Batcher[T]) start(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
}

func (b *Batcher[T]) wait() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.group.Wait()
}

package server

import (
	"context"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
)

// gather makes one entry of the log out of what many callers want written.
//
// The naive way is an entry for each: a write costs a disk and a round trip
// whatever its size, so callers that come together wait for one another anyway.
// Here whoever comes while a write is under way goes into the next one, all of
// them together: alone a caller waits for nobody, in a storm entries grow with
// the latency of the log. With a window the first of a batch waits a moment for
// company.
//
// An error is everybody's: nobody's part was written. A refusal may be the fault
// of one of them, so that the parts are then written one by one and each caller
// hears of its own.
type gather[T any] struct {
	clock  clock.Clock
	window time.Duration
	// limit is how much one entry takes, as size counts.
	limit func() int
	size  func(T) int
	write func(ctx context.Context, parts []T) (*replication.Result, error)

	mu      sync.Mutex
	ctx     context.Context // of the writes
	waiting []*part[T]
	total   int
	busy    bool // somebody writes, or waits for company
	closed  bool
	hurry   chan struct{}
	group   sync.WaitGroup
}

// part is what one caller wants written.
type part[T any] struct {
	value  T
	done   chan struct{}
	result *replication.Result
	err    error
}

// add has a value written and waits for it. A caller whose context ends leaves;
// its value may be written yet.
func (g *gather[T]) add(ctx context.Context, value T) (*replication.Result, error) {
	p := &part[T]{value: value, done: make(chan struct{})}
	g.mu.Lock()
	if g.ctx == nil || g.closed {
		g.mu.Unlock()
		return nil, fail(CodeUnavailable, "the server is not running").hint("ask another one, or try again")
	}
	g.waiting = append(g.waiting, p)
	g.total += g.size(value)
	if !g.busy {
		g.busy, g.hurry = true, make(chan struct{}, 1)
		g.group.Go(g.run)
	}
	if g.total >= g.limit() {
		select {
		case g.hurry <- struct{}{}:
		default:
		}
	}
	g.mu.Unlock()
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, interrupted(ctx.Err())
	}
}

// written is add, with what the state made of the value: the index at which it is
// visible, or why it was refused.
func (g *gather[T]) written(ctx context.Context, value T) (index uint64, err error) {
	result, err := g.add(ctx, value)
	if err != nil {
		return 0, err
	}
	return result.Index, refusal(result)
}

// run writes until nobody waits.
func (g *gather[T]) run() {
	g.company()
	for {
		parts := g.take()
		if len(parts) == 0 {
			return
		}
		g.flush(parts)
	}
}

// company waits for the window to end or for a full entry.
func (g *gather[T]) company() {
	if g.window <= 0 {
		return
	}
	g.mu.Lock()
	ctx, hurry := g.ctx, g.hurry
	g.mu.Unlock()
	over := make(chan struct{})
	defer g.clock.AfterFunc(g.window, func() { close(over) }).Stop()
	select {
	case <-over:
	case <-hurry:
	case <-ctx.Done():
	}
}

// take is the parts of the next entry; none ends the run.
func (g *gather[T]) take() []*part[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		return nil
	}
	limit, n, total := g.limit(), 0, 0
	for n < len(g.waiting) && (n == 0 || total+g.size(g.waiting[n].value) <= limit) {
		total += g.size(g.waiting[n].value)
		n++
	}
	parts := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.total -= total
	return parts
}

func (g *gather[T]) flush(parts []*part[T]) {
	values := make([]T, len(parts))
	for i, p := range parts {
		values[i] = p.value
	}
	g.mu.Lock()
	ctx := g.ctx
	g.mu.Unlock()
	result, err := g.write(ctx, values)
	if err == nil && result.Err != nil && len(parts) > 1 {
		for _, p := range parts {
			g.flush([]*part[T]{p})
		}
		return
	}
	for _, p := range parts {
		p.result, p.err = result, err
		close(p.done)
	}
}

// begin says how long may be written.
func (g *gather[T]) begin(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ctx = ctx
}

// wait waits for writes under way; their context has ended.
func (g *gather[T]) wait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.group.Wait()
}

func one[T any](T) int { return 1 }

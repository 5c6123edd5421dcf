package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
)

// Source hands out work.
type Source interface {
	// Dequeue waits for an evaluation that is ready.
	Dequeue(ctx context.Context) (broker.Delivery, error)
}

// PoolConfig is what a Pool works with. All fields but Logger, Grace and the
// waits are needed.
type PoolConfig struct {
	Source Source
	New    func() *Worker // one for each goroutine
	Clock  clock.Clock
	Logger *slog.Logger // nil: nothing is logged

	// Grace is how long work that was begun may go on after the pool was told to
	// stop; default: 5s.
	Grace time.Duration
	// FirstWait and LastWait bound the wait after a failure, which doubles with
	// each in a row; default: 20ms and 10s.
	FirstWait, LastWait time.Duration
}

// Pool runs workers side by side. Make it with NewPool.
type Pool struct {
	cfg PoolConfig

	mu      sync.Mutex
	ctx     context.Context // of taking work; nil: not running
	working context.Context // of work itself
	wanted  int
	holds   map[string]struct{}
	stops   []context.CancelFunc // one for each worker that runs
	group   sync.WaitGroup
}

// NewPool makes a pool of n workers that does nothing before Run.
func NewPool(cfg PoolConfig, n int) *Pool {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.FirstWait <= 0 {
		cfg.FirstWait = 20 * time.Millisecond
	}
	if cfg.LastWait <= 0 {
		cfg.LastWait = 10 * time.Second
	}
	return &Pool{cfg: cfg, wanted: max(n, 0), holds: map[string]struct{}{}}
}

// Run works until ctx ends, and then until what was begun is done or the grace
// is over.
func (p *Pool) Run(ctx context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p.mu.Lock()
	p.ctx, p.working = ctx, working
	p.adjust()
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil
	p.adjust()
	p.mu.Unlock()
	defer p.cfg.Clock.AfterFunc(p.cfg.Grace, cancel).Stop()
	p.group.Wait()
}

// Resize sets how many workers there are; 0 pauses. One that is at work ends
// what it has begun.
func (p *Pool) Resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = max(n, 0)
	p.adjust()
}

// Hold stops all workers for a reason until it is released. There may be several
// reasons at a time.
func (p *Pool) Hold(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds[reason] = struct{}{}
	p.adjust()
}

// Release ends a Hold.
func (p *Pool) Release(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holds, reason)
	p.adjust()
}

// Status is how the workers of a pool do.
type Status struct {
	Wanted  int      // 0: they are paused
	Running int      // that take work, or wait for some
	Holds   []string // why none does, in order; none: nothing holds them
}

// Status is how the workers do at this moment.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{Wanted: p.wanted, Running: len(p.stops), Holds: slices.Sorted(maps.Keys(p.holds))}
}

// adjust starts and stops workers until there are as many as there should be.
func (p *Pool) adjust() {
	want := p.wanted
	if p.ctx == nil || len(p.holds) > 0 {
		want = 0
	}
	for len(p.stops) > want {
		last := len(p.stops) - 1
		p.stops[last]()
		p.stops = p.stops[:last]
	}
	for len(p.stops) < want {
		taking, stop := context.WithCancel(p.ctx)
		p.stops = append(p.stops, stop)
		working := p.working
		p.group.Go(func() {
			defer stop()
			p.loop(taking, working)
		})
	}
}

// loop is the life of one worker. Taking work and doing it have contexts of
// their own, so that a worker that is to stop ends what it has begun.
func (p *Pool) loop(taking, working context.Context) {
	w := p.cfg.New()
	wait := time.Duration(0)
	for p.sleep(taking, wait) {
		d, err := p.cfg.Source.Dequeue(taking)
		if err == nil {
			err = w.Work(working, d)
			if err != nil && working.Err() == nil {
				p.cfg.Logger.WarnContext(working, "evaluation was given back", "eval_id", d.Eval.ID, "job_id", d.Eval.JobID, "err", err)
			}
		}
		wait = p.next(wait, err)
	}
}

// next is the wait that follows.
func (p *Pool) next(wait time.Duration, err error) time.Duration {
	switch {
	case err == nil:
		return 0
	case wait == 0:
		return p.cfg.FirstWait
	default:
		return min(2*wait, p.cfg.LastWait)
	}
}

// sleep is false when the worker is to stop.
func (p *Pool) sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d == 0 {
		return true
	}
	over := make(chan struct{})
	timer := p.cfg.Clock.AfterFunc(d, func() { close(over) })
	select {
	case <-over:
		return true
	case <-ctx.Done():
		timer.Stop()
		return false
	}
}

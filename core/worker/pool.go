package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
)

// Source delivers evaluations.
type Source interface {
	// Dequeue waits for a ready evaluation.
	Dequeue(ctx context.Context) (broker.Delivery, error)
}

// PoolConfig configures a Pool. Source, New and Clock are required.
type PoolConfig struct {
	Source Source
	New    func() *Worker // returns a worker for one goroutine
	Clock  clock.Clock
	Logger *slog.Logger // nil: logs are discarded

	// Grace is how long evaluations in progress may continue after the pool was stopped;
	// default: 5s.
	Grace time.Duration
	// FirstWait and LastWait bound the wait after a failure, which doubles with
	// each in a row; default: 20ms and 10s.
	FirstWait, LastWait time.Duration
}

// A Pool runs workers concurrently. Make it with NewPool.
type Pool struct {
	cfg PoolConfig

	mu      sync.Mutex
	ctx     context.Context // of dequeuing; nil: not running
	working context.Context // of processing
	wanted  int
	stops   []context.CancelFunc // one for each worker that runs
	group   sync.WaitGroup
}

// NewPool returns a pool of n workers that does nothing before Run.
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
	return &Pool{cfg: cfg, wanted: max(n, 0)}
}

// Run processes evaluations until ctx ends. It returns when those in progress are done, or
// when the grace period is over.
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

// Resize sets the number of workers; 0 pauses the pool. A worker that is stopped finishes
// its evaluation.
func (p *Pool) Resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = max(n, 0)
	p.adjust()
}

// Status is the status of the workers of a pool.
type Status struct {
	Wanted  int // configured number; 0: the pool is paused
	Running int // processing an evaluation, or waiting for one
}

// Status returns the current status of the workers.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{Wanted: p.wanted, Running: len(p.stops)}
}

// adjust starts and stops workers until their number is the configured one. p.mu is held.
func (p *Pool) adjust() {
	want := p.wanted
	if p.ctx == nil {
		want = 0
	}
	for len(p.stops) > want {
		last := len(p.stops) - 1
		p.stops[last]()
		p.stops = p.stops[:last]
	}
	for len(p.stops) < want {
		dequeuing, stop := context.WithCancel(p.ctx)
		p.stops = append(p.stops, stop)
		working := p.working
		p.group.Go(func() {
			defer stop()
			p.loop(dequeuing, working)
		})
	}
}

// loop runs one worker. Dequeuing and processing have separate contexts, so that a worker
// that is stopped finishes its evaluation.
func (p *Pool) loop(dequeuing, working context.Context) {
	w := p.cfg.New()
	wait := time.Duration(0)
	for p.sleep(dequeuing, wait) {
		d, err := p.cfg.Source.Dequeue(dequeuing)
		if err == nil {
			err = w.Work(working, d)
			if err != nil && working.Err() == nil {
				p.cfg.Logger.WarnContext(working, "evaluation nacked", "eval_id", d.Eval.ID, "job_id", d.Eval.JobID, "err", err)
			}
		}
		wait = p.next(wait, err)
	}
}

// next returns the wait before the next evaluation, which doubles with each failure in a row.
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

// sleep waits for d. It returns false if the worker must stop.
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

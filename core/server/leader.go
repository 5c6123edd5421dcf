package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
)

const (
	// handOver bounds how long a server that stops tries to hand its lead over.
	handOver = 3 * time.Second
	// tookOffice bounds how long a term may take to begin.
	tookOffice = 30 * time.Second
	// termRetry is the wait before a term is begun again that failed to.
	termRetry = time.Second
)

// lead follows the leadership until ctx ends and the workers are done.
//
// The naive way does what a signal says and then waits for the next. But a term
// takes a while to begin, and while it does the lead may be lost and won again:
// the channel keeps the newest signal alone, so a second "true" may be all that
// is ever seen of that, and whatever the first one built is of another term. So
// every signal first ends the term there is, wherever it has got to, and only
// then begins another. A term that does not come about gives the lead away:
// another server may do better, and a leader that does nothing is worse than
// none.
func (s *Server) lead(ctx context.Context, workersDone <-chan struct{}) {
	var current *running
	signals := s.cfg.Log.Leadership()
	for {
		select {
		case leads, open := <-signals:
			current.end()
			current = nil
			switch {
			case !open: // the log is closed: this server will not lead again
				signals = nil
			case leads:
				current = s.startTerm(ctx)
			}
		case <-current.failed():
			current.end()
			current = nil
			if current = s.afterFailure(ctx); current == nil {
				s.logger.WarnContext(ctx, "leadership given up")
			}
		case <-ctx.Done():
			<-workersDone // they still need the broker and the applier
			s.stepDown()
			current.end()
			return
		}
	}
}

// stepDown hands the lead to another server, if there is one to take it.
func (s *Server) stepDown() {
	if !s.cfg.Log.IsLeader() {
		return
	}
	ctx, cancel := clock.WithTimeout(context.Background(), s.cfg.Clock, handOver)
	defer cancel()
	if err := s.cfg.Log.Transfer(ctx); err != nil {
		s.logger.Info("leadership not handed over", "err", err)
	}
}

// afterFailure gives the lead away, and where nobody takes it tries once more.
func (s *Server) afterFailure(ctx context.Context) *running {
	s.stepDown()
	if !s.cfg.Log.IsLeader() {
		return nil
	}
	clock.Sleep(ctx, s.cfg.Clock, termRetry)
	if ctx.Err() != nil || !s.cfg.Log.IsLeader() {
		return nil
	}
	return s.startTerm(ctx)
}

// running is a term with its goroutine. Its methods work on nil: no term.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
	broken chan struct{} // gets a value when the term failed by itself
}

func (r *running) end() {
	if r == nil {
		return
	}
	r.cancel()
	<-r.done
}

func (r *running) failed() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.broken
}

func (s *Server) startTerm(ctx context.Context) *running {
	// Not of ctx: a server that stops ends its term when its workers are done.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{cancel: cancel, done: make(chan struct{}), broken: make(chan struct{}, 1)}
	go func() {
		defer close(r.done)
		t := &term{Server: s, number: s.cfg.Log.Term()}
		if err := t.run(inner); err != nil && inner.Err() == nil {
			s.logger.ErrorContext(inner, "leadership does not work", "err", err)
			r.broken <- struct{}{}
		}
	}()
	return r
}

// term is one term of leadership.
type term struct {
	*Server
	number  uint64
	applier *planner.Applier
	ctx     context.Context // of the term
	group   sync.WaitGroup
	// fell gets the error that ends the term.
	fell chan error
}

// run begins the term, and ends it when ctx ends or something fails.
func (t *term) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.group.Wait()
	defer cancel()
	t.ctx, t.fell = ctx, make(chan error, 1)
	if err := t.establish(ctx); err != nil {
		return err
	}
	defer t.abolish()
	t.logger.InfoContext(ctx, "leadership taken", "term", t.number, "index", t.Snapshot().Index())
	select {
	case <-ctx.Done():
		return nil
	case err := <-t.fell:
		return err
	}
}

// fall ends the term with an error; the first one counts.
func (t *term) fall(err error) {
	select {
	case t.fell <- err:
	default:
	}
}

// establish takes over, in an order in which nothing can be missed: first
// everything written before is applied, then the queues are filled from the
// state and follow it from there, and only then is work handed out.
func (t *term) establish(ctx context.Context) error {
	limited, cancel := clock.WithTimeout(ctx, t.cfg.Clock, tookOffice)
	defer cancel()
	if err := t.cfg.Log.Barrier(limited); err != nil {
		return fmt.Errorf("the state does not catch up: %w", err)
	}
	if err := t.nameCluster(limited); err != nil {
		return err
	}
	t.applier = planner.NewApplier(planner.Config{
		Store: t.cfg.Store, Queue: t.plans, Committer: &committer{term: t}, PlacementVerifier: &feasible.Verifier{},
		Clock: t.cfg.Clock, RejectionTracker: t.cfg.Tracker, OnVerified: t.metrics.verified,
	})
	t.feeder.take(t)
	t.nodes.Start()
	t.clusters.Start()
	t.plans.SetEnabled(true)
	for _, run := range []func(context.Context){t.apply, t.reap, t.Collector.Run, t.follow, t.promote, t.upgrade, t.clusters.Run} {
		t.group.Go(func() { run(ctx) })
	}
	t.term.Store(t)
	t.informed.Store(true)
	t.began.change()
	return nil
}

// abolish undoes establish.
func (t *term) abolish() {
	t.term.Store(nil)
	t.began.change()
	t.plans.SetEnabled(false)
	t.feeder.give()
	t.nodes.Stop()
	t.clusters.Stop()
	t.metrics.ended(t.applier.Stats())
	t.logger.Info("leadership left", "term", t.number)
}

// nameCluster gives a new cluster its name, and the key that its servers share.
func (t *term) nameCluster(ctx context.Context) error {
	if t.Snapshot().Meta().ClusterID != "" {
		return nil
	}
	version, _ := t.understood(ctx)
	name := &replication.Bootstrap{ClusterID: t.cfg.NewID(), Version: max(version, t.cfg.Versions.Oldest)}
	_, _ = rand.Read(name.Key[:]) // never fails
	_, err := t.writer.Commit(ctx, name)
	if err != nil {
		return fmt.Errorf("the cluster gets no name: %w", err)
	}
	return nil
}

// apply runs the applier.
func (t *term) apply(ctx context.Context) {
	if err := t.applier.Run(ctx); err != nil && ctx.Err() == nil {
		t.fall(fmt.Errorf("plan applier: %w", err))
	}
}

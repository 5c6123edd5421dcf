package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/server/drain"
)

const (
	// transferTimeout is how long a server that stops tries to transfer leadership.
	transferTimeout = 3 * time.Second
	// establishTimeout is how long establishing leadership may take.
	establishTimeout = 30 * time.Second
	// establishRetry is the wait before another attempt to establish leadership.
	establishRetry = time.Second
)

// leaderLoop follows the leadership of Raft until ctx ends and the workers have stopped.
//
// It must not act on a signal and then wait for the next one. Establishing leadership
// takes a while, during which it may be lost and won again. The channel holds only the
// newest signal, so that a second "true" may be all that arrives, while everything
// established belongs to an earlier term. So every signal first ends the current term,
// however far it has got, and only then starts another. If establishing fails, leadership
// is transferred: another server may succeed, and a leader that does nothing is worse than
// none.
func (s *Server) leaderLoop(ctx context.Context, workersDone <-chan struct{}) {
	var current *runningTerm
	signals := s.cfg.Log.Leadership()
	for {
		select {
		case leads, open := <-signals:
			current.stop()
			current = nil
			switch {
			case !open: // the log is closed: this server will not lead again
				signals = nil
			case leads:
				current = s.startTerm(ctx)
			}
		case commit := <-s.Commits():
			current.stop() // waits for plans in flight; later ones would be of the replaced state
			current = nil
			commit.Run()
			if s.cfg.Log.IsLeader() {
				current = s.startTerm(ctx)
			}
		case <-current.failed():
			current.stop()
			current = nil
			if current = s.retryTerm(ctx); current == nil {
				s.logger.WarnContext(ctx, "leadership given up")
			}
		case <-ctx.Done():
			<-workersDone // they still use the broker and the applier
			s.transferLeadership()
			current.stop()
			return
		}
	}
}

// transferLeadership transfers leadership to another server, if there is one.
func (s *Server) transferLeadership() {
	if !s.cfg.Log.IsLeader() {
		return
	}
	ctx, cancel := clock.WithTimeout(context.Background(), s.cfg.Clock, transferTimeout)
	defer cancel()
	if err := s.cfg.Log.Transfer(ctx); err != nil {
		s.logger.Info("failed to transfer leadership", "err", err)
	}
}

// retryTerm transfers leadership after a failure. If no server accepts it, the next term
// is started. It returns nil if this server does not lead any more.
func (s *Server) retryTerm(ctx context.Context) *runningTerm {
	s.transferLeadership()
	if !s.cfg.Log.IsLeader() {
		return nil
	}
	clock.Sleep(ctx, s.cfg.Clock, establishRetry)
	if ctx.Err() != nil || !s.cfg.Log.IsLeader() {
		return nil
	}
	return s.startTerm(ctx)
}

// runningTerm is a term with its goroutine. Its methods do nothing on nil.
type runningTerm struct {
	cancel context.CancelFunc
	done   chan struct{}
	broken chan struct{} // has a value if the term failed
}

func (r *runningTerm) stop() {
	if r == nil {
		return
	}
	r.cancel()
	<-r.done
}

func (r *runningTerm) failed() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.broken
}

func (s *Server) startTerm(ctx context.Context) *runningTerm {
	// Not derived from ctx: a server that stops ends its term after its workers.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &runningTerm{cancel: cancel, done: make(chan struct{}), broken: make(chan struct{}, 1)}
	go func() {
		defer close(r.done)
		t := &term{s: s, number: s.cfg.Log.Term()}
		if err := t.run(inner); err != nil && inner.Err() == nil {
			s.logger.ErrorContext(inner, "leadership failed", "err", err)
			r.broken <- struct{}{}
		}
	}()
	return r
}

// term is one term of leadership.
type term struct {
	s       *Server
	number  uint64
	applier *planner.Applier
	group   sync.WaitGroup
	failure chan error // one slot: the error that ends the term
}

// run establishes leadership, and revokes it when ctx ends or something fails.
func (t *term) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.group.Wait()
	defer cancel()
	t.failure = make(chan error, 1)
	if err := t.establishLeadership(ctx); err != nil {
		return err
	}
	defer t.revokeLeadership()
	t.s.logger.InfoContext(ctx, "leadership established", "term", t.number, "index", t.s.Snapshot().Index())
	select {
	case <-ctx.Done():
		return nil
	case err := <-t.failure:
		return err
	}
}

// fail ends the term with an error. Only the first one counts.
func (t *term) fail(err error) {
	select {
	case t.failure <- err:
	default:
	}
}

// establishLeadership starts everything that only the leader does. The order ensures that
// nothing is missed: first every earlier entry is applied, then the broker is filled from
// the state and observes it from there on, and only then evaluations are delivered.
func (t *term) establishLeadership(ctx context.Context) error {
	s := t.s
	limited, cancel := clock.WithTimeout(ctx, s.cfg.Clock, establishTimeout)
	defer cancel()
	if err := s.cfg.Log.Barrier(limited); err != nil {
		return fmt.Errorf("apply the entries of earlier terms: %w", err)
	}
	if err := t.initCluster(limited); err != nil {
		return err
	}
	t.applier = planner.NewApplier(planner.Config{
		Store: s.cfg.Store, Queue: s.plans, Committer: &planCommitter{term: t}, PlacementVerifier: &feasible.Verifier{},
		Clock: s.cfg.Clock, RejectionTracker: s.cfg.Tracker, OnVerified: s.metrics.observeVerify,
	})
	reaper := s.newReaper()
	drainer := &drain.Drainer{Writer: s.writer, Watch: s.Watch, Clock: s.cfg.Clock, Batch: s.cfg.UpdateBatch, Logger: s.logger}
	s.pump.Start(func(needless []*model.Evaluation) { t.group.Go(func() { reaper.Write(ctx, needless) }) })
	s.nodes.Start()
	s.clusters.Start()
	s.plans.SetEnabled(true)
	for _, run := range []func(context.Context){
		t.runApplier, reaper.Run, s.Collector.Run, s.Reconcile, s.Autopilot, s.Upgrade, s.clusters.Run, drainer.Run,
	} {
		t.group.Go(func() { run(ctx) })
	}
	s.term.Store(t)
	s.caughtUp.Store(true)
	s.queue.SetLeading(true)
	return nil
}

// revokeLeadership undoes establishLeadership.
func (t *term) revokeLeadership() {
	s := t.s
	s.term.Store(nil)
	s.queue.SetLeading(false)
	s.plans.SetEnabled(false)
	s.pump.Stop()
	s.nodes.Stop()
	s.clusters.Stop()
	s.metrics.addRejections(t.applier.Stats())
	s.logger.Info("leadership revoked", "term", t.number)
}

// initCluster gives a new cluster its configuration, its ID, its version, and the key that
// its servers share. The ID is written last: a cluster that has one is complete.
func (t *term) initCluster(ctx context.Context) error {
	s := t.s
	if s.Snapshot().Meta().ClusterID != "" {
		return nil
	}
	if config := s.Snapshot().Config(); config.ModifyIndex == 0 {
		if _, err := s.writer.Commit(ctx, &replication.SetConfig{Config: initialConfig(config)}); err != nil {
			return fmt.Errorf("write the scheduler configuration: %w", err)
		}
	}
	version, _ := s.CommonVersion(ctx)
	command := &replication.Bootstrap{ClusterID: s.cfg.NewID(), Version: max(version, s.cfg.Versions.Oldest)}
	_, _ = rand.Read(command.Key[:]) // never fails
	_, err := s.writer.Commit(ctx, command)
	if err != nil {
		return fmt.Errorf("write the cluster ID: %w", err)
	}
	return nil
}

// initialConfig returns the configuration of a new cluster: as in Nomad, system jobs may
// preempt and others may not. It is written to the log rather than implied, so that servers
// of any version agree on it and clusters of earlier versions keep theirs.
func initialConfig(c *model.SchedulerConfig) *model.SchedulerConfig {
	own := *c
	own.Preemption[model.JobSystem] = true
	return &own
}

func (t *term) runApplier(ctx context.Context) {
	if err := t.applier.Run(ctx); err != nil && ctx.Err() == nil {
		t.fail(fmt.Errorf("plan applier: %w", err))
	}
}

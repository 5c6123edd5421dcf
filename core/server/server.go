package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/heartbeat"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// Server answers the API and, while it leads, schedules. Make it with New.
type Server struct {
	cfg      Config
	logger   *slog.Logger
	policies *policymgr.Manager
	metrics  *metrics
	traces   *evaltrace.Recorder // nil: tracing is disabled
	writer   *logwriter.Writer

	broker  *broker.Broker
	blocked *broker.Blocked
	plans   *planner.Queue
	feeder  *feeder
	pool    *worker.Pool
	nodes   *heartbeat.Nodes
	*eventsink.Publisher
	*gc.Collector
	fetcher *fetcher
	promise promise

	informed atomic.Bool

	batchers groupcommit.Group
	updates  *evalqueue.Updates
	clusters *heartbeat.Clusters
	*endpoint.Endpoints
	*policymgr.Policies

	// term is what this server does as the leader; nil while it is not, or is about
	// to be. began is closed and replaced whenever it changes.
	term  atomic.Pointer[term]
	began signal
	start time.Time // what ticks count from

	mu      sync.Mutex
	running bool
}

// New makes a server that does nothing before Run. Observe may be called at
// once: a log that is opened applies what it holds.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{cfg: cfg.withDefaults(), traces: evaltrace.New(cfg.Tracer)}
	s.logger, s.start = s.cfg.Logger, s.cfg.Clock.Now()
	s.writer = &logwriter.Writer{ServerID: s.cfg.ID, Log: s.cfg.Log, Store: s.cfg.Store, Clock: s.cfg.Clock, Established: s.establishedTerm}
	var err error
	if s.policies, err = policymgr.New(s.policyConfig()); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := s.assemble(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return s, nil
}

func (s *Server) policyConfig() policymgr.Config {
	c := policymgr.Config{
		ServerID: s.cfg.ID, Log: atLeader{Log: s.cfg.Log, s: s}, Store: s.cfg.Store, Host: s.cfg.Policies, Modules: s.cfg.Modules,
		Clock: s.cfg.Clock, Logger: s.logger, Registry: s.cfg.Registry, History: s.cfg.History,
		Voters: s.cfg.Voters, CheckLeader: s.writer.CheckLeader,
	}
	if c.Voters == nil && s.cfg.Raft != nil {
		c.Voters = s.voters
	}
	return c
}

// explainUnchecked returns the reason for which another server has not checked a policy,
// and the remedy.
func (s *Server) explainUnchecked(id string) string {
	if s.cfg.Membership == nil || id == s.cfg.ID {
		return ""
	}
	m, known := s.member(id)
	switch {
	case !known:
		return "it is down, because the pool does not list it: start it, or remove it for good: cede operator raft remove " + id
	case m.Status == MemberAlive:
		return "it is alive and has not reported yet: it may be busy or lag behind; see its log"
	}
	down := "down"
	if m.Status == MemberLeft {
		down = "gone"
	}
	return fmt.Sprintf("it has been %s since %s: start it, or remove it for good: cede operator raft remove %s",
		down, m.Since.UTC().Format(time.RFC3339), id)
}

// Pin returns the active policies, for components that schedule without workers, such as
// the Kubernetes extender. The caller must unpin them.
func (s *Server) Pin() *policy.Set { return s.policies.Pin() }

func (s *Server) assemble() error {
	var err error
	s.broker, err = broker.New(broker.Config{
		Clock: s.cfg.Clock, NackTimeout: s.cfg.NackTimeout, ReaperBatch: s.cfg.EvalBatch,
		Rand:             rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		EquivalenceClass: func(ev *model.Evaluation) uint64 { return unblock.EquivalenceClass(s.cfg.Store.Snapshot(), ev) },
	})
	if err != nil {
		return err
	}
	s.blocked = broker.NewBlocked(s.broker)
	s.plans = planner.NewQueue()
	s.Publisher = eventsink.New(s.eventConfig())
	s.Collector = &gc.Collector{
		Writer: s.writer, Retention: s.cfg.Retention, Times: &gc.Timetable{}, Clock: s.cfg.Clock,
		Interval: s.cfg.CollectInterval, Logger: s.logger,
	}
	s.feeder = newFeeder(s, &worker.Feed{Broker: s.broker, Blocked: s.blocked, Policies: s.policies})
	s.nodes, s.clusters = heartbeat.NewNodes(s.heartbeatConfig()), heartbeat.NewClusters(s.heartbeatConfig())
	s.fetcher = &fetcher{s: s}
	s.began.init()
	s.assembleWrites()
	s.pool = worker.NewPool(worker.PoolConfig{
		Source: source{s}, New: s.newWorker, Clock: s.cfg.Clock, Logger: s.logger,
	}, s.cfg.Workers)
	s.metrics = newMetrics(s)
	return nil
}

func (s *Server) eventConfig() eventsink.Config {
	c := eventsink.Config{Capacity: s.cfg.EventBuffer, History: s.cfg.History, Logger: s.logger}
	if s.traces != nil {
		c.OnEntry = func(a *replication.Applied, before *state.Snapshot) {
			if s.term.Load() != nil { // so that each start is recorded by one server
				s.traces.RecordStarts(a, before)
			}
		}
	}
	return c
}

func (s *Server) heartbeatConfig() heartbeat.Config {
	return heartbeat.Config{
		Writer: s.writer, Clock: s.cfg.Clock, Ticks: s.ticks, Random: s.cfg.Random, Logger: s.logger,
		TTL: s.cfg.HeartbeatTTL, Grace: s.cfg.HeartbeatGrace, Rate: s.cfg.HeartbeatRate, FailoverGrace: s.cfg.FailoverGrace,
		ExpiryWindow: s.cfg.ExpiryWindow, ClusterLost: s.cfg.ClusterLost, BatchSize: s.entrySize,
	}
}

// assembleWrites makes the endpoints, and what batches small writes.
func (s *Server) assembleWrites() {
	s.updates = evalqueue.NewUpdates(&s.batchers, s.writer, s.cfg.Clock, s.cfg.EvalBatch)
	s.Policies = policymgr.NewPolicies(s.policies, s.explainUnchecked)
	s.Endpoints = endpoint.New(endpoint.Config{
		Writer: s.writer, Clock: s.cfg.Clock, Policies: s.policies, Evals: s.evalFactory(), Updates: s.updates,
		Broker: s.broker, Blocked: s.blocked, Nodes: s.nodes, Clusters: s.clusters, Batchers: &s.batchers, Traces: s.traces,
		NewAllocID: s.newAllocID, Secret: s.cfg.Secret,
		UpdateWindow: s.cfg.UpdateWindow, UpdateBatch: s.cfg.UpdateBatch, RegisterBatch: s.cfg.RegisterBatch, BatchSize: s.entrySize,
	})
}

func (s *Server) evalFactory() evalqueue.Factory {
	return evalqueue.Factory{NewID: s.cfg.NewID, Clock: s.cfg.Clock}
}

// entrySize is how many changes of nodes go into one entry, at most n: one where
// the operator switched coalescing off, to see what it is worth.
func (s *Server) entrySize(n int) int {
	if on := s.cfg.Store.Snapshot().Config().Coalescing; on != nil && !*on {
		return 1
	}
	return n
}

// newWorker makes a worker with a scheduler of its own.
func (s *Server) newWorker() *worker.Worker {
	c := worker.Config{
		Broker: office{s}, Planner: office{s}, States: patient{store: s.cfg.Store, late: s.fetcher.late}, Evals: office{s},
		Clock: s.cfg.Clock, NewEvalID: s.cfg.NewID, Observe: s.worked,
		Leases: office{s}, Renew: s.cfg.NackTimeout / 3, Retry: s.cfg.UnplacedRetry,
	}
	plans := scheduler.Config{Policies: s.policies, NewID: s.newAllocID, Observe: s.decided}
	s.traces.TraceWorker(&c, &plans)
	c.Scheduler = scheduler.New(plans)
	return worker.New(c)
}

func (s *Server) newAllocID(*model.Group, int, int) string { return s.cfg.NewID() }

// Run serves until ctx ends: it follows the leadership, works on evaluations,
// and publishes events. It hands a leadership over before it returns.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return errors.New("server: it runs already")
	}
	s.running = true
	s.mu.Unlock()

	// What is under way when ctx ends may still write and be applied.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.batchers.Start(inner)
	s.fetcher.begin(inner)
	var beside sync.WaitGroup
	for _, run := range []func(context.Context){s.feeder.run, s.Publisher.Run, s.policies.Run, s.pooled, s.inform} {
		beside.Go(func() { run(inner) })
	}
	pool := make(chan struct{})
	go func() {
		defer close(pool)
		s.pool.Run(ctx)
	}()
	s.lead(ctx, pool)
	cancel()
	s.fetcher.wait()
	s.batchers.Wait()
	beside.Wait()
	s.Publisher.Close()
	s.policies.Close()
	return nil
}

// Observe is told of everything that is applied to the state, on the goroutine
// that applies. It notes what others will look at, and returns.
func (s *Server) Observe(list []replication.Applied) {
	for i := range list {
		a := &list[i]
		s.Collector.Times.Record(a)
		s.traces.ObserveEntry(a)
		s.feeder.note(a)
	}
	s.Publisher.Observe(list)
}

// Reload changes what may change while the server runs.
func (s *Server) Reload(r Reloadable) error {
	if r.Workers == nil {
		return nil
	}
	if *r.Workers < 0 {
		return apierror.New(apierror.CodeInvalid, "the number of workers %d is negative", *r.Workers).WithHint("0 pauses this server's workers")
	}
	was := s.Workers().Wanted
	s.pool.Resize(*r.Workers)
	switch {
	case *r.Workers == 0 && was > 0:
		s.logger.Warn("this server's workers are paused: it works on no evaluations", "before", was)
	case *r.Workers != was:
		s.logger.Info("this server has other workers", "before", was, "now", *r.Workers)
	}
	return nil
}

// signal wakes everybody who waits for a change.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

func (g *signal) init() { g.ch = make(chan struct{}) }

// wait is closed by the next change.
func (g *signal) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ch
}

func (g *signal) change() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.ch)
	g.ch = make(chan struct{})
}

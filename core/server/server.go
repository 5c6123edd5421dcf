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
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/heartbeat"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/server/membership"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/server/restore"
	"github.com/cede-scheduler/cede/core/server/whatif"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// A Server serves the API and, while it leads, schedules. Make it with New.
//
// It only connects the packages below it. The calls of the API are the methods of the
// embedded types. It has more than 20 fields because each is one of those parts.
type Server struct {
	cfg     Config
	logger  *slog.Logger
	writer  *logwriter.Writer
	traces  *evaltrace.Recorder // nil: tracing is disabled
	metrics *metrics

	// Calls of the API.
	*endpoint.Endpoints
	*policymgr.Policies
	*membership.Manager
	decisions
	*gc.Collector
	*restore.Restorer

	policies *policymgr.Manager
	broker   *broker.Broker
	blocked  *broker.Blocked
	plans    *planner.Queue
	queue    *evalqueue.Queue
	pump     *evalqueue.Pump
	updates  *evalqueue.Updates
	batchers groupcommit.Group
	pool     *worker.Pool
	nodes    *heartbeat.Nodes
	clusters *heartbeat.Clusters

	// term is the term of leadership that this server has established; nil if there is
	// none.
	term     atomic.Pointer[term]
	caughtUp atomic.Bool // see CaughtUp
	running  atomic.Bool
}

// decisions records decisions to evict, and makes them again.
type decisions struct {
	*eventsink.Publisher
	*whatif.Examiner
}

// New returns a server that does nothing before Run. Observe may be called at once: a log
// that is opened applies the entries that it holds.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{cfg: cfg.withDefaults(), traces: evaltrace.New(cfg.Tracer)}
	s.logger = s.cfg.Logger
	s.writer = &logwriter.Writer{ServerID: s.cfg.ID, Log: newAuditedLog(&s.cfg), Store: s.cfg.Store, Clock: s.cfg.Clock, Established: s.establishedTerm, Storage: s.cfg.StorageHealthy}
	if err := s.assemble(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.cfg.Applied != nil {
		s.cfg.Applied.Attach(s.Observe)
	}
	return s, nil
}

// assemble makes the parts of the server, each after those that it depends on.
func (s *Server) assemble() error {
	s.Manager = membership.New(membership.Config{
		ServerID: s.cfg.ID, Build: s.cfg.Build, Gossip: s.cfg.Membership, Peers: s.cfg.Peers, Raft: s.cfg.Raft, Log: s.cfg.Log,
		Writer: s.writer, Expect: s.cfg.Expect, Versions: s.cfg.Versions, Timing: s.cfg.Pool, Clock: s.cfg.Clock, Logger: s.logger,
	})
	s.Restorer = restore.New(s.writer, s.cfg.Versions)
	var err error
	if s.policies, err = policymgr.New(s.policyConfig()); err != nil {
		return err
	}
	s.Policies = policymgr.NewPolicies(s.policies, s.explainUnchecked)
	s.broker, err = broker.New(broker.Config{
		Clock: s.cfg.Clock, NackTimeout: s.cfg.NackTimeout, ReaperBatch: s.cfg.EvalBatch,
		Rand:             rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		EquivalenceClass: func(ev *model.Evaluation) uint64 { return unblock.EquivalenceClass(s.writer.Snapshot(), ev) },
	})
	if err != nil {
		return err
	}
	s.blocked = broker.NewBlocked(s.broker)
	s.plans = planner.NewQueue()
	s.updates = evalqueue.NewUpdates(&s.batchers, s.writer, s.cfg.Clock, s.cfg.EvalBatch)
	s.metrics = newMetrics()
	s.policies.OnName(s.metrics.initPolicy)
	s.queue = evalqueue.New(evalqueue.Config{
		Writer: s.writer, Broker: s.broker, Plans: s.plans, Updates: s.updates, Peers: s.queuePeers(), Traces: s.traces,
		Clock: s.cfg.Clock, Logger: s.logger, Random: s.cfg.Random, Poll: s.cfg.Pool.Poll,
		WaitReady: s.policies.WaitReady, OnDelivery: s.metrics.observeDelivery,
	})
	s.pump = evalqueue.NewPump(&worker.Feed{Broker: s.broker, Blocked: s.blocked, Policies: s.policies}, s.writer, s.cfg.Clock)
	beats := s.heartbeatConfig()
	s.nodes, s.clusters = heartbeat.NewNodes(beats), heartbeat.NewClusters(beats)
	publisher := eventsink.New(s.eventConfig())
	s.decisions = decisions{publisher, whatif.New(s.cfg.Log, policymgr.NewPast(s.policies), whatif.Signer{
		ServerID: s.cfg.ID, Release: s.cfg.Build, Key: s.cfg.Decision,
	}, s.cfg.Clock)}
	s.Collector = &gc.Collector{
		Writer: s.writer, Retention: s.cfg.Retention, Times: &gc.Timetable{}, Clock: s.cfg.Clock,
		Interval: s.cfg.CollectInterval, Logger: s.logger,
	}
	s.Endpoints = endpoint.New(endpoint.Config{
		Writer: s.writer, Clock: s.cfg.Clock, Policies: s.policies, Evals: s.evalFactory(), Updates: s.updates,
		Limits: admission.New(s.cfg.Limits, s.cfg.Clock),
		Plans:  s.plans, Broker: s.broker, Blocked: s.blocked, Nodes: s.nodes, Clusters: s.clusters, Batchers: &s.batchers, Traces: s.traces,
		NewAllocID: s.newAllocID, Secret: s.cfg.Secret,
		UpdateWindow: s.cfg.UpdateWindow, UpdateBatch: s.cfg.UpdateBatch, RegisterBatch: s.cfg.RegisterBatch, BatchSize: s.batchSize,
	})
	s.pool = worker.NewPool(worker.PoolConfig{Source: s.queue, New: s.newWorker, Clock: s.cfg.Clock, Logger: s.logger}, s.cfg.Workers)
	s.registerMetrics()
	return nil
}

// queuePeers returns the peers of the queue; nil if there are none, and not an interface
// that holds nil.
func (s *Server) queuePeers() evalqueue.Peers {
	if s.cfg.Peers == nil {
		return nil
	}
	return s.cfg.Peers
}

func (s *Server) evalFactory() evalqueue.Factory {
	return evalqueue.Factory{NewID: s.cfg.NewID, Clock: s.cfg.Clock}
}

func (s *Server) newReaper() *evalqueue.Reaper {
	return &evalqueue.Reaper{
		Writer: s.writer, Broker: s.broker, Blocked: s.blocked, Evals: s.evalFactory(), Clock: s.cfg.Clock, Logger: s.logger,
		Random: s.cfg.Random, Batch: s.cfg.EvalBatch, FollowUpDelay: s.cfg.FollowUpDelay, FollowUpJitter: s.cfg.FollowUpJitter,
	}
}

func (s *Server) policyConfig() policymgr.Config {
	c := policymgr.Config{
		ServerID: s.cfg.ID, Log: forwardingLog{Log: newAuditedLog(&s.cfg), serverID: s.cfg.ID, peers: s.cfg.Peers}, Store: s.cfg.Store,
		Host: s.cfg.Policies, Modules: s.cfg.Modules, Conditions: s.cfg.Conditions, Clock: s.cfg.Clock, Logger: s.logger, Registry: s.cfg.Registry,
		History: s.cfg.History, Voters: s.cfg.Voters, CheckLeader: s.writer.CheckLeader,
	}
	if c.Voters == nil && s.cfg.Raft != nil {
		c.Voters = s.Voters
	}
	return c
}

// explainUnchecked returns the reason for which another server has not checked a policy,
// and the remedy.
func (s *Server) explainUnchecked(id string) string {
	if s.cfg.Membership == nil || id == s.cfg.ID {
		return ""
	}
	m, known := s.Member(id)
	switch {
	case !known:
		return "it is down, because the pool does not list it: start it, or remove it for good: cede operator raft remove " + id
	case m.Status == membership.MemberAlive:
		return "it is alive and has not reported yet: it may be busy or lag behind; see its log"
	}
	status := "down"
	if m.Status == membership.MemberLeft {
		status = "gone"
	}
	return fmt.Sprintf("it has been %s since %s: start it, or remove it for good: cede operator raft remove %s",
		status, m.Since.UTC().Format(time.RFC3339), id)
}

// newKeyPublisher returns the publisher of the key that signs the server's certificates.
func newKeyPublisher(s *Server) *whatif.Publisher {
	log := forwardingLog{Log: newAuditedLog(&s.cfg), serverID: s.cfg.ID, peers: s.cfg.Peers}
	return &whatif.Publisher{Examiner: s.Examiner, Store: s.cfg.Store, Apply: log.Apply, CaughtUp: s.CaughtUp, Clock: s.cfg.Clock}
}

func (s *Server) eventConfig() eventsink.Config {
	c := eventsink.Config{
		Capacity: s.cfg.EventBuffer, History: s.cfg.History, Logger: s.logger,
		StateIndex: func() uint64 { return s.cfg.Store.Snapshot().Index() },
	}
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
	start := s.cfg.Clock.Now()
	// The time since the start does not jump if the wall clock is set: otherwise the leader
	// would declare every node down.
	ticks := func() int64 { return int64(clock.Since(s.cfg.Clock, start)) }
	return heartbeat.Config{
		Writer: s.writer, Clock: s.cfg.Clock, Ticks: ticks, Random: s.cfg.Random, Logger: s.logger,
		TTL: s.cfg.HeartbeatTTL, Grace: s.cfg.HeartbeatGrace, Rate: s.cfg.HeartbeatRate, FailoverGrace: s.cfg.FailoverGrace,
		ExpiryWindow: s.cfg.ExpiryWindow, ClusterLost: s.cfg.ClusterLost, BatchSize: s.batchSize,
	}
}

// batchSize returns how many of n node changes form one entry: one if the operator
// disabled coalescing, to measure its effect.
func (s *Server) batchSize(n int) int {
	if on := s.writer.Snapshot().Config().Coalescing; on != nil && !*on {
		return 1
	}
	return n
}

// newWorker returns a worker with a scheduler of its own.
func (s *Server) newWorker() *worker.Worker {
	c := worker.Config{
		Queue: s.queue, Planner: s.queue, States: s.queue.States(), Evals: s.queue,
		Clock: s.cfg.Clock, NewEvalID: s.cfg.NewID, Observe: s.observeWork,
		Renew: s.cfg.NackTimeout / 3, Retry: unplacedRetry,
	}
	plans := scheduler.Config{Policies: s.policies, NewID: s.newAllocID, Observe: s.observeDecision, Explain: true}
	s.traces.TraceWorker(&c, &plans)
	c.Scheduler = lookahead.NewScheduler(plans)
	return worker.New(c)
}

func (s *Server) newAllocID(*model.Group, int, int) string { return s.cfg.NewID() }

// establishedTerm returns the term of leadership that this server has established.
func (s *Server) establishedTerm() (number uint64, ok bool) {
	if t := s.term.Load(); t != nil {
		return t.number, true
	}
	return 0, false
}

// Run serves until ctx ends: it follows the leadership of Raft, runs workers, and
// publishes events. It transfers leadership before it returns.
func (s *Server) Run(ctx context.Context) error {
	if s.running.Swap(true) {
		return errors.New("server: already running")
	}
	// Writes in flight when ctx ends may still be applied.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.batchers.Start(inner)
	s.queue.Start(inner)
	var group sync.WaitGroup
	for _, run := range []func(context.Context){s.pump.Run, s.Publisher.Run, s.policies.Run, s.Manager.Run, s.watchCatchUp, newKeyPublisher(s).Run} {
		group.Go(func() { run(inner) })
	}
	workersDone := make(chan struct{})
	go func() {
		defer close(workersDone)
		s.pool.Run(ctx)
	}()
	s.leaderLoop(ctx, workersDone)
	cancel()
	s.queue.Wait()
	s.batchers.Wait()
	group.Wait()
	s.Publisher.Close() //nolint:staticcheck // names what is closed
	s.policies.Close()
	return nil
}

// Observe receives everything that is applied to the state. It is called by the goroutine
// that applies, in the order of the log, and never blocks.
func (s *Server) Observe(list []replication.Applied) {
	for i := range list {
		a := &list[i]
		s.Times.Record(a)
		s.traces.ObserveEntry(a)
		s.pump.Observe(a)
	}
	s.Publisher.Observe(list)
}

// Pin returns the active policies, for components that schedule without workers, such as
// the Kubernetes extender. The caller must unpin them.
func (s *Server) Pin() *policy.Set { return s.policies.Pin() }

// Reload applies configuration that may change while the server runs.
func (s *Server) Reload(r Reloadable) error {
	if r.Workers == nil {
		return nil
	}
	if *r.Workers < 0 {
		return apierror.New(apierror.CodeInvalid, "number of workers must not be negative: %d", *r.Workers).WithHint("0 pauses this server's workers")
	}
	before := s.Workers().Wanted
	s.pool.Resize(*r.Workers)
	switch {
	case *r.Workers == 0 && before > 0:
		s.logger.Warn("workers paused: this server processes no evaluations", "before", before)
	case *r.Workers != before:
		s.logger.Info("number of workers changed", "before", before, "now", *r.Workers)
	}
	return nil
}

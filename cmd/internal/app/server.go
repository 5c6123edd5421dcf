package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/condition"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/selfwatch"
	"github.com/cede-scheduler/cede/core/api"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/kube/report"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/sdk/client"
)

// serverComponents holds the parts of a server in this process.
type serverComponents struct {
	env          *environment
	id           string
	store        *storage.Store
	state        *state.Store
	log          *raftnode.Node
	server       *server.Server
	api          *api.API
	transport    *http.Transport        // to nodes
	storageFault atomic.Pointer[error]  // error that makes the storage unusable; nil if none
	voteFailed   atomic.Bool            // a Raft vote could not be written
	closing      chan struct{}          // closed before the log is closed
	network      *raft.NetworkTransport // of Raft; nil in a development server, which has no followers
	extender     *extender.Extender
	pool         *poolMember // nil in a development server, which cannot be joined
}

func newServerComponents(env *environment) *serverComponents {
	return &serverComponents{env: env, state: state.New(), transport: env.certs.transport(), closing: make(chan struct{})}
}

// start opens the storage and the log, and starts the server. Requests are answered once
// the listeners serve; advertised is the address at which other hosts reach them.
func (s *serverComponents) start(ctx context.Context, c *config.Config, process api.Process, advertised string) error {
	s.env.down.push("connections to nodes", func(context.Context) error {
		s.transport.CloseIdleConnections()
		return nil
	})
	host, err := s.openPolicies(c)
	if err != nil {
		return err
	}
	s.env.metrics.registerServerMetrics()
	if err := s.openStorage(c); err != nil {
		return err
	}
	applied := &replication.AppliedBuffer{}
	if err := s.openLog(c, applied, advertised); err != nil {
		return err
	}
	s.env.metrics.registry.MustRegister(memberGauges(s.pool))
	decisionKey, err := s.store.DecisionKey()
	if err != nil {
		return err
	}
	watch := selfwatch.New(s.env.log, watchedElection(c), s.writable)
	conf := server.Config{
		ID:  s.id,
		Log: s.log, Applied: applied, Store: s.state, Policies: host, History: s.store.History(),
		PolicySupport: server.PolicySupport{Modules: s.store.Blobs(), Conditions: condition.Trials{}},
		Workers:       workerCount(c),
		HeartbeatTTL:  c.Server.Heartbeat.TTL, HeartbeatGrace: c.Server.Heartbeat.Grace, HeartbeatRate: c.Server.Heartbeat.Rate,
		Retention: gc.Retention{
			Evals: c.Server.GC.Evals, Allocs: c.Server.GC.Allocs, Jobs: c.Server.GC.Jobs, Nodes: c.Server.GC.Nodes, Policies: c.Server.GC.Policies,
		},
		Limits:          admission.Limits(c.Limits.Admission),
		CollectInterval: c.Server.GC.Interval, HealthChecks: server.HealthChecks{StorageHealthy: s.writable, SchedulingDelay: watch.Delay}, Keys: server.Keys{Secret: planSecret(c), Decision: decisionKey},
		Logger: s.env.log, Registry: s.env.metrics.registry, Tracer: s.env.tracer, Build: s.env.o.Build.Version,
	}
	if c.Pooled() {
		conf.Membership, conf.Peers, conf.Raft, conf.Expect = s.pool, s.pool.client, s.log.Raft(), c.Server.Founders()
	}
	if s.server, err = server.New(conf); err != nil {
		return err
	}
	if err := s.makeAPI(c, process); err != nil {
		return err
	}
	if c.Pooled() {
		s.openPool()
	}
	s.runWatch(ctx, watch)
	s.runServer(ctx)
	return nil
}

// runWatch runs the watch of this process until it stops.
func (s *serverComponents) runWatch(ctx context.Context, watch *selfwatch.Watch) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { watch.Run(ctx) })
	s.env.down.push("watch of this process", func(context.Context) error {
		cancel()
		done.Wait()
		return nil
	})
}

func planSecret(c *config.Config) func() []byte {
	if c.Server.Secret == "" {
		return nil
	}
	return func() []byte { return []byte(c.Server.Secret) }
}

// openPolicies creates the host of policies.
func (s *serverComponents) openPolicies(c *config.Config) (*registry.PolicyHost, error) {
	roots, err := bundle.ReadRoots(c.Policy.Roots...)
	if err != nil {
		return nil, fmt.Errorf("policy.roots: %w", err)
	}
	loader := policies.New(policies.Options{
		CacheDir: s.env.dataPath("server/compiled"), RunDir: "", Roots: roots, RequireSignature: c.Policy.RequireSignature, Log: s.env.log,
	})
	s.env.down.push("policies", func(context.Context) error { return loader.Close() })
	o := policies.ServerOptions{Most: policy.Limits{
		Fuel: uint64(c.Policy.Limits.Fuel), Memory: int64(c.Policy.Limits.Memory), Time: c.Policy.Limits.Time,
	}}
	for _, e := range c.Policy.Executables {
		digest, err := e.Digest()
		if err != nil {
			return nil, fmt.Errorf("policy.executables: %w", err)
		}
		o.Executables = append(o.Executables, registry.Executable{Name: e.Name, Path: e.Path, SHA256: digest})
	}
	return loader.ForServer(o)
}

// openStorage opens the data directory, and reads or creates the ID of the server.
func (s *serverComponents) openStorage(c *config.Config) error {
	logConfig := raftlog.Config{OnFault: func(err error) {
		s.setStorageFault(err)
		s.env.fail(fmt.Errorf("cannot write to the log: %w", err))
	}}
	if c.Dev {
		logConfig.MinFree = 16 << 20 // a development server needs little space
	}
	store, err := storage.Open(storage.Config{
		Dir: s.env.dataPath("server"), NewestCluster: replication.Newest, Log: logConfig, Logger: s.env.log,
		OnSweep: func(took time.Duration) { s.env.metrics.collect.Observe(took.Seconds()) },
	})
	if err != nil {
		return err
	}
	s.store = store
	s.env.down.push("storage", func(context.Context) error { return store.Close() })
	s.env.metrics.registry.MustRegister(newGaugeCollector("cede_storage_size_bytes", "Size of each part of the data directory on disk.", "part", func() map[string]float64 {
		sizes := map[string]float64{}
		for part, n := range store.Sizes() {
			sizes[part] = float64(n)
		}
		return sizes
	}))
	s.id, err = store.ServerID(rand.Text)
	return err
}

// openLog connects the server to its log. A new log bootstraps a single-server cluster,
// unless several servers are configured.
func (s *serverComponents) openLog(c *config.Config, applied *replication.AppliedBuffer, advertised string) error {
	var transport raft.Transport
	if c.Dev {
		_, transport = raft.NewInmemTransport(raft.ServerAddress(s.id))
	} else {
		if err := s.openRPC(c); err != nil {
			return err
		}
		network := raftnode.NewTransport(s.pool.rpc.Raft(), s.pool, s.env.log)
		s.env.down.push("Raft's connections", func(context.Context) error { return network.Close() })
		s.network, transport = network, network
		if c.Pooled() {
			if err := s.openGossip(c, advertised); err != nil {
				return err
			}
		}
	}
	watched := raftlog.WithDeadline(s.store.Log(), c.Server.WriteDeadline, func(op string) {
		err := fmt.Errorf("disk operation %s did not complete within %v", op, c.Server.WriteDeadline)
		s.setStorageFault(err)
		s.closeRaftTransport()
		s.env.fail(err)
	})
	votes := raftlog.NewStableStore(watched, func(err error) {
		s.voteFailed.Store(true)
		s.setStorageFault(err)
		s.env.fail(fmt.Errorf("cannot store the vote of this server: %w", err))
	})
	log, err := raftnode.Open(raftnode.Config{
		ServerID: s.id, Log: watched, Stable: votes, Snapshots: s.store.Snapshots(), Transport: transport,
		Store: s.state, Modules: s.store.Blobs(), Observe: s.recordClusterVersion(s.env.log, applied.Observe), Timer: s.env.metrics.timer, Logger: raftLogger(s.env.log, c.Dev), Timing: raftTiming(c),
	})
	if err != nil {
		return err
	}
	s.log = log
	halted := make(chan struct{})
	go func() {
		defer close(halted)
		select {
		case <-log.Done():
			s.env.fail(fmt.Errorf("cannot apply the log: %w", log.Err()))
		case <-s.closing:
		}
	}()
	s.env.down.push("log", func(context.Context) error {
		close(s.closing)
		<-halted
		if s.voteFailed.Load() {
			return nil // without a durable vote, Raft blocks permanently
		}
		return log.Close()
	})
	if c.Server.Founders() != 1 && !c.Dev {
		return nil
	}
	return log.Bootstrap(raft.Server{ID: raft.ServerID(s.id), Address: transport.LocalAddr(), Suffrage: raft.Voter})
}

// recordClusterVersion returns an observer that stores the version of the cluster in the
// data directory before it calls next. It writes a file only when the version rises.
func (s *serverComponents) recordClusterVersion(log *slog.Logger, next func([]replication.Applied)) func([]replication.Applied) {
	return func(list []replication.Applied) {
		if n := len(list); n > 0 {
			if err := s.store.RecordClusterVersion(list[n-1].Snap.Meta().Version); err != nil {
				log.Warn("failed to record the version of the cluster", "err", err)
			}
		}
		next(list)
	}
}

// raftTiming returns the timeouts of Raft. A development server waits for no other server.
func raftTiming(c *config.Config) raftnode.Timing {
	r := &c.Server.Raft
	t := raftnode.Timing{
		Heartbeat: r.Heartbeat, Election: r.Election, Lease: r.Lease,
		SnapshotInterval: r.SnapshotInterval, SnapshotThreshold: uint64(r.SnapshotThreshold), TrailingLogs: uint64(r.TrailingLogs),
	}
	if c.Dev {
		t.Heartbeat, t.Election, t.Lease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	}
	return t
}

// watchedElection returns the shortest timeout that starts an election, or 0 for a server
// without a pool: no other server holds an election against it.
func watchedElection(c *config.Config) time.Duration {
	if !c.Pooled() {
		return 0
	}
	t := raftTiming(c)
	return min(t.Heartbeat, t.Election)
}

// makeAPI creates the HTTP API, which calls the functions of the process.
func (s *serverComponents) makeAPI(c *config.Config, process api.Process) (err error) {
	if s.extender, err = s.makeExtender(); err != nil {
		return err
	}
	if c.Pooled() {
		process.Members, process.LeaderURL = s.pool.apiMembers, s.server.LeaderURL
	}
	played := comparisons.NewQueue(comparisons.Config{Command: compiler.Self()})
	s.env.down.push("comparisons", func(context.Context) error {
		played.Stop()
		return nil
	})
	s.api, err = api.New(api.Config{
		Comparisons: played,
		Server:      s.server, Replication: s.log, ID: s.id, Region: c.Region, Datacenter: c.Datacenter, Version: s.env.o.Build.Version,
		Process: process, Kube: s.extender, KubeReports: report.New(clock.Real{}),
		Security: c.ACL.Enabled, Traces: s.env.tracer != nil, ForwardTransport: s.transport,
		Limits: api.Limits{
			Body: int64(c.Limits.Body), Job: int64(c.Limits.Job), Rate: requestRate(c), Burst: c.Limits.Burst, Conns: c.Limits.Connections,
		},
		Logger: s.env.log, Registry: s.env.metrics.registry,
	})
	return err
}

// apiProcess returns the functions of the process that the API calls.
func (p *Process) apiProcess(c *config.Config) api.Process {
	a := api.Process{Name: c.Name, Reload: p.Reload, Config: p.maskedConfig, TempDir: p.dataDir}
	if c.Client.Enabled {
		a.NodeHealth = func() *client.AgentHealth {
			if p.agent.Load() == nil {
				return &client.AgentHealth{Message: "the node has not started yet"}
			}
			return &client.AgentHealth{Ok: true, Message: "ok"}
		}
	}
	if c.Pooled() {
		a.Left = p.stopAfterLeave
	}
	return a
}

// requestRate returns the rate limit as the API expects it: -1 for none.
func requestRate(c *config.Config) float64 {
	if c.Limits.Rate == 0 {
		return -1
	}
	return c.Limits.Rate
}

// maskedConfig returns the configuration with secrets masked.
func (p *Process) maskedConfig() map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]any{}
	for _, v := range p.config.Values() {
		all[v.Key] = v.Value
	}
	return all
}

// runServer runs the server until the process stops.
func (s *serverComponents) runServer(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.server.Run(ctx); err != nil {
			s.env.fail(err)
		}
	}()
	s.env.down.push("server", func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// workerCount returns the number of workers as the server expects it: negative for none,
// because 0 selects the default.
func workerCount(c *config.Config) int {
	if c.Server.Workers == 0 {
		return -1
	}
	return c.Server.Workers
}

// closeRaftTransport stops the Raft traffic of this server. A leader with a blocked disk
// cannot transfer leadership, because Raft waits for the disk, but it would continue to
// send heartbeats. Without them the other servers elect a new leader at once.
func (s *serverComponents) closeRaftTransport() {
	if s.network == nil {
		return
	}
	_ = s.network.Close() // it is closed once more when the process stops
	s.network.CloseStreams()
}

func (s *serverComponents) setStorageFault(err error) { s.storageFault.CompareAndSwap(nil, &err) }

// writable returns an error while the storage accepts no entries. Lack of space is
// temporary.
func (s *serverComponents) writable() error {
	if err := s.healthy(); err != nil {
		return err
	}
	return s.store.CheckSpace()
}

// healthy returns the permanent fault of the storage, or nil.
func (s *serverComponents) healthy() error {
	if err := s.storageFault.Load(); err != nil {
		return *err
	}
	return nil
}

// findAllocNode returns the node of the allocation with an ID or prefix, and the address
// of its agent. If there is no address, text is the reason.
func (s *serverComponents) findAllocNode(id string) (node, address, text string) {
	snap := s.state.Snapshot()
	a := snap.Alloc(id)
	for other := range snap.Allocs() {
		if a != nil || id == "" {
			break
		}
		if strings.HasPrefix(other.ID, id) {
			a = other
		}
	}
	if a == nil {
		return "", "", fmt.Sprintf("allocation %q not found", id)
	}
	n := snap.Node(a.NodeID)
	if n == nil || n.Address == "" {
		return a.NodeID, "", fmt.Sprintf("cannot reach node %s of allocation %s: the address of its agent is unknown", a.NodeID, a.ID)
	}
	return n.ID, n.Address, ""
}

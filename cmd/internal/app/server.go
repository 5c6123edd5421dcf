package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/api"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
)

// serverComponents holds the parts of a server in this process.
type serverComponents struct {
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
	pool         *poolMember            // nil in a development server, which cannot be joined
}

// startServer opens the storage and the log, and starts the server. Requests are answered
// once the listeners serve.
func (p *Process) startServer(ctx context.Context, c *config.Config) error {
	s := &serverComponents{state: state.New(), transport: p.certs.transport(), closing: make(chan struct{})}
	p.server = s
	p.down.push("connections to nodes", func(context.Context) error {
		s.transport.CloseIdleConnections()
		return nil
	})
	host, err := p.openPolicies(c)
	if err != nil {
		return err
	}
	p.metrics.registerServerMetrics()
	if err := p.openStorage(c); err != nil {
		return err
	}
	applied := &replication.AppliedBuffer{}
	if err := p.openLog(c, applied); err != nil {
		return err
	}
	p.metrics.registry.MustRegister(memberGauges(s.pool))
	conf := server.Config{
		ID: s.id, Region: c.Region, Datacenter: c.Datacenter,
		Log: s.log, Applied: applied, Store: s.state, Policies: host, Modules: s.store.Blobs(), History: s.store.History(),
		Workers:      workerCount(c),
		HeartbeatTTL: c.Server.Heartbeat.TTL, HeartbeatGrace: c.Server.Heartbeat.Grace, HeartbeatRate: c.Server.Heartbeat.Rate,
		Retention: gc.Retention{
			Evals: c.Server.GC.Evals, Allocs: c.Server.GC.Allocs, Jobs: c.Server.GC.Jobs, Nodes: c.Server.GC.Nodes, Policies: c.Server.GC.Policies,
		},
		CollectInterval: c.Server.GC.Interval, StorageHealthy: s.writable, Secret: planSecret(c),
		Logger: p.log, Registry: p.metrics.registry, Tracer: p.tracer, Build: p.o.Build.Version,
	}
	if c.Pooled() {
		conf.Membership, conf.Peers, conf.Raft, conf.Expect = s.pool, s.pool.client, s.log.Raft(), c.Server.Founders()
	}
	if s.server, err = server.New(conf); err != nil {
		return err
	}
	if err := p.makeAPI(c); err != nil {
		return err
	}
	if c.Pooled() {
		p.openPool()
	}
	p.runServer(ctx)
	return nil
}

func planSecret(c *config.Config) func() []byte {
	if c.Server.Secret == "" {
		return nil
	}
	return func() []byte { return []byte(c.Server.Secret) }
}

// openPolicies creates the host of policies.
func (p *Process) openPolicies(c *config.Config) (*registry.PolicyHost, error) {
	roots, err := bundle.ReadRoots(c.Policy.Roots...)
	if err != nil {
		return nil, fmt.Errorf("policy.roots: %w", err)
	}
	loader := policies.New(policies.Options{
		CacheDir: p.dataPath("server/compiled"), RunDir: "", Roots: roots, RequireSignature: c.Policy.RequireSignature, Log: p.log,
	})
	p.down.push("policies", func(context.Context) error { return loader.Close() })
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
func (p *Process) openStorage(c *config.Config) error {
	s := p.server
	logConfig := raftlog.Config{OnFault: func(err error) {
		s.setStorageFault(err)
		p.fail(fmt.Errorf("cannot write to the log: %w", err))
	}}
	if c.Dev {
		logConfig.MinFree = 16 << 20 // a development server needs little space
	}
	store, err := storage.Open(storage.Config{Dir: p.dataPath("server"), Log: logConfig, Logger: p.log, OnSweep: func(took time.Duration) { p.metrics.collect.Observe(took.Seconds()) }})
	if err != nil {
		return err
	}
	s.store = store
	p.down.push("storage", func(context.Context) error { return store.Close() })
	p.metrics.registry.MustRegister(newGaugeCollector("cede_storage_size_bytes", "Size of each part of the data directory on disk.", "part", func() map[string]float64 {
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
func (p *Process) openLog(c *config.Config, applied *replication.AppliedBuffer) error {
	s := p.server
	var transport raft.Transport
	if c.Dev {
		_, transport = raft.NewInmemTransport(raft.ServerAddress(s.id))
	} else {
		if err := p.openRPC(c); err != nil {
			return err
		}
		network := raftnode.NewTransport(s.pool.rpc.Raft(), s.pool, p.log)
		p.down.push("Raft's connections", func(context.Context) error { return network.Close() })
		s.network, transport = network, network
		if c.Pooled() {
			if err := p.openGossip(c); err != nil {
				return err
			}
		}
	}
	watched := raftlog.WithDeadline(s.store.Log(), c.Server.WriteDeadline, func(op string) {
		err := fmt.Errorf("disk operation %s did not complete within %v", op, c.Server.WriteDeadline)
		s.setStorageFault(err)
		s.closeRaftTransport()
		p.fail(err)
	})
	votes := raftlog.NewStableStore(watched, func(err error) {
		s.voteFailed.Store(true)
		s.setStorageFault(err)
		p.fail(fmt.Errorf("cannot store the vote of this server: %w", err))
	})
	log, err := raftnode.Open(raftnode.Config{
		ServerID: s.id, Log: watched, Stable: votes, Snapshots: s.store.Snapshots(), Transport: transport,
		Store: s.state, Modules: s.store.Blobs(), Observe: applied.Observe, Timer: p.metrics.timer, Logger: raftLogger(p.log, c.Dev), Timing: raftTiming(c),
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
			p.fail(fmt.Errorf("cannot apply the log: %w", log.Err()))
		case <-s.closing:
		}
	}()
	p.down.push("log", func(context.Context) error {
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

// makeAPI creates the HTTP API.
func (p *Process) makeAPI(c *config.Config) (err error) {
	s := p.server
	kube, err := p.makeExtender()
	if err != nil {
		return err
	}
	s.api, err = api.New(api.Config{
		Server: s.server, Replication: s.log, ID: s.id, Region: c.Region, Datacenter: c.Datacenter, Version: p.o.Build.Version,
		Process: p.apiProcess(c), Kube: kube,
		Security: c.ACL.Enabled, Traces: p.tracer != nil, ForwardTransport: s.transport,
		Limits: api.Limits{
			Body: int64(c.Limits.Body), Job: int64(c.Limits.Job), Rate: requestRate(c), Burst: c.Limits.Burst, Conns: c.Limits.Connections,
		},
		Logger: p.log, Registry: p.metrics.registry,
	})
	return err
}

// apiProcess returns the functions of the process that the API calls.
func (p *Process) apiProcess(c *config.Config) api.Process {
	a := api.Process{Name: c.Name, Reload: p.Reload, Config: p.maskedConfig}
	if c.Pooled() {
		a.Members, a.LeaderURL, a.Left = p.server.pool.apiMembers, p.server.server.LeaderURL, p.stopAfterLeave
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
func (p *Process) runServer(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.server.server.Run(ctx); err != nil {
			p.fail(err)
		}
	}()
	p.down.push("server", func(ctx context.Context) error {
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
		return "", "", fmt.Sprintf("unknown allocation %q", id)
	}
	n := snap.Node(a.NodeID)
	if n == nil || n.Address == "" {
		return a.NodeID, "", fmt.Sprintf("cannot reach node %s of allocation %s: the address of its agent is unknown", a.NodeID, a.ID)
	}
	return n.ID, n.Address, ""
}

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A Runner is a server made from a log: *server.Server.
type Runner interface {
	Run(ctx context.Context) error
}

// Fast elects a leader within milliseconds of real time. Under the race detector, where a
// busy machine delays heartbeats, it is four times slower.
var Fast = fastTiming()

func fastTiming() raftnode.Timing {
	unit := 50 * time.Millisecond
	if soak.Race {
		unit *= 4
	}
	return raftnode.Timing{Heartbeat: unit, Election: unit, Lease: unit, Commit: 5 * time.Millisecond}
}

// Options describe a cluster. Only New is required.
type Options[S Runner] struct {
	Size int // number of members; default: 1
	// New makes a server from a member whose log is open. It is called at every start of
	// the member. It attaches the server to m.Applied.
	New func(m *Member[S]) (S, error)
	// Open changes how the log of a member is opened; nil: no change.
	Open func(m *Member[S], c *raftnode.Config)
	// SelfBootstrap leaves it to the servers to bootstrap the cluster.
	SelfBootstrap bool
}

// A Cluster is a set of members that are connected with each other.
type Cluster[S Runner] struct {
	Members []*Member[S]

	t testing.TB
	o Options[S]
}

// A Member is one server with its disk. The disk survives a restart.
type Member[S Runner] struct {
	ID        string
	Address   raft.ServerAddress // where a run connects to the network; may change between runs
	Disk      *raft.InmemStore
	Snapshots raft.SnapshotStore
	Modules   *replicationtest.Modules

	// Of the current run, or of the last one:
	Node      *raftnode.Node
	Store     *state.Store
	Applied   *replication.AppliedBuffer
	Transport *raft.InmemTransport

	c       *Cluster[S]
	running atomic.Pointer[run[S]]
}

// run is one run of a member.
type run[S Runner] struct {
	server S
	node   *raftnode.Node
	cancel context.CancelFunc
	done   chan error
}

// New returns a cluster without members; Size is not used.
func New[S Runner](t testing.TB, o Options[S]) *Cluster[S] { return &Cluster[S]{t: t, o: o} }

// Start starts and bootstraps a cluster. The caller stops it with Stop.
func Start[S Runner](t testing.TB, o Options[S]) *Cluster[S] {
	t.Helper()
	c := New(t, o)
	for i := range cmp.Or(o.Size, 1) {
		c.Add(fmt.Sprintf("s%d", i+1))
	}
	for _, m := range c.Members {
		m.Start()
	}
	if !o.SelfBootstrap {
		c.Bootstrap()
	}
	return c
}

// Add adds a member that is not started.
func (c *Cluster[S]) Add(id string) *Member[S] {
	m := &Member[S]{
		ID: id, Address: raft.ServerAddress(id), Disk: raft.NewInmemStore(), Snapshots: raft.NewInmemSnapshotStore(), Modules: replicationtest.NewModules(), c: c,
	}
	c.Members = append(c.Members, m)
	return m
}

// Bootstrap makes the running members the voters of the cluster. The first member must run.
func (c *Cluster[S]) Bootstrap() {
	c.t.Helper()
	var list []raft.Server
	for _, m := range c.Members {
		if m.running.Load() != nil {
			list = append(list, raft.Server{ID: raft.ServerID(m.ID), Address: m.Address})
		}
	}
	if err := c.Members[0].Node.Bootstrap(list...); err != nil {
		c.t.Fatal(err)
	}
}

// Stop stops all members and closes the network.
func (c *Cluster[S]) Stop() {
	for _, m := range c.Members {
		m.Stop()
	}
	for _, m := range c.Members {
		if m.Transport != nil {
			_ = m.Transport.Close() // it holds nothing that could fail
		}
	}
}

// Leader returns the running member that leads, or nil. Its term may not be established.
func (c *Cluster[S]) Leader() *Member[S] {
	for _, m := range c.Members {
		if r := m.running.Load(); r != nil && r.node.IsLeader() {
			return m
		}
	}
	return nil
}

// Server returns the running server; ok is false if the member is stopped.
func (m *Member[S]) Server() (s S, ok bool) {
	r := m.running.Load()
	if r == nil {
		return s, false
	}
	return r.server, true
}

// Start opens the log from the disk, makes a server and runs it.
func (m *Member[S]) Start() {
	t := m.c.t
	t.Helper()
	m.connect()
	m.Store, m.Applied = state.New(), &replication.AppliedBuffer{}
	open := raftnode.Config{
		ServerID: m.ID, Log: m.Disk, Stable: m.Disk, Snapshots: m.Snapshots, Modules: m.Modules,
		Transport: replicationtest.Transport{InmemTransport: m.Transport}, Store: m.Store, Observe: m.Applied.Observe,
	}
	if m.c.o.Open != nil {
		m.c.o.Open(m, &open)
	}
	var err error
	if m.Node, err = raftnode.Open(open); err != nil {
		t.Fatal(err)
	}
	r := &run[S]{node: m.Node, done: make(chan error, 1)}
	if r.server, err = m.c.o.New(m); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	go func() { r.done <- r.server.Run(ctx) }()
	m.running.Store(r)
}

// connect connects the member to those that run. Closing a log disconnects it from the
// network, so that every run has a transport of its own.
func (m *Member[S]) connect() {
	_, m.Transport = raft.NewInmemTransportWithTimeout(m.Address, time.Second)
	for _, o := range m.c.Members {
		if o != m && o.running.Load() != nil {
			m.Transport.Connect(o.Address, o.Transport)
			o.Transport.Connect(m.Address, m.Transport)
		}
	}
}

// Stop stops the server and closes its log, if it runs. The disk remains.
func (m *Member[S]) Stop() {
	r := m.running.Swap(nil)
	if r == nil {
		return
	}
	r.cancel()
	if err := errors.Join(<-r.done, m.Node.Close()); err != nil {
		m.c.t.Errorf("stop %s: %v", m.ID, err)
	}
}

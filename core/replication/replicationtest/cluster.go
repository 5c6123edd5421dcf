package replicationtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// A Cluster is a cluster of nodes in one process, in virtual time, with a network
// and disks in memory. A member's disks survive a
// restart. The state after every entry is compared between the members.
type Cluster struct {
	T       *testing.T
	Members []*Member
	opts    Options

	// mu guards Node, Transport and cut of the members. It is not held while
	// waiting: virtual time does not advance while a goroutine waits for a mutex.
	mu     sync.Mutex
	seen   sync.Mutex
	hashes map[uint64][32]byte // of the first member that reported an index
}

// Options change a cluster. The zero value is a cluster of three whose logs may
// have gaps and are truncated early.
type Options struct {
	Members int
	Gapless bool // logs are monotonic, as those of package storage
}

// A Member is one server of a Cluster.
type Member struct {
	ID        string
	Disk      *raft.InmemCommitTrackingStore
	Snapshots *raft.InmemSnapshotStore
	Modules   *Modules
	Transport *raft.InmemTransport
	Store     *state.Store
	Node      *raftnode.Node // nil while it is stopped
	cut       bool           // off the network
}

func newMember(id string) *Member {
	return &Member{ID: id, Disk: raft.NewInmemCommitTrackingStore(), Snapshots: raft.NewInmemSnapshotStore(), Modules: NewModules()}
}

// server returns the member's entry in Raft's configuration.
func (m *Member) server() raft.Server {
	return raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.ID)}
}

// A Transport is in memory and does not pipeline, like raftnode.NewTransport.
type Transport struct{ *raft.InmemTransport }

var (
	_ raft.Transport   = Transport{}
	_ raft.WithPreVote = Transport{}
	_ raft.WithClose   = Transport{}
)

// AppendEntriesPipeline implements raft.Transport.
func (Transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// A SlowTransport delays entries, so that faults happen while some are in transit. 3 ms
// are far less than an election timeout.
type SlowTransport struct{ Transport }

// AppendEntries implements raft.Transport.
func (t SlowTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	time.Sleep(3 * time.Millisecond) //nolint:forbidigo // virtual time
	return t.InmemTransport.AppendEntries(id, to, args, resp)
}

// A Gapless log is monotonic: Raft empties it before it installs a snapshot.
type Gapless struct{ *raft.InmemCommitTrackingStore }

// IsMonotonic implements raft.MonotonicLogStore.
func (Gapless) IsMonotonic() bool { return true }

// NewCluster starts a cluster. The caller calls Close. It must be called within a
// synctest bubble.
func NewCluster(t *testing.T, opts Options) *Cluster {
	t.Helper()
	c := &Cluster{T: t, opts: opts, hashes: map[uint64][32]byte{}}
	var servers []raft.Server
	for i := range cmp.Or(opts.Members, 3) {
		m := newMember(fmt.Sprint("s", i))
		c.Members = append(c.Members, m)
		servers = append(servers, m.server())
	}
	for _, m := range c.Members {
		c.Start(m)
		if err := m.Node.Bootstrap(servers...); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// AddMember starts a server that is not a member yet.
func (c *Cluster) AddMember(id string) *Member {
	c.T.Helper()
	m := newMember(id)
	c.Members = append(c.Members, m)
	c.Start(m)
	return m
}

// Start starts a member from its disks.
func (c *Cluster) Start(m *Member) {
	c.T.Helper()
	_, transport := raft.NewInmemTransport(raft.ServerAddress(m.ID))
	m.Store = state.New()
	var log raft.LogStore = m.Disk
	if c.opts.Gapless {
		log = Gapless{m.Disk}
	}
	node, err := raftnode.Open(raftnode.Config{
		ServerID: m.ID, Log: log, Stable: m.Disk, Snapshots: m.Snapshots, Transport: SlowTransport{Transport{transport}}, Store: m.Store,
		Modules: m.Modules, Observe: c.compare,
		Timing: raftnode.Timing{TrailingLogs: 5, SnapshotThreshold: 8, SnapshotInterval: 3 * time.Second},
	})
	if err != nil {
		c.T.Fatal(err)
	}
	c.mu.Lock()
	m.Node, m.Transport = node, transport
	c.mu.Unlock()
	c.connect()
}

// Stop stops a member. Its disks remain.
func (c *Cluster) Stop(m *Member) {
	c.mu.Lock()
	node := m.Node
	m.Node = nil
	c.mu.Unlock()
	if node == nil {
		return
	}
	if err := node.Close(); err != nil {
		c.T.Error(err)
	}
}

// Close stops every member.
func (c *Cluster) Close() {
	for _, m := range c.Members {
		c.Stop(m)
	}
}

// Node returns a member's node, or nil while it is stopped.
func (c *Cluster) Node(m *Member) *raftnode.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.Node
}

// compare compares the state at every index with the states of other members.
func (c *Cluster) compare(applied []replication.Applied) {
	if len(c.Members) == 1 {
		return // there is nothing to compare with
	}
	c.seen.Lock()
	defer c.seen.Unlock()
	for _, a := range applied {
		if a.Entry == nil {
			continue // a snapshot, which may have another index
		}
		hash := snapshot.Hash(a.Snap)
		if seen, ok := c.hashes[a.Index]; ok && seen != hash {
			c.T.Errorf("the members have different states at index %d", a.Index)
		}
		c.hashes[a.Index] = hash
	}
}

// connect makes the network match the members' cut.
func (c *Cluster) connect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.Members {
		for _, b := range c.Members {
			if a == b || a.Node == nil || b.Node == nil {
				continue
			}
			if a.cut || b.cut {
				a.Transport.Disconnect(raft.ServerAddress(b.ID))
			} else {
				a.Transport.Connect(raft.ServerAddress(b.ID), b.Transport)
			}
		}
	}
}

// setCut changes which members are off the network.
func (c *Cluster) setCut(cut bool, members []*Member) {
	c.mu.Lock()
	for _, m := range members {
		m.cut = cut
	}
	c.mu.Unlock()
	c.connect()
}

// Isolate disconnects members from all others. A leader that is isolated steps down
// after its lease.
func (c *Cluster) Isolate(members ...*Member) { c.setCut(true, members) }

// Rejoin reconnects members.
func (c *Cluster) Rejoin(members ...*Member) { c.setCut(false, members) }

// Disconnect disconnects a member from some others. The next call of connect restores
// the connection, for instance the start of a member.
func (c *Cluster) Disconnect(m *Member, others ...*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range others {
		m.Transport.Disconnect(raft.ServerAddress(o.ID))
		o.Transport.Disconnect(raft.ServerAddress(m.ID))
	}
}

// Leader waits for a leader with a majority. IsLeader alone does not suffice: an
// isolated leader reports true until its lease ends.
func (c *Cluster) Leader() *Member {
	c.T.Helper()
	for range 1000 {
		for _, m := range c.Members {
			if node := c.Node(m); node != nil && node.IsLeader() && node.VerifyLeader(c.T.Context()) == nil {
				return m
			}
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // virtual time
	}
	c.T.Fatal("no leader was elected")
	return nil
}

// Follower returns a member that is not the leader.
func (c *Cluster) Follower() *Member {
	leader := c.Leader()
	for _, m := range c.Members {
		if m != leader {
			return m
		}
	}
	return nil
}

// LeaderOtherThan returns a member that considers itself the leader, apart from
// one member, or nil. It does not wait.
func (c *Cluster) LeaderOtherThan(other *Member) *Member {
	for _, m := range c.Members {
		if node := c.Node(m); m != other && node != nil && node.IsLeader() {
			return m
		}
	}
	return nil
}

// WaitConverged waits until every member has the leader's state. It fails the test if a
// state differs after 50 seconds of virtual time.
func (c *Cluster) WaitConverged() {
	c.T.Helper()
	leader := c.Leader()
	if err := leader.Node.Barrier(c.T.Context()); err != nil {
		c.T.Fatal(err)
	}
	for _, m := range c.Members {
		for range 1000 {
			if m.Store.Snapshot().Index() == leader.Store.Snapshot().Index() {
				break
			}
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // virtual time
		}
		if snapshot.Hash(m.Store.Snapshot()) != snapshot.Hash(leader.Store.Snapshot()) {
			c.T.Fatalf("%s is at index %d, %s at %d, or their states differ",
				m.ID, m.Store.Snapshot().Index(), leader.ID, leader.Store.Snapshot().Index())
		}
	}
}

// Send writes an entry through the current leader, and retries until the outcome is
// known. An entry with an unknown outcome is sent again, so it may be applied twice
// unless it has a key.
func (c *Cluster) Send(e *replication.Entry) *replication.Result {
	c.T.Helper()
	for range 2000 {
		for _, m := range c.Members {
			node := c.Node(m)
			if node == nil || !node.IsLeader() {
				continue
			}
			ctx, cancel := context.WithTimeout(c.T.Context(), time.Second)
			result, err := node.Apply(ctx, e)
			cancel()
			if err == nil {
				return result
			}
			expected := errors.Is(err, replication.ErrNotLeader) || errors.Is(err, replication.ErrUnknownOutcome) || errors.Is(err, replication.ErrClosed)
			if !expected {
				c.T.Errorf("apply: %v", err)
			}
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // virtual time
	}
	c.T.Fatal("an entry was not written within 2000 attempts")
	return nil
}

// Register registers n versions of a job.
func (c *Cluster) Register(n int) {
	c.T.Helper()
	for i := range n {
		c.Send(&replication.Entry{Time: 1, Command: &replication.RegisterJob{Job: NumberedJob("web", i)}})
	}
}

// Restore uploads a snapshot and restores it, through whichever member leads.
func (c *Cluster) Restore(stream []byte) *replication.Result {
	c.T.Helper()
	digest := replication.SnapshotDigest(sha256.Sum256(stream))
	offset := int64(0)
	for chunk := range slices.Chunk(stream, replication.MaxChunk) {
		r := c.Send(&replication.Entry{Time: 1, Command: &replication.PutChunk{Digest: digest, Offset: offset, Data: bytes.Clone(chunk)}})
		if r.Err != nil {
			c.T.Fatal(r.Err)
		}
		offset += int64(len(chunk))
	}
	return c.Send(&replication.Entry{Time: 1, Command: &replication.RestoreState{Digest: digest}})
}

// InjectFault injects one random fault, in most cases into the leader. The caller must
// not have stopped a member.
func (c *Cluster) InjectFault(r *rand.Rand) {
	m := c.Members[r.IntN(len(c.Members))]
	for _, other := range c.Members {
		if c.Node(other).IsLeader() && r.IntN(4) > 0 {
			m = other
		}
	}
	switch r.IntN(6) {
	case 0, 1:
		c.Isolate(m)
	case 2:
		c.Stop(m)
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond) //nolint:forbidigo // virtual time
		c.Start(m)
	case 3:
		if err := c.Node(m).TakeSnapshot(c.T.Context()); err != nil {
			c.T.Error("snapshot:", err)
		}
	case 4:
		ctx, cancel := context.WithTimeout(c.T.Context(), time.Second)
		_ = c.Node(m).Transfer(ctx) // only the leader can transfer leadership
		cancel()
	default:
		c.Rejoin(c.Members...)
	}
}

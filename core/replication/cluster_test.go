package replication

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A cluster of servers in one process, in virtual time, on a network and disks
// of memory: what a server kept on its disks is there when it starts again.
type cluster struct {
	t       *testing.T
	rand    *rand.Rand
	members []*member
	gapless bool // logs are, as ours
	keeps   bool // logs are never cut

	// mu guards node, trans and cut of the members. Nobody waits with it: time
	// stands still while somebody waits for a mutex.
	mu     sync.Mutex
	seen   sync.Mutex
	hashes map[uint64][32]byte // by state index: what some server found
}

type member struct {
	id    string
	disk  *raft.InmemCommitTrackingStore
	snaps *raft.InmemSnapshotStore
	keeps *memModules
	cut   bool // off the network

	trans *raft.InmemTransport
	store *state.Store
	node  *Node // nil while it is down
}

// unpiped is a transport that does not pipeline, as ours does not, and on which
// entries take a moment, so that faults find some under way.
type unpiped struct{ *raft.InmemTransport }

func (u unpiped) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	time.Sleep(3 * time.Millisecond)
	return u.InmemTransport.AppendEntries(id, to, args, resp)
}

func (unpiped) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func newCluster(t *testing.T, seed uint64, servers int) *cluster {
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 1)), hashes: map[uint64][32]byte{}}
	c.fill(servers)
	return c
}

// fill starts servers, and makes them a cluster.
func (c *cluster) fill(servers int) {
	c.t.Helper()
	var list []raft.Server
	for i := range servers {
		m := &member{
			id: fmt.Sprint("s", i), disk: raft.NewInmemCommitTrackingStore(), snaps: raft.NewInmemSnapshotStore(),
			keeps: newMemModules(),
		}
		c.members = append(c.members, m)
		list = append(list, raft.Server{ID: raft.ServerID(m.id), Address: raft.ServerAddress(m.id)})
	}
	for _, m := range c.members {
		c.start(m)
		if err := m.node.Bootstrap(list...); err != nil {
			c.t.Fatal(err)
		}
	}
}

// start starts a server with what is on its disks.
func (c *cluster) start(m *member) {
	c.t.Helper()
	_, trans := raft.NewInmemTransport(raft.ServerAddress(m.id))
	m.store = state.New()
	var log raft.LogStore = m.disk
	if c.gapless {
		log = gapless{m.disk}
	}
	timing := Timing{TrailingLogs: 5, SnapshotThreshold: 8, SnapshotInterval: 3 * time.Second}
	if c.keeps {
		timing = Timing{}
	}
	node, err := Open(Config{
		ServerID: m.id, Log: log, Stable: m.disk, Snapshots: m.snaps, Transport: unpiped{trans}, Store: m.store,
		Modules: m.keeps, Observe: c.observe,
		Timing: timing,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	m.node, m.trans = node, trans
	c.mu.Unlock()
	c.connect()
}

// up is the node of a server; nil while it is down.
func (c *cluster) up(m *member) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.node
}

// observe compares the state at every index with what other servers made of it.
func (c *cluster) observe(as []Applied) {
	if len(c.members) == 1 {
		return // there is nobody to compare it with
	}
	c.seen.Lock()
	defer c.seen.Unlock()
	for _, a := range as {
		if a.Entry == nil {
			continue // a snapshot, of whatever index
		}
		hash := Hash(a.Snap)
		if seen, ok := c.hashes[a.Index]; ok && seen != hash {
			c.t.Errorf("state at %d is not the same on all servers", a.Index)
		}
		c.hashes[a.Index] = hash
	}
}

// connect has the network as the members' cut says.
func (c *cluster) connect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.members {
		for _, b := range c.members {
			if a == b || a.node == nil || b.node == nil {
				continue
			}
			if a.cut || b.cut {
				a.trans.Disconnect(raft.ServerAddress(b.id))
			} else {
				a.trans.Connect(raft.ServerAddress(b.id), b.trans)
			}
		}
	}
}

// cut takes a server off the network, or back onto it.
func (c *cluster) cut(off bool, members ...*member) {
	c.mu.Lock()
	for _, m := range members {
		m.cut = off
	}
	c.mu.Unlock()
	c.connect()
}

func (c *cluster) halt(m *member) {
	c.mu.Lock()
	node := m.node
	m.node = nil
	c.mu.Unlock()
	if node == nil {
		return
	}
	if err := node.Close(); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) close() {
	for _, m := range c.members {
		c.halt(m)
	}
}

// leader waits for a server that leads, and that a majority follows.
func (c *cluster) leader() *member {
	for range 1000 {
		for _, m := range c.members {
			if node := c.up(m); node != nil && node.IsLeader() && node.VerifyLeader(c.t.Context()) == nil {
				return m
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatal("nobody leads")
	return nil
}

// settle waits until every server has everything.
func (c *cluster) settle() {
	c.t.Helper()
	lead := c.leader()
	if err := lead.node.Barrier(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	for _, m := range c.members {
		for range 1000 {
			if m.store.Snapshot().Index() == lead.store.Snapshot().Index() {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if Hash(m.store.Snapshot()) != Hash(lead.store.Snapshot()) {
			c.t.Fatalf("%s is at %d, %s at %d, or their states differ", m.id, m.store.Snapshot().Index(), lead.id, lead.store.Snapshot().Index())
		}
	}
}

// send has an entry written by whoever leads, and does not rest before it knows
// that it was. That is what idempotency keys are for.
func (c *cluster) send(e *Entry) *Result {
	for range 2000 {
		for _, m := range c.members {
			node := c.up(m)
			if node == nil || !node.IsLeader() {
				continue
			}
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
			result, err := node.Apply(ctx, e)
			cancel()
			if err == nil {
				return result
			}
			known := errors.Is(err, ErrNotLeader) || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrClosed)
			if !known {
				c.t.Errorf("apply: %v", err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatal("an entry is not written for ever")
	return nil
}

// fault does one bad thing, most often to the leader.
func (c *cluster) fault() {
	m := c.members[c.rand.IntN(len(c.members))]
	for _, other := range c.members {
		if c.up(other).IsLeader() && c.rand.IntN(4) > 0 {
			m = other
		}
	}
	switch c.rand.IntN(6) {
	case 0, 1:
		c.cut(true, m)
	case 2:
		c.halt(m)
		time.Sleep(time.Duration(c.rand.IntN(1000)) * time.Millisecond)
		c.start(m)
	case 3:
		if err := c.up(m).TakeSnapshot(c.t.Context()); err != nil {
			c.t.Error("snapshot:", err)
		}
	case 4:
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		_ = c.up(m).Transfer(ctx) // who does not lead has nothing to hand over
		cancel()
	default:
		c.cut(false, c.members...)
	}
}

func countedJob(id string, n int) *model.Job {
	return &model.Job{Namespace: "default", ID: id, Meta: map[string]string{"n": fmt.Sprint(n)}, Groups: []*model.Group{{Name: "g"}}}
}

// Under faults nothing that was acknowledged is lost or done twice, and every
// server makes the same of the log.
func TestCluster_LosesNothingUnderFaults(t *testing.T) {
	seeds := 6
	if os.Getenv("CEDE_SOAK") != "" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { underFaults(t, uint64(seed)) })
		})
	}
}

func underFaults(t *testing.T, seed uint64) {
	c := newCluster(t, seed, 3)
	defer c.close()
	const clients, each = 4, 25
	var sent sync.WaitGroup
	for client := range clients {
		sent.Go(func() {
			for n := range each {
				r := c.send(&Entry{
					Time: int64(n), Key: fmt.Sprint(client, "/", n), Hash: [32]byte{byte(n)},
					Command: &RegisterJob{Job: countedJob(fmt.Sprint("job", client), n)},
				})
				if r.Err != nil {
					t.Errorf("refused: %v", r.Err)
				}
				time.Sleep(time.Duration(n%5) * 20 * time.Millisecond)
			}
		})
	}
	for range 30 {
		time.Sleep(200 * time.Millisecond)
		c.fault()
	}
	c.cut(false, c.members...)
	sent.Wait()
	c.settle()
	for client := range clients {
		key := model.JobKey{Namespace: "default", ID: fmt.Sprint("job", client)}
		if j := c.members[0].store.Snapshot().Job(key); j == nil || j.Version != each-1 || j.Meta["n"] != fmt.Sprint(each-1) {
			t.Errorf("%s was changed another number of times than %d: %+v", key, each, j)
		}
	}
}

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

	mu     sync.Mutex
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

// unpiped is a transport that does not pipeline, as ours does not.
type unpiped struct{ *raft.InmemTransport }

func (unpiped) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func newCluster(t *testing.T, seed uint64, servers int) *cluster {
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 1)), hashes: map[uint64][32]byte{}}
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
			t.Fatal(err)
		}
	}
	return c
}

// start starts a server with what is on its disks.
func (c *cluster) start(m *member) {
	c.t.Helper()
	_, m.trans = raft.NewInmemTransport(raft.ServerAddress(m.id))
	m.store = state.New()
	node, err := Open(Config{
		ServerID: m.id, Log: m.disk, Stable: m.disk, Snapshots: m.snaps, Transport: unpiped{m.trans}, Store: m.store,
		Modules: m.keeps, Observe: c.observe,
		Timing: Timing{TrailingLogs: 5, SnapshotThreshold: 8, SnapshotInterval: 3 * time.Second},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	m.node = node
	c.connect()
}

// observe compares the state at every index with what other servers made of it.
func (c *cluster) observe(as []Applied) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

func (c *cluster) connect() {
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

func (c *cluster) halt(m *member) {
	if m.node == nil {
		return
	}
	if err := m.node.Close(); err != nil {
		c.t.Error(err)
	}
	m.node = nil
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
			if m.node != nil && m.node.IsLeader() && m.node.VerifyLeader(c.t.Context()) == nil {
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
			node := m.node
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

// fault does one bad thing.
func (c *cluster) fault() {
	m := c.members[c.rand.IntN(len(c.members))]
	if c.rand.IntN(2) == 0 {
		for _, other := range c.members {
			if other.node != nil && other.node.IsLeader() {
				m = other
			}
		}
	}
	switch c.rand.IntN(5) {
	case 0:
		m.cut = true
		c.connect()
	case 1:
		c.halt(m)
		c.start(m)
	case 2:
		if m.node != nil {
			if err := m.node.TakeSnapshot(c.t.Context()); err != nil && !errors.Is(err, ErrUnknownOutcome) {
				c.t.Log("snapshot:", err)
			}
		}
	case 3:
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		_ = m.node.Transfer(ctx)
		cancel()
	default:
		for _, m := range c.members {
			m.cut = false
		}
		c.connect()
	}
}

func countedJob(id string, n int) *model.Job {
	return &model.Job{Namespace: "default", ID: id, Meta: map[string]string{"n": fmt.Sprint(n)}, Groups: []*model.Group{{Name: "g"}}}
}

// Under faults nothing that was acknowledged is lost or done twice, and every
// server makes the same of the log.
func TestCluster_LosesNothingUnderFaults(t *testing.T) {
	seeds := 4
	if os.Getenv("CEDE_SOAK") != "" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, uint64(seed), 3)
				defer c.close()
				const clients, each = 3, 15
				var sent sync.WaitGroup
				// Faults and requests take turns at the members: by a channel, as time
				// stands still while somebody waits for a mutex.
				turn := make(chan struct{}, 1)
				for client := range clients {
					sent.Go(func() {
						for n := range each {
							e := &Entry{
								Time: int64(n), Key: fmt.Sprint(client, "/", n), Hash: [32]byte{byte(n)},
								Command: &RegisterJob{Job: countedJob(fmt.Sprint("job", client), n)},
							}
							turn <- struct{}{}
							c.sendOnce(e)
							<-turn
							time.Sleep(time.Duration(n%5) * 30 * time.Millisecond)
						}
					})
				}
				for range 25 {
					time.Sleep(300 * time.Millisecond)
					turn <- struct{}{}
					c.fault()
					<-turn
				}
				sent.Wait()
				for _, m := range c.members {
					m.cut = false
				}
				c.connect()
				c.settle()
				for client := range clients {
					key := model.JobKey{Namespace: "default", ID: fmt.Sprint("job", client)}
					if j := c.members[0].store.Snapshot().Job(key); j == nil || j.Version != each-1 || j.Meta["n"] != fmt.Sprint(each-1) {
						t.Errorf("%s was changed another number of times than %d: %+v", key, each, j)
					}
				}
			})
		})
	}
}

// sendOnce heals the network where it must: send would wait for ever in a
// network that stays cut while the one who heals it waits for us.
func (c *cluster) sendOnce(e *Entry) {
	up := 0
	for _, m := range c.members {
		if !m.cut && m.node != nil {
			up++
		}
	}
	if up < 2 {
		for _, m := range c.members {
			m.cut = false
		}
		c.connect()
	}
	if r := c.send(e); r.Err != nil {
		c.t.Errorf("refused: %v", r.Err)
	}
}

package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest/cluster"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Simulations of whole clusters under faults, in virtual time.
//
// A cluster has three servers with in-memory disks, agents of nodes and member clusters,
// clients that read and write, and an operator. A schedule of faults derived from a seed runs
// on it: see faults. In two of three seeds a fourth server joins, and servers are lost for
// good, or are unreachable for so long that they are removed. Invariants are checked at every
// index of the log, by the first server that applies it. Client histories are checked with
// porcupine. When all faults are over, the cluster must become idle by itself, with a
// consistent state.
//
// The seed does not determine which of several ready goroutines runs first, which ready case
// a select chooses, Raft's election timeouts, and the broker's jitter. So a seed gives the
// same faults, requests and IDs, but not the same run: repeat a seed that failed several
// times (-count=20). A pause of a server, as by SIGSTOP, delays its messages, writes, and
// timers of its own clock; Raft's timers continue.

// A simSize is the amount of activity in a cluster.
type simSize struct {
	disconnects                      bool // some jobs have a disconnect block
	nodes, clients, requests, faults int
	voters                           simVoters
	ttl                              time.Duration // of nodes and clusters; 0: so long that few are lost
}

// ttlOf returns, in two of five seeds, a TTL shorter than many network faults, so that
// agents are lost and come back.
func ttlOf(seed uint64) time.Duration {
	if seed%5 < 2 {
		return time.Second
	}
	return 0
}

// simStats counts how often the situations that the faults aim at occurred, over all seeds.
type simStats struct{ claims, evicted, joined, lost, left, isolated, reconnected, retained atomic.Int64 }

// checkCoverage fails if a situation never occurred in twenty times the number of seeds in
// which it is expected once. In a single seed it depends on chance, so rare situations may
// be missing among the 16 seeds of a normal run.
func (s *simStats) checkCoverage(t *testing.T, seeds uint64) {
	for _, situation := range []struct {
		name string
		n    *atomic.Int64
		in   uint64 // expected number of seeds for one occurrence, of the smallest size
	}{
		{"claims of bindings", &s.claims, 2},
		{"evicted assignments", &s.evicted, 2},
		{"servers that joined", &s.joined, 2},
		{"reads at isolated servers", &s.isolated, 2},
		{"lost servers", &s.lost, 5},
		{"nodes that reconnected", &s.reconnected, 12},
		{"allocations retained for them", &s.retained, 25},
		{"servers that left", &s.left, 50},
	} {
		n := situation.n.Load()
		t.Logf("%s: %d", situation.name, n)
		if n == 0 && seeds >= 20*situation.in && !t.Failed() {
			t.Errorf("no %[2]s in %[1]d seeds", seeds, situation.name)
		}
	}
}

func TestCluster_HoldsUnderFaults(t *testing.T) {
	size, seeds := simSize{nodes: 4, clients: 3, requests: 8, faults: 8}, uint64(8)
	if soak.Full() {
		size, seeds = simSize{nodes: 5, clients: 4, requests: 20, faults: 20}, 5000
	} else if soak.Quick() {
		seeds = 2
	}
	from := uint64(0)
	if text := os.Getenv("CEDE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CEDE_SEED: %v", err)
		}
		from, seeds = seed, 1
	}
	if text := os.Getenv("CEDE_SEEDS"); text != "" { // number of seeds, from CEDE_SEED on
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CEDE_SEEDS: %v", err)
		}
		seeds = n
	}
	seen := &simStats{}
	t.Cleanup(func() { seen.checkCoverage(t, seeds) })
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("to repeat: CEDE_SEED=%d go test -count=20 -run TestCluster_HoldsUnderFaults ./core/server", seed)
				}
			}()
			size := size
			size.voters, size.ttl, size.disconnects = votersOf(seed), ttlOf(seed), true
			synctest.Test(t, func(t *testing.T) {
				runSim(t, seed, size, replication.Versions{}, func(c *simCluster) {
					c.seen = seen
					c.runWithFaults()
				})
			})
		})
	}
}

// simTiming makes snapshots and truncations of the log frequent. The remaining log is
// shorter than the entries that an isolated leader may append: see "What we do about Raft"
// in core/replication/DESIGN.md.
var simTiming = raftnode.Timing{TrailingLogs: 5, SnapshotThreshold: 25, SnapshotInterval: 3 * time.Second}

// A simCluster is a cluster with its agents, clients and operator.
type simCluster struct {
	t          testing.TB
	size       simSize
	rand       *rand.Rand // of the schedule of faults
	net        *simNetwork
	pool       *cluster.Cluster[*Server]
	servers    []*simServer
	agents     []*simAgent
	members    []*simMember
	checks     *simChecks
	history    *simHistory
	seen       *simStats
	faultsOver atomic.Bool // faults are over, and agents change nothing by themselves

	ctx    context.Context // of everything that uses the servers
	cancel context.CancelFunc
	group  sync.WaitGroup // all goroutines
}

// runSim runs a test on three servers of a release, and checks the result.
func runSim(t *testing.T, seed uint64, size simSize, release replication.Versions, story func(c *simCluster)) {
	c := &simCluster{t: t, size: size, rand: rand.New(rand.NewPCG(seed, 1)), history: &simHistory{}, seen: &simStats{}}
	c.net = newSimNetwork(seed, t.Errorf)
	c.checks = newSimChecks(c)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.pool = cluster.New(t, cluster.Options[*Server]{
		Open: func(m *cluster.Member[*Server], conf *raftnode.Config) { c.server(m.ID).open(conf) },
		New:  func(m *cluster.Member[*Server]) (*Server, error) { return c.server(m.ID).newServer() },
	})
	for i := range simVotes {
		c.addServer(i, release)
	}
	if size.voters != sameVoters { // it is listed before the list is used
		c.addServer(simVotes, release).absent.Store(true)
	}
	for _, s := range c.servers[:simVotes] {
		s.start()
	}
	c.pool.Bootstrap()
	defer c.stop()
	story(c)
	c.checkAtRest()
}

// runWithFaults runs agents, clients and an operator under faults.
func (c *simCluster) runWithFaults() {
	c.must(func(ctx context.Context, s *Server) error {
		_, err := s.SetConfig(ctx, simConfig(""), nil)
		return err
	})
	c.addAgents()
	c.addMembers()
	var users sync.WaitGroup
	for i := range c.size.clients {
		users.Go(newSimClient(c, i).run)
	}
	over := make(chan struct{})
	var operator sync.WaitGroup
	operator.Go(func() { newSimOperator(c).run(over) })
	c.faults()
	users.Wait()
	close(over)
	operator.Wait()
}

// simVotes is the initial number of voters.
const simVotes = 3

func (c *simCluster) addServer(i int, release replication.Versions) *simServer {
	s := &simServer{c: c, id: fmt.Sprintf("s%d", i+1), release: release, ids: rand.New(rand.NewPCG(c.net.seed, uint64(100+i)))}
	s.disk, s.clock, s.member = newSimDisk(c), &simClock{net: c.net, id: s.id}, c.pool.Add(s.id)
	c.servers = append(c.servers, s)
	c.net.servers = append(c.net.servers, s.id)
	return s
}

// server returns a server by ID.
func (c *simCluster) server(id string) *simServer {
	for _, s := range c.servers {
		if s.id == id {
			return s
		}
	}
	return nil
}

// must calls f on the leader, without the network.
func (c *simCluster) must(f func(ctx context.Context, s *Server) error) {
	c.t.Helper()
	var err error
	for range 600 {
		for _, s := range c.servers {
			r := s.run.Load()
			if r == nil || !r.node.IsLeader() {
				continue
			}
			ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
			err = f(ctx, r.server)
			cancel()
			if err == nil {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("call failed on every leader: %v", err)
}

// stop stops everything.
func (c *simCluster) stop() {
	c.cancel()
	for _, s := range c.servers {
		s.crash()
	}
	c.group.Wait()
	time.Sleep(time.Minute) // messages of Raft to stopped servers time out
}

// A simServer is a host, which runs a server or is down.
type simServer struct {
	c      *simCluster
	id     string
	disk   *simDisk
	clock  *simClock
	member *cluster.Member[*Server]
	last   *simRun                // the current run, or the last one
	run    atomic.Pointer[simRun] // nil while it is down
	began  atomic.Int64           // Unix nanoseconds of the last start or crash
	absent atomic.Bool            // it has not joined yet, or is lost for good
	left   atomic.Bool            // it announced that it leaves
	// release holds the versions that the installed program understands; zero: this
	// release.
	release replication.Versions

	mu  sync.Mutex
	ids *rand.Rand
}

// A simRun is one run of a server, from its start to its crash.
type simRun struct {
	of     *simServer
	disk   *simDisk
	dead   chan struct{} // closed by the crash
	node   *raftnode.Node
	server *Server
}

func (s *simServer) since() time.Time { return time.Unix(0, s.began.Load()) }

// newID returns an ID derived from the seed.
func (s *simServer) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, b := s.ids.Uint64(), s.ids.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&(1<<48-1))
}

func (s *simServer) random(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.Int64N(n)
}

// start starts a server with the contents of its disk.
func (s *simServer) start() {
	s.last = &simRun{of: s, disk: s.disk, dead: make(chan struct{})}
	s.began.Store(time.Now().UnixNano())
	s.disk.hang(false) // disk faults end with the run of the server
	s.member.Start()
	s.run.Store(s.last)
}

// open lets a run use the disk and the network of its host.
func (s *simServer) open(conf *raftnode.Config) {
	r, applied := s.last, s.member.Applied
	conf.Log, conf.Stable, conf.Snapshots, conf.Modules = s.disk, s.disk, s.disk, simModules{s.disk}
	conf.Transport = &simLink{replicationtest.Transport{InmemTransport: s.member.Transport}, r}
	conf.Versions, conf.Timing = s.release, simTiming
	conf.Observe = func(list []replication.Applied) {
		s.c.checks.applied(r, list)
		applied.Observe(list)
	}
}

// newServer makes the server of a run whose log is open.
func (s *simServer) newServer() (*Server, error) {
	r, m := s.last, s.member
	r.node = m.Node
	var err error
	r.server, err = New(Config{
		ID: s.id, Log: r.node, Applied: m.Applied, Store: m.Store, Policies: simHost{s.release}, PolicySupport: PolicySupport{Modules: simModules{s.disk}}, Workers: 2, Clock: s.clock,
		Membership: simGossip{r}, Peers: simPeers{r}, Raft: r.node.Raft(), Expect: simVotes, NewID: s.newID, Random: s.random,
		Versions: s.release, Pool: s.c.size.voters.poolTiming(), HeartbeatTTL: s.c.size.ttl, HeartbeatGrace: s.c.size.ttl, FailoverGrace: 3 * s.c.size.ttl,
		Logger: slog.New(slog.NewTextHandler(s.c.output(), nil)).With("server", s.id),
	})
	return r.server, err
}

// crash ends a server like a power loss: what was written remains on its disk, and it sends
// nothing more.
func (s *simServer) crash() {
	r := s.run.Swap(nil)
	if r == nil {
		return
	}
	s.began.Store(time.Now().UnixNano())
	close(r.dead)
	s.c.net.pause(s.id, false)
	old := s.disk
	s.disk = old.copyAfterCrash()
	old.hang(false)
	s.member.Stop()
}

// output returns the writer for the logs of servers.
func (c *simCluster) output() io.Writer {
	if testing.Verbose() {
		return c.t.Output()
	}
	return io.Discard
}

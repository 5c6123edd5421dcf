package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/coretest/cluster"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A builtinHost holds only the built-in default policy.
type builtinHost struct{}

func (builtinHost) Builtins() []*policy.Version {
	return []*policy.Version{coretest.Version(func() sdk.Policy { return rules.New() })}
}

func (builtinHost) Open(context.Context, *model.PolicyVersion, []byte) (*policy.Version, error) {
	return nil, fmt.Errorf("builtinHost opens no modules")
}

func (builtinHost) Describe(context.Context, policy.LoadRequest) (*model.PolicyVersion, error) {
	return nil, fmt.Errorf("builtinHost loads no modules")
}

// A harness runs a cluster in virtual time: servers with in-memory logs, and nodes that
// report to the leader.
type harness struct {
	t           testing.TB
	cluster     *cluster.Cluster[*Server]
	members     []*member
	change      func(*Config)
	machines    map[string]*testNode
	ctx         context.Context
	cancel      context.CancelFunc
	group       sync.WaitGroup
	nodesSilent bool        // nodes send no reports
	pool        *memberPool // gossip and calls between servers; nil: a single server, or servers with a fixed configuration
}

// A member is one server with its log, which fails on demand.
type member struct {
	*cluster.Member[*Server]
	w       *harness
	id      string
	node    *raftnode.Node // nil while it is stopped
	server  *Server
	applied atomic.Pointer[Server]
	watched atomic.Pointer[budgetWatch] // nil: not every index is checked
	faults  *faultyLog
}

// runServers runs a test in virtual time with the given number of servers. It then checks
// the invariants of the state.
func runServers(t *testing.T, servers int, change func(*Config), story func(w *harness)) {
	t.Helper()
	runServersInPool(t, nil, servers, change, story)
}

// runServersInPool is runServers for servers that find each other in a pool. If makePool is
// nil, their configuration is fixed.
func runServersInPool(t *testing.T, makePool func() *memberPool, servers int, change func(*Config), story func(w *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &harness{t: t, change: change, machines: map[string]*testNode{}}
		if makePool != nil {
			w.pool = makePool()
		}
		w.ctx, w.cancel = context.WithCancel(context.Background())
		w.cluster = cluster.Start(t, cluster.Options[*Server]{Size: servers, New: w.newServer, Open: w.openLog, SelfBootstrap: w.pool != nil})
		defer w.stop()
		story(w)
		w.waitIdle()
		w.checkInvariants()
	})
}

// member returns the member with a log. It is called before the cluster is complete.
func (w *harness) member(of *cluster.Member[*Server]) *member {
	for _, m := range w.members {
		if m.Member == of {
			return m
		}
	}
	m := &member{Member: of, w: w, id: of.ID}
	w.members = append(w.members, m)
	return m
}

// openLog lets the watch of a member observe its log.
func (w *harness) openLog(of *cluster.Member[*Server], c *raftnode.Config) {
	m := w.member(of)
	m.applied.Store(nil)
	c.Observe = func(list []replication.Applied) {
		of.Applied.Observe(list)
		if b := m.watched.Load(); b != nil {
			b.observe(list)
		}
	}
}

// newServer makes the server of a member with an open log.
func (w *harness) newServer(of *cluster.Member[*Server]) (*Server, error) {
	m := w.member(of)
	m.node, m.faults = of.Node, &faultyLog{Node: of.Node}
	cfg := Config{
		ID: m.id, Log: m.faults, Applied: of.Applied, Store: of.Store, Policies: builtinHost{}, Workers: 2,
		Logger: slog.New(slog.NewTextHandler(w.output(), nil)),
		Voters: func() []string { return []string{m.id} },
	}
	if w.pool != nil {
		w.pool.add(m, &cfg)
	}
	if w.change != nil {
		w.change(&cfg)
	}
	var err error
	if m.server, err = New(cfg); err != nil {
		return nil, err
	}
	m.applied.Store(m.server)
	if w.pool != nil {
		w.pool.serve(m.id, m.server)
	}
	return m.server, nil
}

// start starts a server that was stopped.
func (m *member) start() { m.Start() }

func (w *harness) output() io.Writer {
	if testing.Verbose() {
		return w.t.Output()
	}
	return io.Discard
}

// halt stops the server; its log remains.
func (m *member) halt() {
	if m.node == nil {
		return
	}
	m.Stop()
	if m.w.pool != nil {
		m.w.pool.fail(m.id)
	}
	m.node = nil
}

func (w *harness) stop() {
	w.cancel()
	w.group.Wait()
	for _, m := range w.members {
		m.halt()
	}
	w.cluster.Stop()
	time.Sleep(time.Minute) // messages of Raft to stopped servers time out
}

// leader returns the server that leads and has established its term.
func (w *harness) leader() *member {
	w.t.Helper()
	for range 600 {
		for _, m := range w.members {
			if m.node != nil && m.node.IsLeader() && m.server.term.Load() != nil {
				return m
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal("no leader after one minute")
	return nil
}

func (w *harness) snap() *state.Snapshot { return w.leader().server.Snapshot() }

// call calls f on the leader, and retries if the leader changes.
func (w *harness) call(f func(s *Server) error) error {
	var err error
	for range 100 {
		if err = f(w.leader().server); !isRetryable(err) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

func (w *harness) mustCall(f func(s *Server) error) {
	w.t.Helper()
	if err := w.call(f); err != nil {
		w.t.Fatal(err)
	}
}

// registerJob registers a job on the leader.
func (w *harness) registerJob(b *coretest.JobBuilder) *endpoint.Registered {
	w.t.Helper()
	var r *endpoint.Registered
	key := fmt.Sprint(rand.Uint64())
	w.mustCall(func(s *Server) (err error) {
		job, err := copyJob(b.Obj())
		if err != nil {
			return err
		}
		r, err = s.RegisterJob(w.ctx, job, endpoint.RegisterOptions{Key: key, ExplicitPriority: true})
		return err
	})
	return r
}

// enablePreemption enables preemption for all job types.
func (w *harness) enablePreemption() {
	w.mustCall(func(s *Server) error {
		_, err := s.SetConfig(w.ctx, coretest.AllPreempt(), nil)
		return err
	})
}

// waitIdle waits until the cluster processes nothing.
func (w *harness) waitIdle() {
	w.t.Helper()
	for range 3000 {
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		s := w.leader().server
		stats := s.broker.Stats()
		total := stats.Total()
		if total.Ready+total.Unacked+total.Pending+total.Backoff+total.Cancelable+total.Failed == 0 && w.isQuiet() {
			return
		}
	}
	s := w.leader().server
	stats := s.broker.Stats()
	w.t.Fatalf("broker is not idle: %+v", stats.Total())
}

// isQuiet reports whether nodes have reported everything and the reaper is done.
func (w *harness) isQuiet() bool {
	if s := w.leader().server; s.blocked.Stats().Duplicates > 0 {
		return false
	}
	if w.nodesSilent {
		return true
	}
	snap := w.snap()
	for a := range snap.Allocs() {
		n := snap.Node(a.NodeID)
		if n == nil || n.Status == model.NodeDown {
			continue
		}
		if a.Stopping() || a.Live() && a.Client == model.ClientPending {
			return false
		}
	}
	return true
}

// liveByNode returns the number of live instances of a job by node.
func (w *harness) liveByNode(job string) map[string]int {
	snap, nodes := w.snap(), map[string]int{}
	for _, a := range snap.AppendJobAllocs(nil, model.JobKey{Namespace: model.DefaultNamespace, ID: job}) {
		if a.Live() {
			nodes[a.NodeID]++
		}
	}
	return nodes
}

func (w *harness) expectLiveCount(job string, want int) {
	w.t.Helper()
	n := 0
	for _, c := range w.liveByNode(job) {
		n += c
	}
	if n != want {
		w.t.Errorf("job %s has %d live instances, want %d: %v", job, n, want, w.liveByNode(job))
	}
}

// checkInvariants checks the invariants of the state.
func (w *harness) checkInvariants() {
	w.t.Helper()
	w.checkStatesEqual()
	snap := w.snap()
	if err := snap.Check(); err != nil {
		w.t.Errorf("state is inconsistent: %v", err)
	}
	instances := map[string]string{}
	for a := range snap.Allocs() {
		if a.Live() && !a.Job.Type.PerNode() {
			name := a.Job.Key().String() + model.AllocName(a.Group, a.Index, 0)
			if other := instances[name]; other != "" {
				w.t.Errorf("%s runs twice: %s and %s", name, other, a.ID)
			}
			instances[name] = a.ID
		}
		if a.Desired != model.DesiredEvict {
			continue
		}
		by := snap.Alloc(a.PreemptedBy)
		if by == nil && snap.Claim(a.PreemptedBy) == nil {
			w.t.Errorf("%s was evicted by %q, which does not exist", a.ID, a.PreemptedBy)
		}
		if by != nil && (by.Job.Priority <= a.Job.Priority || !slices.Contains(by.Preempted, a.ID)) {
			w.t.Errorf("%s of priority %d was evicted by %s of priority %d, which lists %v", a.ID, a.Job.Priority, by.ID, by.Job.Priority, by.Preempted)
		}
	}
	w.checkCapacity(snap)
	for e := range snap.Evals() {
		where := w.leader().server.broker.Locate(e.ID).State
		if !e.Status.Final() && e.Status != model.EvalBlocked && e.WaitUntil == 0 {
			w.t.Errorf("evaluation %s of %s is %s (%s in the broker)", e.ID, e.JobID, e.Status, where)
		}
		if e.Status == model.EvalBlocked && !w.leader().server.blocked.Contains(e.ID) {
			w.t.Errorf("evaluation %s of %s is blocked, but not in the broker (%s)", e.ID, e.JobID, where)
		}
	}
}

func (w *harness) checkCapacity(snap *state.Snapshot) {
	w.t.Helper()
	for n := range snap.Nodes() {
		used := model.Resources{}
		for _, a := range snap.AppendNodeAllocs(nil, n.ID) {
			if a.Live() {
				for name, amount := range a.Group.Resources {
					used[name] += amount
				}
			}
		}
		for name, amount := range used {
			if amount > n.Capacity[name]-n.Reserved[name] {
				w.t.Errorf("node %s uses %d of %s, capacity %d", n.ID, amount, name, n.Capacity[name])
			}
		}
	}
}

// checkStatesEqual waits until all servers have applied the same index, and compares their
// states.
func (w *harness) checkStatesEqual() {
	w.t.Helper()
	if err := w.leader().node.Barrier(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	index := w.snap().Index()
	hashes := map[[32]byte]string{}
	for _, m := range w.members {
		if m.node == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute) // so that a server that never gets there does not hang the test
		snap, err := m.server.WaitIndex(ctx, index)
		cancel()
		if err != nil {
			w.t.Fatalf("server %s does not reach index %d: %v; Raft: %v; Raft of the leader: %v", m.id, index, err, m.node.Raft().Stats(), w.leader().node.Raft().Stats())
		}
		if snap.Index() == index {
			hashes[snapshot.Hash(snap)] = m.id
		}
	}
	if len(hashes) > 1 {
		w.t.Errorf("servers at index %d have different states: %v", index, slices.Collect(maps.Values(hashes)))
	}
}

// A faultyLog is a log that can be made to fail.
type faultyLog struct {
	*raftnode.Node
	entries atomic.Int64
	mu      sync.Mutex
	fail    func(e *replication.Entry) (after bool, err error)
}

// Apply writes the entry, unless it is to fail: before or after the write.
func (l *faultyLog) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	l.mu.Lock()
	fail := l.fail
	l.mu.Unlock()
	var after bool
	var err error
	if fail != nil {
		after, err = fail(e)
	}
	if err != nil && !after {
		return nil, err
	}
	l.entries.Add(1)
	result, applied := l.Node.Apply(ctx, e)
	if err != nil {
		return nil, err
	}
	return result, applied
}

func (l *faultyLog) failWith(f func(e *replication.Entry) (after bool, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = f
}

// A testNode is a minimal agent of a node: it registers, reports, starts its allocations
// after the allocations that they preempt have stopped, and stops allocations.
type testNode struct {
	w      *harness
	node   *model.Node
	secret string
	cancel context.CancelFunc
	done   chan struct{}
}

func (w *harness) newNode(id string) *testNode {
	m := &testNode{w: w, node: coretest.Node(id, 1000, 1000, 100_000), secret: fmt.Sprintf("%x", sha256.Sum256([]byte(id)))}
	w.machines[id] = m
	m.start()
	return m
}

// waitRegistered waits until the node is registered.
func (m *testNode) waitRegistered() {
	for m.w.snap().Node(m.node.ID) == nil {
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *harness) addNodes(n int) {
	for i := range n {
		w.newNode(fmt.Sprintf("n%03d", i))
	}
	for _, m := range w.machines {
		m.waitRegistered()
	}
}

// start starts the agent.
func (m *testNode) start() {
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.w.ctx)
	m.done = make(chan struct{})
	m.w.group.Go(func() {
		defer close(m.done)
		m.run(ctx)
	})
}

// stop stops the agent without notice.
func (m *testNode) stop() {
	m.cancel()
	<-m.done
}

func (m *testNode) run(ctx context.Context) {
	m.register(ctx)
	next := time.Now()
	for ctx.Err() == nil {
		if s := m.w.leaderOrNil(); s != nil {
			if !time.Now().Before(next) {
				if lease, err := s.Heartbeat(ctx, m.node.ID, m.secret); err == nil {
					next = time.Now().Add(lease.TTL / 2)
				}
			}
			m.reportAllocs(ctx, s)
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// leaderOrNil returns the leader, or nil if there is none.
func (w *harness) leaderOrNil() *Server {
	for _, m := range w.members {
		if s := m.applied.Load(); s != nil && s.cfg.Log.IsLeader() && s.term.Load() != nil {
			return s
		}
	}
	return nil
}

func (m *testNode) register(ctx context.Context) {
	for ctx.Err() == nil {
		node := *m.node
		if s := m.w.leaderOrNil(); s != nil {
			if _, err := s.RegisterNode(ctx, &node, m.secret); err == nil {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// reportAllocs reports the results of the allocations assigned to the node.
func (m *testNode) reportAllocs(ctx context.Context, s *Server) {
	snap := s.Snapshot()
	var updates []apply.ClientUpdate
	stopping := false
	for _, a := range snap.AppendNodeAllocs(nil, m.node.ID) {
		if a.Stopping() {
			stopping = true
			updates = append(updates, apply.ClientUpdate{AllocID: a.ID, Status: model.ClientComplete})
		}
	}
	for _, a := range snap.AppendNodeAllocs(nil, m.node.ID) {
		if a.Live() && a.Client == model.ClientPending && !stopping {
			updates = append(updates, apply.ClientUpdate{
				AllocID: a.ID, Status: model.ClientRunning, Started: true, StartTime: time.Now().UnixNano(),
			})
		}
	}
	if len(updates) > 0 {
		_, _ = s.UpdateAllocs(ctx, m.node.ID, m.secret, updates) // retried at the next round
	}
}

// copyJob returns a deep copy of a job.
func copyJob(j *model.Job) (*model.Job, error) {
	return codec.DecodeJob(codec.EncodeJob(j))
}

package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A fakeHost runs modules that consist of the magic number and a word, which determines the
// behaviour of the policy.
type fakeHost struct {
	open atomic.Int64
	// gate blocks loads until it is closed; nil: loads do not block.
	gate atomic.Pointer[chan struct{}]
}

func (s *fakeHost) Load(ctx context.Context, b *bundle.Bundle, _ policy.Limits) (registry.Module, error) {
	if gate := s.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	mood, _, _ := strings.Cut(string(b.Code[8:]), "\n")
	if mood == "broken" {
		return nil, errors.New("cannot be compiled")
	}
	s.open.Add(1)
	return &fakeModule{Module: policy.Native(b.Manifest.Digest, func() sdk.Policy { return fakeGuest{mood} }), shelf: s}, nil
}

type fakeModule struct {
	policy.Module
	shelf *fakeHost
	once  sync.Once
}

func (m *fakeModule) Close() { m.once.Do(func() { m.shelf.open.Add(-1) }) }

// A fakeGuest scores victims according to its mood: lowest index first, or last. Or it
// fails, always or only if there is something to decide.
type fakeGuest struct{ mood string }

func (g fakeGuest) Info() sdk.Info { return sdk.Info{Name: "p", Delta: 10} }

func (g fakeGuest) Settings() []sdk.Setting {
	return []sdk.Setting{{Name: "knob", Kind: sdk.Integer, Default: "1", Limits: sdk.Between(0, 9)}}
}

func (g fakeGuest) Configure(*sdk.Config) error { return nil }

// isServerTest reports whether the call is part of the server's check of the version.
func isServerTest(in *sdk.Candidates) bool { return in.Preemptor.Job == "asker" }

func (g fakeGuest) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	switch {
	case g.mood == "nan":
		out.Score[0] = math.NaN()
	case g.mood == "traps":
		panic("on purpose")
	case g.mood == "breaks" && !isServerTest(in):
		panic("only when it matters")
	case g.mood == "last":
		for i := range out.Score {
			out.Score[i] = -float64(i)
		}
	}
	return nil
}

// moduleOf returns a module of a mood, with padding.
func moduleOf(mood string, padding int) []byte {
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"+mood+"\n"), make([]byte, padding))
}

// modules stores modules in memory; it survives a restart.
type modules struct {
	mu     sync.Mutex
	stored map[string][]byte
}

func (m *modules) PutChunk(digest string, offset int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.stored[digest]
	if offset > int64(len(have)) {
		return fmt.Errorf("chunk at offset %d of %s, but %d bytes are stored", offset, digest, len(have))
	}
	m.stored[digest] = append(have[:offset:offset], data...)
	return nil
}

func (m *modules) Finish(digest string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.stored[digest]; int64(len(have)) != size || bundle.Digest(have) != digest {
		return fmt.Errorf("module %s not found", digest)
	}
	return nil
}

func (m *modules) Get(digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.stored[digest]
	if !ok {
		return nil, os.ErrNotExist
	}
	return slices.Clone(have), nil
}

func (m *modules) Delete(digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stored, digest)
	return nil
}

func (m *modules) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.stored)
}

// A disk holds the data that survives a restart.
type disk struct {
	id        string
	log       *raft.InmemStore
	snapshots *raft.InmemSnapshotStore
	modules   *modules
}

func newDisk() *disk {
	return &disk{"s1", raft.NewInmemStore(), raft.NewInmemSnapshotStore(), &modules{stored: map[string][]byte{}}}
}

// A settableLog is the log of a server that is created before its Raft node.
type settableLog struct {
	*raftnode.Node
	// fails is called before every entry; nil: no entry fails.
	fails func(replication.Command) error
	sent  atomic.Int64 // chunks
}

func (l *settableLog) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	if l.fails != nil {
		if err := l.fails(e.Command); err != nil {
			return nil, err
		}
	}
	if _, chunk := e.Command.(*replication.PutChunk); chunk {
		l.sent.Add(1)
	}
	return l.Node.Apply(ctx, e)
}

// A testServer is a cluster of one server.
type testServer struct {
	*server.Server
	t        *testing.T
	disk     *disk
	log      *settableLog
	store    *state.Store
	shelf    *fakeHost
	registry *prometheus.Registry
	stop     func()

	mu      sync.Mutex
	entries []replication.Applied
}

// startServer starts a cluster of one server on a disk, and waits until it leads.
func startServer(t *testing.T, d *disk, change ...func(*server.Config, *registry.PolicyOptions)) *testServer {
	t.Helper()
	c := newServer(t, d, change...)
	c.open(d)
	c.waitFor("the server leads", func() bool { return c.ready() == "" })
	return c
}

// newServer returns a server that does not run yet.
func newServer(t *testing.T, d *disk, change ...func(*server.Config, *registry.PolicyOptions)) *testServer {
	t.Helper()
	c := &testServer{t: t, disk: d, log: &settableLog{}, store: state.New(), shelf: &fakeHost{}, registry: prometheus.NewRegistry()}
	hosts := registry.PolicyOptions{
		Options: registry.Options{
			Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: c.shelf},
			Builtin: func(name string) (policy.Module, []string, bool) {
				return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, name == policy.DefaultName
			},
		},
		Names: []string{policy.DefaultName},
	}
	config := server.Config{
		ID: d.id, Log: c.log, Store: c.store, Modules: d.modules, Registry: c.registry, Workers: 2,
		HeartbeatTTL: time.Hour, HeartbeatGrace: time.Hour,
	}
	for _, f := range change {
		f(&config, &hosts)
	}
	host, err := registry.NewPolicyHost(hosts)
	if err != nil {
		t.Fatal(err)
	}
	config.Policies = host
	if c.Server, err = server.New(config); err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens the log of a cluster of one server, and runs the server.
func (c *testServer) open(d *disk) {
	c.t.Helper()
	address, transport := raft.NewInmemTransportWithTimeout("", 25*time.Millisecond)
	c.join(d, transport, raft.Server{ID: raft.ServerID(d.id), Address: address})
}

// startThree starts three servers and returns them, with the leader first.
func startThree(t *testing.T, change ...func(*server.Config, *registry.PolicyOptions)) []*testServer {
	t.Helper()
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for i := range 3 {
		address, transport := raft.NewInmemTransportWithTimeout("", 25*time.Millisecond)
		for k, other := range transports {
			other.Connect(address, transport)
			transport.Connect(servers[k].Address, other)
		}
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprintf("s%d", i+1)), Address: address})
		transports = append(transports, transport)
	}
	var list []*testServer
	for i := range 3 {
		d := newDisk()
		d.id = string(servers[i].ID)
		c := newServer(t, d, change...)
		c.join(d, transports[i], servers...)
		list = append(list, c)
	}
	leaderFirst(list)
	return list
}

// leaderFirst waits for a leader with an established term, and moves it to the front.
func leaderFirst(list []*testServer) {
	list[0].t.Helper()
	list[0].waitFor("a leader is established", func() bool {
		i := slices.IndexFunc(list, func(c *testServer) bool { return c.log.IsLeader() && c.ready() == "" })
		if i > 0 {
			list[0], list[i] = list[i], list[0]
		}
		return i >= 0
	})
}

// join opens the log of a server and runs it.
func (c *testServer) join(d *disk, transport *raft.InmemTransport, servers ...raft.Server) {
	c.t.Helper()
	node, err := raftnode.Open(raftnode.Config{
		ServerID: d.id, Log: d.log, Stable: d.log, Snapshots: d.snapshots, Transport: transport,
		Store: c.store, Modules: d.modules, Observe: c.observe,
		Timing: raftnode.Timing{Heartbeat: 50 * time.Millisecond, Election: 50 * time.Millisecond, Lease: 50 * time.Millisecond, Commit: 5 * time.Millisecond},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.log.Node = node
	if err := node.Bootstrap(servers...); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, node.Close(), transport.Close()); err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(c.stop)
}

func (c *testServer) observe(list []replication.Applied) {
	c.mu.Lock()
	c.entries = append(c.entries, list...)
	c.mu.Unlock()
	c.Observe(list)
}

// restart stops the server and starts another one on its disk.
func (c *testServer) restart(change ...func(*server.Config, *registry.PolicyOptions)) *testServer {
	c.t.Helper()
	c.stop()
	return startServer(c.t, c.disk, change...)
}

// ready returns the failed readiness checks.
func (c *testServer) ready() string {
	var why []string
	for _, check := range c.Ready(c.t.Context()) {
		if !check.OK {
			why = append(why, check.Name+": "+check.Detail)
		}
	}
	return strings.Join(why, "; ")
}

// waitTimeout limits how long a test waits.
const waitTimeout = 30 * time.Second

// waitFor waits until a condition holds.
func (c *testServer) waitFor(what string, is func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(waitTimeout)
	for !is() {
		if time.Now().After(deadline) {
			c.t.Fatalf("timeout waiting for: %s; %s", what, c.ready())
		}
		time.Sleep(time.Millisecond)
	}
}

// load loads a module of a mood as policy p.
func (c *testServer) load(mood string, change ...func(*policy.LoadRequest)) *model.PolicyVersion {
	c.t.Helper()
	v, err := c.tryLoad(mood, change...)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *testServer) tryLoad(mood string, change ...func(*policy.LoadRequest)) (*model.PolicyVersion, error) {
	r := policy.LoadRequest{Name: "p", Module: moduleOf(mood, 0)}
	for _, f := range change {
		f(&r)
	}
	return c.LoadPolicy(c.t.Context(), r)
}

func (c *testServer) activate(v *model.PolicyVersion) {
	c.t.Helper()
	if _, err := c.ActivatePolicy(c.t.Context(), v.Name, v.ID); err != nil {
		c.t.Fatal(err)
	}
}

// role returns the state of policy p.
func (c *testServer) role() model.PolicyState {
	if s := c.Snapshot().PolicyState("p"); s != nil {
		return *s
	}
	return model.PolicyState{}
}

// activeVersion returns the version of p that is active on the server.
func (c *testServer) activeVersion() string {
	st, err := c.PolicyStatus(c.t.Context(), "p")
	if err != nil || st.Here == nil {
		return ""
	}
	return st.Here.Version
}

// expectError checks that err has a code and contains some texts.
func (c *testServer) expectError(err error, code apierror.Code, words ...string) {
	c.t.Helper()
	for _, w := range words {
		if err == nil || apierror.CodeOf(err) != code || !strings.Contains(err.Error(), w) {
			c.t.Errorf("want %s %q, got %v", code, w, err)
		}
	}
}

// fillNodes fills nodes with allocations that can be evicted, and activates p for the
// cluster.
func (c *testServer) fillNodes(nodes int) {
	c.t.Helper()
	ctx := c.t.Context()
	config := coretest.AllPreempt()
	if _, err := c.SetConfig(ctx, config, nil); err != nil {
		c.t.Fatal(err)
	}
	for n := range nodes {
		if _, err := c.RegisterNode(ctx, coretest.Node(fmt.Sprintf("n%d", n), 100, 100, 0), strings.Repeat("s", 32)); err != nil {
			c.t.Fatal(err)
		}
	}
	c.register(coretest.Job("low").Priority(10).Count(10*nodes).Ask(10, 1, 0).Obj())
	c.waitFor("the nodes are full", func() bool { return c.running("low") == 10*nodes })
}

// setClusterPolicy makes p the policy of the cluster.
func (c *testServer) setClusterPolicy() {
	c.t.Helper()
	config := *c.Snapshot().Config()
	config.Policy = "p"
	if _, err := c.SetConfig(c.t.Context(), &config, nil); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testServer) register(j *model.Job) {
	c.t.Helper()
	c.waitEstablished()
	if _, err := c.RegisterJob(c.t.Context(), j, endpoint.RegisterOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// waitEstablished waits until the server has established its term, even if it is not ready.
func (c *testServer) waitEstablished() {
	c.t.Helper()
	c.waitFor("the term is established", func() bool {
		_, err := c.Consistent(c.t.Context())
		return err == nil
	})
}

// running counts the live allocations of a job.
func (c *testServer) running(job string) (n int) {
	for _, a := range c.Snapshot().AppendJobAllocs(nil, model.JobKey{Namespace: "default", ID: job}) {
		if a.Live() {
			n++
		}
	}
	return n
}

// preemptorJob returns a job that can only be placed by eviction.
func preemptorJob(id string) *model.Job { return coretest.Job(id).Priority(90).Ask(10, 1, 0).Obj() }

// plans calls visit for every applied plan.
func (c *testServer) plans(visit func(index uint64, p *model.Plan)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.entries {
		if a.Entry == nil {
			continue
		}
		if apply, ok := a.Entry.Command.(*replication.ApplyPlans); ok {
			for _, bp := range apply.Batch.Plans {
				visit(a.Index, bp.Plan)
			}
		}
	}
}

// withClock gives a server a clock that only the test advances.
func withClock(v *clock.Virtual) func(*server.Config, *registry.PolicyOptions) {
	return func(c *server.Config, _ *registry.PolicyOptions) { c.Clock = v }
}

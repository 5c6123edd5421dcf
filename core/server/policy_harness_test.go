package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/coretest/cluster"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
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
// fails, always or only for groups with fragileLabel.
type fakeGuest struct{ mood string }

func (g fakeGuest) Info() sdk.Info { return sdk.Info{Name: "p", Delta: 10} }

func (g fakeGuest) Settings() []sdk.Setting {
	return []sdk.Setting{{Name: "knob", Kind: sdk.Integer, Default: "1", Limits: sdk.Between(0, 9)}}
}

func (g fakeGuest) Configure(*sdk.Config) error { return nil }

// fragileLabel is the label of groups for which the policy "breaks" fails. The self-test
// varies everything else that distinguishes its calls from those of the scheduler.
const fragileLabel = "test.fragile"

func (g fakeGuest) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	switch {
	case g.mood == "nan":
		out.Score[0] = math.NaN()
	case g.mood == "traps":
		panic("on purpose")
	case g.mood == "breaks" && in.Preemptor.Labels[fragileLabel] != "":
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

// A settableLog is a log that fails on demand.
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

// A testServer is one server of a cluster in real time.
type testServer struct {
	*server.Server
	t        *testing.T
	member   *cluster.Member[*server.Server]
	log      *settableLog
	shelf    *fakeHost
	registry *prometheus.Registry
	change   []configChange

	mu      sync.Mutex
	entries []replication.Applied
}

// A configChange changes the configuration of a server and of its policies.
type configChange = func(*server.Config, *registry.PolicyOptions)

// startServer starts a cluster of one server, and waits until it leads.
func startServer(t *testing.T, change ...configChange) *testServer {
	t.Helper()
	c := startServers(t, 1, change...)[0]
	c.waitFor("the server leads", func() bool { return c.ready() == "" })
	return c
}

// startThree starts three servers and returns them, with the leader first.
func startThree(t *testing.T, change ...configChange) []*testServer {
	t.Helper()
	list := startServers(t, 3, change...)
	leaderFirst(list)
	return list
}

// startServers starts servers without waiting for a leader.
func startServers(t *testing.T, size int, change ...configChange) (list []*testServer) {
	t.Helper()
	of := map[*cluster.Member[*server.Server]]*testServer{}
	c := cluster.Start(t, cluster.Options[*server.Server]{
		Size: size,
		Open: func(m *cluster.Member[*server.Server], o *raftnode.Config) {
			if of[m] == nil {
				of[m] = &testServer{t: t, member: m, change: change}
			}
			of[m].open(o)
		},
		New: func(m *cluster.Member[*server.Server]) (*server.Server, error) { return of[m].assemble() },
	})
	t.Cleanup(c.Stop)
	for _, m := range c.Members {
		list = append(list, of[m])
	}
	return list
}

// open prepares a run on the log that is about to be opened.
func (c *testServer) open(o *raftnode.Config) {
	c.log, c.shelf, c.registry = &settableLog{}, &fakeHost{}, prometheus.NewRegistry()
	o.Timing = cluster.Fast
	o.Observe = func(list []replication.Applied) {
		c.mu.Lock()
		c.entries = append(c.entries, list...)
		c.mu.Unlock()
		c.member.Applied.Observe(list)
	}
}

// assemble makes the server of a run.
func (c *testServer) assemble() (*server.Server, error) {
	c.log.Node = c.member.Node
	hosts := registry.PolicyOptions{
		Options: registry.Options{
			Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: c.shelf},
			Builtin: func(name string) (policy.Module, []string, bool) {
				return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, name == policy.DefaultName
			},
			Names: []string{policy.DefaultName},
		},
	}
	config := server.Config{
		ID: c.member.ID, Log: c.log, Applied: c.member.Applied, Store: c.member.Store, PolicySupport: server.PolicySupport{Modules: c.member.Modules}, Registry: c.registry,
		Workers: 2, HeartbeatTTL: time.Hour, HeartbeatGrace: time.Hour,
	}
	for _, f := range c.change {
		f(&config, &hosts)
	}
	host, err := registry.NewPolicyHost(hosts)
	if err != nil {
		return nil, err
	}
	config.Policies = host
	c.Server, err = server.New(config)
	return c.Server, err
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

// stop stops the server. Its disk remains.
func (c *testServer) stop() { c.member.Stop() }

// start starts another server on the disk of a stopped one.
func (c *testServer) start(change ...configChange) {
	c.t.Helper()
	c.change = change
	c.member.Start()
}

// restart stops the server, starts another one on its disk, and waits until it leads.
func (c *testServer) restart(change ...configChange) {
	c.t.Helper()
	c.stop()
	c.start(change...)
	c.waitFor("the server leads", func() bool { return c.ready() == "" })
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
func preemptorJob(id string) *model.Job {
	return coretest.Job(id).Priority(90).Ask(10, 1, 0).With(func(g *model.Group) { g.Labels = map[string]string{fragileLabel: "yes"} }).Obj()
}

// plans calls visit for every plan in the state. The state shows an entry before its
// observers do.
func (c *testServer) plans(visit func(index uint64, p *model.Plan)) {
	c.t.Helper()
	index := c.Snapshot().Index()
	c.waitFor("the entries are observed", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.entries[len(c.entries)-1].Index >= index
	})
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
func withClock(v *clock.Virtual) configChange {
	return func(c *server.Config, _ *registry.PolicyOptions) { c.Clock = v }
}

// gated blocks the loads of a server until the gate is closed.
func gated(gate *chan struct{}) configChange {
	return func(_ *server.Config, o *registry.PolicyOptions) { o.Hosts[bundle.Wasm].(*fakeHost).gate.Store(gate) }
}

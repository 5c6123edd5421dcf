package bench_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options configures a server below dir, with heartbeat timeouts for a slow, busy
// machine.
func options(t *testing.T, dir string) bench.Options {
	return bench.Options{
		Dir: dir, TTL: time.Second, Grace: 8 * time.Second, Rate: 1000,
		Build: app.Build{Version: "test"}, Log: t.Output(), Getenv: func(string) string { return "" },
	}
}

func open(t *testing.T, o bench.Options) *bench.Target {
	t.Helper()
	target, err := bench.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// closed closes a target and checks that it leaves no files behind.
func closed(t *testing.T, target *bench.Target, dir string) {
	t.Helper()
	if err := target.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v (%v)", left, err)
	}
}

func TestStorm_CountsEvaluations(t *testing.T) {
	t.Parallel()
	const nodes, jobs = 200, 5
	dir := t.TempDir()
	target := open(t, options(t, dir))
	defer closed(t, target, dir)
	r, err := bench.Storm(t.Context(), target, bench.StormConfig{Nodes: nodes, Jobs: jobs, Seed: 1, Shedding: true, Coalescing: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if want := (bench.Evaluations{Created: jobs * (nodes + 1)}); r.Register.Evaluations != want || r.Register.Entries != jobs+nodes {
		t.Errorf("registration created %+v, want %+v in %d entries", r.Register, want, jobs+nodes)
	}
	b := r.Backlog.Evaluations
	if b.Created != 0 || b.Processed+b.Cancelled != r.Register.Evaluations.Created || b.Processed < jobs || b.Processed > 2*jobs {
		t.Errorf("backlog is %+v, want all evaluations, and at most two processed per job", b)
	}
	if r.Backlog.Entries > 1+2*2*jobs+5 { // the change of the configuration, a plan and an update for each job, and the cancelled evaluations
		t.Errorf("backlog has %d log entries", r.Backlog.Entries)
	}
	if r.Start.Evaluations != (bench.Evaluations{}) {
		t.Errorf("starting allocations created evaluations: %+v", r.Start)
	}
	s := r.Silence.Evaluations
	if s.Created == 0 || s.Created%jobs != 0 || s.Processed+s.Cancelled != s.Created {
		t.Errorf("silence is %+v, want one evaluation per job and entry, all terminal", s)
	}
	if s.Created > 20*jobs || r.Silence.Entries > 21*(1+2*jobs) {
		t.Errorf("silence is %+v: nodes that fail together are not combined in one entry", r.Silence)
	}
}

// If both are disabled, every evaluation is processed, and every node is a log entry.
func TestStorm_WithoutSheddingAndCoalescing(t *testing.T) {
	t.Parallel()
	const nodes, jobs = 40, 3
	dir := t.TempDir()
	target := open(t, options(t, dir))
	defer closed(t, target, dir)
	r, err := bench.Storm(t.Context(), target, bench.StormConfig{Nodes: nodes, Jobs: jobs, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if want := (bench.Evaluations{Processed: jobs * (nodes + 1)}); r.Backlog.Evaluations != want {
		t.Errorf("backlog is %+v, want %+v", r.Backlog.Evaluations, want)
	}
	if want := (bench.Evaluations{Created: nodes * jobs, Processed: nodes * jobs}); r.Silence.Evaluations != want {
		t.Errorf("silence is %+v, want %+v", r.Silence.Evaluations, want)
	}
	if r.Silence.Entries < nodes {
		t.Errorf("loss of %d nodes has %d log entries", nodes, r.Silence.Entries)
	}
}

// After a run on an existing server, its configuration and objects are as before.
func TestStorm_OnRunningServer(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{Dev: true, Flags: map[string]string{
		"listen.http": "127.0.0.1:0", "listen.rpc": "127.0.0.1:0", "listen.metrics": "127.0.0.1:0",
		"client.enabled": "false", "limits.rate": "0", "server.heartbeat.ttl": "1s", "server.heartbeat.grace": "2s", "log.level": "error",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := app.Start(t.Context(), app.Options{Config: c, Build: app.Build{Version: "test"}, Stderr: t.Output(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	api, err := client.New(client.Config{Address: p.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	before, _, err := api.Scheduler().Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	target := open(t, bench.Options{Server: &client.Config{Address: p.URL()}, Metrics: []string{p.MetricsAddress()}})
	if _, err := bench.Storm(t.Context(), target, bench.StormConfig{Nodes: 10, Jobs: 2, Shedding: false, Coalescing: false}); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(t.Context()); err != nil {
		t.Error(err)
	}
	after, _, err := api.Scheduler().Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.PauseEvalBroker || !on(after.Coalescing) || !on(after.Shedding) || before.Policy != after.Policy {
		t.Errorf("settings are %+v, before they were %+v", after, before)
	}
	nodes, _, err := api.Nodes().List(t.Context(), nil)
	if err != nil || len(nodes) > 0 {
		t.Errorf("%d nodes of the run still exist (%v)", len(nodes), err)
	}
	jobs, _, err := api.Jobs().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		if j.Status != "dead" {
			t.Errorf("job %s is %s", j.ID, j.Status)
		}
	}
}

func on(set *bool) bool { return set == nil || *set }

func TestStorm_Interrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Show = func(what string, _, _ int) {
		if strings.HasPrefix(what, "seconds until") {
			cancel()
		}
	}
	target := open(t, o)
	defer closed(t, target, dir)
	if _, err := bench.Storm(ctx, target, bench.StormConfig{Nodes: 5, Jobs: 1, Shedding: true, Coalescing: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("Storm returned %v", err)
	}
}

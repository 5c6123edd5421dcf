package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cede-scheduler/cede/sdk/client"
)

// TestServerScripts runs scripts against an agent that runs as a process of its own.
func TestServerScripts(t *testing.T) { serverScripts(t, "testdata/server") }

// Other scripts count the jobs of their server.
func TestNamespaceScripts(t *testing.T) { serverScripts(t, "testdata/namespaces") }

// Recordings contain all activity of a server, so these scripts have an agent of their own.
func TestRecordScripts(t *testing.T) { serverScripts(t, "testdata/record") }

// Plans depend on the scheduler configuration, which other scripts must not change meanwhile.
func TestPlanScripts(t *testing.T) { serverScripts(t, "testdata/plan") }

// These scripts read the first event of a topic, so no other script may cause events.
func TestBindingScripts(t *testing.T) { serverScripts(t, "testdata/bindings") }

// Preemption is off by default. If a job cannot be placed without it, the output suggests
// the command that enables it.
func TestJobRun_SuggestsEnablingPreemption(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig)
	d.start()
	n := &client.Node{ID: "11111111-1111-4111-8111-111111111111", Name: "n", Datacenter: "dc1", Capacity: map[string]int64{"cpu": 1000}}
	_, err := d.client().NodeAgent().Register(t.Context(), n, "the-secret-of-a-node")
	must(t, err)
	for _, kind := range []string{"service", "batch"} {
		file := filepath.Join(d.dir, kind+".json")
		must(t, os.WriteFile(file, fmt.Appendf(nil, `{"Job": {"ID": "%[1]s", "Type": "%[1]s", "Datacenters": ["dc1"], "TaskGroups": [
			{"Name": "g", "Tasks": [{"Name": "main", "Driver": "sim", "Resources": {"CPU": 2000}}]}]}}`, kind), 0o600))
		stdout, stderr, code := d.cede("job", "run", file)
		if want := "cede operator scheduler set --preempt-" + kind; code != 6 || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, want 6 and %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	d.stop()
}

// Nominated allocations are placed and wait for their victims to exit. These scripts use
// the policy kubernetes and enable preemption for all job types.
func TestNominatedScripts(t *testing.T) { serverScripts(t, "testdata/nominated") }

// A sequence runs the scripts of a folder one after another. Parallel subtests would wait
// for those of other tests, and the agent would run meanwhile.
type sequence struct{ *testing.T }

func (sequence) Parallel() {}

func (s sequence) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(sequence{t}) })
}

func (sequence) Verbose() bool { return testing.Verbose() }

// serverScripts runs the scripts of a folder against one development agent.
func serverScripts(t *testing.T, dir string) {
	t.Helper()
	t.Parallel()
	agent := startDevAgent(t)
	guests, err := filepath.Abs("../../sdk/abi/testdata/guests")
	must(t, err)
	hostile, err := filepath.Abs("../../plugins/wasm/testdata/hostile")
	must(t, err)
	testscript.RunT(sequence{t}, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("CEDE_ADDR", agent.c.Address())
			env.Setenv("GUESTS", guests)
			env.Setenv("HOSTILE", hostile)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
	agent.signal(os.Interrupt)
	if err := agent.waitExit(); err != nil {
		t.Error(err)
	}
}

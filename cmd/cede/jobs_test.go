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

// TestServerScripts plays scripts against a server and a node in a process of
// their own.
func TestServerScripts(t *testing.T) { serverScripts(t, "testdata/server") }

// What is recorded is all that a server does, so nothing else happens there.
func TestRecordScripts(t *testing.T) { serverScripts(t, "testdata/record") }

// Plans rest on the scheduler's configuration, which is nobody else's there.
func TestPlanScripts(t *testing.T) { serverScripts(t, "testdata/plan") }

// The first event of a topic is looked at, which is that of a job elsewhere.
func TestBindingScripts(t *testing.T) { serverScripts(t, "testdata/bindings") }

// A server evicts nobody until that is switched on, and says how that is done.
func TestJobRun_SaysHowPreemptionIsSwitchedOn(t *testing.T) {
	d := serverAt(t, "", kept)
	d.start()
	n := &client.Node{ID: "11111111-1111-4111-8111-111111111111", Name: "n", Datacenter: "dc1", Capacity: map[string]int64{"cpu": 1000}}
	_, err := d.client().NodeAgent().Register(t.Context(), n, "the-secret-of-a-node")
	do(t, err)
	for _, kind := range []string{"service", "batch"} {
		file := filepath.Join(d.dir, kind+".json")
		do(t, os.WriteFile(file, fmt.Appendf(nil, `{"Job": {"ID": "%[1]s", "Type": "%[1]s", "Datacenters": ["dc1"], "TaskGroups": [
			{"Name": "g", "Tasks": [{"Name": "main", "Driver": "sim", "Resources": {"CPU": 2000}}]}]}}`, kind), 0o600))
		stdout, stderr, code := d.cede("job", "run", file)
		if want := "cede operator scheduler set --preempt-" + kind; code != 6 || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, want 6 and %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	d.stop()
}

// Who is placed and not started is looked at, under the policy kubernetes and with
// preemption on for all.
func TestNominatedScripts(t *testing.T) { serverScripts(t, "testdata/nominated") }

func serverScripts(t *testing.T, dir string) {
	agent := runAgent(t)
	guests, err := filepath.Abs("../../sdk/abi/testdata/guests")
	do(t, err)
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 dir,
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			UpdateScripts:       os.Getenv("UPDATE") != "",
			Setup: func(env *testscript.Env) error {
				env.Setenv("CEDE_ADDR", agent.c.Address())
				env.Setenv("GUESTS", guests)
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		})
	})
	agent.signal(os.Interrupt)
	if err := agent.end(); err != nil {
		t.Error(err)
	}
}

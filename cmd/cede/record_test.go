package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Three nodes are full of instances of equal priority when the recording starts. A job, a
// gang that fits, a gang that does not, a job of a priority in between, two stopped jobs and
// another gang follow. A replay under the policy of the server decides the same each time, and
// one under a policy that protects these instances does not. One update changes nothing that
// decisions depend on; of any other the recording notes that it is a job of its own.
func TestRecord_ReplayUnderSamePolicyDecidesAsTheServer(t *testing.T) {
	t.Parallel()
	server := newServer(t, "", fullLogConfig)
	server.start()
	for range 3 {
		node := newClientNode(t, server)
		node.env = []string{"CEDE_CLIENT__DRIVERS__SIM__ENABLED=true"}
		node.start()
	}
	r := &recordedServer{t: t, serverProcess: server, c: server.client()}
	policies := []string{"default", "nomad", "kubernetes"}
	if soak.Quick() {
		policies = policies[:1]
	}
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			r.t = t
			r.checkReplay(policy)
		})
	}
}

// A recordedServer is a server with recordings of its decisions.
type recordedServer struct {
	*serverProcess
	t *testing.T
	c *client.Client
}

// checkReplay records decisions of a policy and compares them with a replay.
func (r *recordedServer) checkReplay(policy string) {
	r.t.Helper()
	all := client.PreemptionConfig{SystemSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}
	_, err := r.c.Scheduler().Set(r.t.Context(), &client.SchedulerConfiguration{SchedulerAlgorithm: "binpack", Policy: policy, PreemptionConfig: all}, nil)
	must(r.t, err)
	id := func(name string) string { return policy + "-" + name }
	r.run(id("fill"), "batch", 20, 6, false) // two on each node, with equal priorities
	file, end := r.record()
	r.run(id("web"), "service", 80, 2, false)
	r.run(id("train"), "batch", 90, 3, true)
	r.run(id("large"), "batch", 95, 20, true) // evicts nothing
	r.run(id("middle"), "service", 50, 2, false)
	r.update(id("web")) // its instances continue
	r.stop(id("web"))
	r.stop(id("train"))
	late := 70
	if policy == "kubernetes" { // it compares start times, and agents start the instances of fill again at other times
		late = 10
	}
	r.run(id("late"), "batch", late, 2, true)
	end()
	same := r.replay(file)
	if same.Recorded < 8 || same.Victims.Recorded < 6 || same.Victims.Replayed != same.Victims.Recorded {
		r.t.Errorf("%d placements with %+v victims were recorded: too few to compare", same.Recorded, same.Victims)
	}
	if same.Same != same.Recorded || len(same.Otherwise) > 0 || same.Additional > 0 {
		text, _ := os.ReadFile(file)
		r.t.Errorf("a replay under the policy of the server differs: %d of %d are the same, %d additional, others %s\n%s",
			same.Same, same.Recorded, same.Additional, same.Otherwise, text)
	}
	if other := r.replay(file, "-p", "protect?minRuntime=9h"); len(other.Otherwise) == 0 {
		r.t.Error("a replay under a policy that protects all victims decides the same")
	}
	for _, name := range []string{"fill", "large", "middle", "late"} {
		r.stop(id(name))
	}
}

// run registers a job of instances that take 400 of the 1000 MiB of a node, and waits until the
// server has decided about it.
func (r *recordedServer) run(id, kind string, priority, count int, gang bool) {
	r.t.Helper()
	j := guestJob(id, priority, 400)
	j.Type, j.AllAtOnce, j.TaskGroups[0].Count = kind, gang, &count
	_, err := r.c.Jobs().Register(r.t.Context(), j, nil)
	must(r.t, err)
	r.settle()
}

// update registers a job under another name, which replaces no instance.
func (r *recordedServer) update(id string) {
	r.t.Helper()
	j, _, err := r.c.Jobs().Get(r.t.Context(), id, nil)
	must(r.t, err)
	j.Name = "renamed"
	_, err = r.c.Jobs().Register(r.t.Context(), j, nil)
	must(r.t, err)
	r.settle()
}

func (r *recordedServer) stop(id string) {
	r.t.Helper()
	_, err := r.c.Jobs().Stop(r.t.Context(), id, nil)
	must(r.t, err)
	r.settle()
}

// settle waits until all evaluations have ended or are blocked, and each allocation runs or
// has ended as its server wants.
func (r *recordedServer) settle() {
	r.t.Helper()
	eventually(r.t, "all jobs are placed as far as possible", func() bool {
		evals, _, err := r.c.Evaluations().List(r.t.Context(), nil)
		if err != nil || slices.ContainsFunc(evals, func(e *client.Evaluation) bool { return e.Status == "pending" }) {
			return false
		}
		allocs, _, err := r.c.Allocations().List(r.t.Context(), nil)
		return err == nil && !slices.ContainsFunc(allocs, func(a *client.AllocationStub) bool {
			ended := a.ClientStatus != "pending" && a.ClientStatus != "running"
			return a.ClientStatus == "pending" || (a.DesiredStatus == "run") == ended
		})
	})
}

// record starts a recording and returns its file, and a function that ends it.
func (r *recordedServer) record() (file string, end func()) {
	r.t.Helper()
	file = filepath.Join(r.t.TempDir(), "rec.yaml")
	cmd := newCommand(r.t, []string{"CEDE_ADDR=" + r.url}, "sim", "record", "-w", file)
	progress := &outputBuffer{}
	cmd.Stdout, cmd.Stderr = progress, progress
	must(r.t, cmd.Start())
	eventually(r.t, "the recording has started", func() bool { return strings.Contains(progress.String(), "recording") })
	return file, func() {
		r.t.Helper()
		must(r.t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			r.t.Fatalf("sim record: %v\n%s", err, progress)
		}
	}
}

// A replayReport is the output of cede sim replay.
type replayReport struct {
	Recorded, Same, Additional int
	Otherwise                  []json.RawMessage
	Victims                    struct{ Recorded, Replayed int }
}

func (r *recordedServer) replay(file string, more ...string) (report replayReport) {
	r.t.Helper()
	out, errs, code := r.cede(append([]string{"sim", "replay", file, "-o", "json"}, more...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		r.t.Fatalf("sim replay exited with %d: %v\n%s", code, err, errs)
	}
	r.t.Logf("%v: %d placements, of which %d are the same, and %d additional ones; %+v victims",
		more, report.Recorded, report.Same, report.Additional, report.Victims)
	return report
}

package record_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/record"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Events are written in their original order under valid scenario names, and the
// resulting file can be replayed.
func TestScenario_RecordsEvents(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	store := state.New()
	low := coretest.Job("Low_Job").Change(func(j *model.Job) { j.Namespace = "team" }).Priority(20).Ask(80, 10, 0).Obj()
	txn := store.Begin(1)
	no(t, txn.NodeWriter().Upsert(coretest.Node("n1", 100, 100, 0)))
	no(t, txn.JobWriter().Upsert(low))
	victim := &model.Allocation{ID: "a1", Job: low, Group: low.Groups[0], NodeID: "n1", Client: model.ClientRunning, Started: true, StartTime: 3 * second}
	txn.AllocWriter().Upsert(victim)
	txn.ConfigWriter().Set(&model.SchedulerConfig{Preemption: [model.EvalTypes]bool{model.JobService: true}})
	begin := txn.Commit()

	txn = store.Begin(2)
	no(t, txn.NodeWriter().Upsert(coretest.Node("n2", 10, 10, 0)))
	changed := *low
	changed.Version, changed.Priority = low.Version+1, 30
	no(t, txn.JobWriter().Upsert(&changed))
	high := coretest.Job("high").Priority(80).Ask(80, 10, 0).Obj()
	no(t, txn.JobWriter().Upsert(high))
	evicted := *begin.Alloc("a1")
	evicted.Desired, evicted.PreemptedBy = model.DesiredEvict, "b1"
	txn.AllocWriter().Upsert(&evicted, &model.Allocation{ID: "b1", Job: high, Group: high.Groups[0], NodeID: "n1", Preempted: []string{"a1"}})
	end := txn.Commit()

	r := &record.Recording{Name: "rec", Began: 10 * second, Ended: 70 * second, Begin: begin, End: end, Events: []record.Event{
		{Kind: "NodeRegistered", ID: "n2", Time: 12 * second},
		{Kind: "JobRegistered", ID: "high", Namespace: "default", Version: high.Version, Time: 15 * second},
		{Kind: "JobRegistered", ID: "Low_Job", Namespace: "team", Version: changed.Version, Time: 20 * second},
		{Kind: "NodeDrain", ID: "n2", On: true, Time: 30 * second},
		{Kind: "NodeDown", ID: "n2", Time: 31 * second},
		{Kind: "NodeTaints", ID: "n2", Time: 32 * second},
		{Kind: "JobRegistered", ID: "gone", Namespace: "team", Time: 33 * second},
		{Kind: "JobStopped", ID: "high", Namespace: "default", Time: 40 * second},
	}}
	f, notes := r.Scenario()
	var text strings.Builder
	no(t, scenario.Encode(&text, f, scenario.YAML))
	read, err := scenario.Decode("rec.yaml", strings.NewReader(text.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	var steps []string
	for _, e := range read.Events {
		steps = append(steps, e.At.String()+" "+e.Submit+e.Stop+e.NodeUp+e.NodeDown+e.Drain)
	}
	if want := []string{"2s n2", "5s high", "10s low-job", "10s low-job-v1", "20s n2", "21s n2", "30s high"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if got := read.Running; len(got) != 1 || got[0].ID != "a1" || got[0].Job != "low-job" || got[0].StartedAt != scenario.Duration(-7*second) {
		t.Errorf("running %+v", got)
	}
	if n := read.Nodes; len(n) != 2 || n[0].Ready != nil || n[1].Ready == nil || *n[1].Ready {
		t.Errorf("nodes %+v", n)
	}
	list := *read.Expect.Placements
	if len(list) != 1 || *list[0].Alloc != "high.g[0]" || *list[0].Node != "n1" || !slices.Equal(*list[0].Preempted, []string{"a1"}) {
		t.Errorf("decisions %+v", list)
	}
	for _, want := range []string{"names with characters other", "updated jobs", "node events of kind NodeTaints", "jobs already garbage collected"} {
		if !slices.ContainsFunc(slices.Collect(keys(notes)), func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("missing note %q: %v", want, notes)
		}
	}
	run, err := sim.Play(t.Context(), read, sim.Options{Resolve: func(sim.PolicySpec) (*policy.Version, error) {
		return policy.NewVersion(policy.Source{Name: "default", Module: policy.Native("sha256:rules", func() sdk.Policy { return rules.New() })})
	}})
	no(t, err)
	if p := run.Result.Placements[0]; p.Alloc != "high.g[0]" || !slices.Equal(p.Preempted, []string{"a1"}) {
		t.Errorf("placements: %+v", run.Result.Placements)
	}
}

func keys(n record.Notes) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range n {
			if !yield(k) {
				return
			}
		}
	}
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An update that changes nothing that a scenario defines continues the instances, as on the
// server, and an update of a stopped job does not.
func TestScenario_ReplaysUpdatesInPlace(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	store := state.New()
	txn := store.Begin(1)
	no(t, txn.NodeWriter().Upsert(coretest.Node("n1", 100, 100, 0)))
	begin := txn.Commit()
	versions := make([]*model.Job, 3)
	for i := range versions {
		versions[i] = coretest.Job("web").Count(1).Ask(50, 10, 0).Change(func(j *model.Job) { j.Version = uint64(i) }).Obj()
		txn = store.Begin(uint64(i + 2))
		no(t, txn.JobWriter().Upsert(versions[i]))
		txn.Commit()
	}
	txn = store.Begin(5)
	txn.AllocWriter().Upsert(&model.Allocation{ID: "a", Job: versions[1], Group: versions[1].Groups[0], NodeID: "n1", Client: model.ClientRunning, Started: true, StartTime: second})
	end := txn.Commit()
	registered := func(version int, at int64) record.Event {
		return record.Event{Kind: "JobRegistered", ID: "web", Namespace: "default", Version: uint64(version), Time: at * second}
	}
	r := &record.Recording{Name: "rec", Ended: 70 * second, Begin: begin, End: end, Events: []record.Event{
		registered(0, 1), registered(1, 10), {Kind: "JobStopped", ID: "web", Namespace: "default", Time: 20 * second}, registered(2, 30),
	}}
	f, _ := r.Scenario()
	var steps []string
	for _, e := range f.Events {
		steps = append(steps, fmt.Sprint(e.At, " submit ", e.Submit, " stop ", e.Stop))
	}
	if want := []string{"1s submit web stop ", "10s submit web stop ", "20s submit  stop web", "30s submit web-v2 stop "}; !slices.Equal(steps, want) {
		t.Errorf("events %q, want %q", steps, want)
	}
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: func(sim.PolicySpec) (*policy.Version, error) {
		return policy.NewVersion(policy.Source{Name: "default", Module: policy.Native("sha256:rules", func() sdk.Policy { return rules.New() })})
	}})
	no(t, err)
	if list := run.Result.Placements; len(list) != 2 || list[0].Alloc != "web.g[0]" || list[1].Alloc != "web-v2.g[0]" {
		t.Errorf("placements %+v", list)
	}
}

// Ties fall on the IDs of the server, also in a replay under names of the simulator.
func TestScenario_ReplaysTies(t *testing.T) {
	const second = int64(1e9)
	store := state.New()
	txn := store.Begin(1)
	no(t, txn.NodeWriter().Upsert(coretest.Node("N-b", 100, 100, 0)))
	no(t, txn.NodeWriter().Upsert(coretest.Node("n-A", 100, 100, 0)))
	txn.ConfigWriter().Set(&model.SchedulerConfig{Preemption: [model.EvalTypes]bool{model.JobService: true}})
	begin := txn.Commit()

	low := coretest.Job("low").Priority(20).Count(4).Ask(50, 10, 0).Obj()
	high := coretest.Job("high").Priority(80).Count(1).Ask(50, 10, 0).Obj()
	place := func(id string, index int, node string) *model.Allocation {
		return &model.Allocation{ID: id, Job: low, Group: low.Groups[0], Index: index, NodeID: node, Client: model.ClientRunning, Started: true, StartTime: second}
	}
	txn = store.Begin(2)
	no(t, txn.JobWriter().Upsert(low))
	no(t, txn.JobWriter().Upsert(high))
	first := []*model.Allocation{place("f1", 0, "N-b"), place("c3", 1, "n-A"), place("a7", 2, "N-b"), place("b2", 3, "n-A")}
	txn.AllocWriter().Upsert(first...)
	placed := txn.Commit()
	txn = store.Begin(3)
	gone := *placed.Alloc("a7")
	gone.Desired, gone.PreemptedBy = model.DesiredEvict, "h1"
	txn.AllocWriter().Upsert(&gone, &model.Allocation{ID: "h1", Job: high, Group: high.Groups[0], NodeID: "N-b", Preempted: []string{"a7"}})
	end := txn.Commit()

	r := &record.Recording{Name: "ties", Began: 0, Ended: 70 * second, Begin: begin, End: end, Events: []record.Event{
		{Kind: "JobRegistered", ID: "low", Namespace: "default", Version: low.Version, Time: second},
		{Kind: "JobRegistered", ID: "high", Namespace: "default", Version: high.Version, Time: 15 * second},
	}}
	f, _ := r.Scenario()
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: func(sim.PolicySpec) (*policy.Version, error) {
		return policy.NewVersion(policy.Source{Name: "default", Module: policy.Native("sha256:rules", func() sdk.Policy { return rules.New() })})
	}})
	no(t, err)
	if diff := sim.CheckExpect(f, run.Result); len(diff) > 0 || len(f.TieOrder) == 0 {
		t.Errorf("tie order %v: %v", f.TieOrder, diff)
	}
}

// Instances run in a replay for exactly as long as they ran, or longer than they had run, and
// their group states what its job states.
func TestScenario_ReplaysExactDurations(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	store := state.New()
	txn := store.Begin(1)
	no(t, txn.NodeWriter().Upsert(coretest.Node("n1", 100, 100, 0)))
	begin := txn.Commit()
	silent := coretest.Job("silent").Type(model.JobBatch).Count(5).Ask(10, 10, 0).Obj()
	stated := coretest.Job("stated").Type(model.JobBatch).Count(2).Ask(10, 10, 0).With(func(g *model.Group) { g.Duration = 30 * second }).Obj()
	txn = store.Begin(2)
	no(t, txn.JobWriter().Upsert(silent))
	no(t, txn.JobWriter().Upsert(stated))
	run := func(job *model.Job, index int, end int64) {
		a := &model.Allocation{
			ID: fmt.Sprint(job.ID, index), Job: job, Group: job.Groups[0], Index: index, NodeID: "n1",
			Client: model.ClientRunning, Started: true, StartTime: 10 * second,
		}
		if end > 0 {
			a.Client, a.EndTime = model.ClientComplete, end
		}
		txn.AllocWriter().Upsert(a)
	}
	run(silent, 0, 15*second)
	run(silent, 1, 17*second+1)
	run(silent, 2, 0) // longer than the mean
	run(silent, 3, 42*second)
	run(stated, 0, 40*second) // for exactly as long as it states
	run(stated, 1, 0)
	end := txn.Commit()
	r := &record.Recording{Name: "rec", Began: 0, Ended: 70 * second, Begin: begin, End: end, Events: []record.Event{
		{Kind: "JobRegistered", ID: "silent", Namespace: "default", Version: silent.Version, Time: 10 * second},
		{Kind: "JobRegistered", ID: "stated", Namespace: "default", Version: stated.Version, Time: 10 * second},
	}}
	f, notes := r.Scenario()
	mean := (5*second + 7*second + 1 + 32*second) / 3
	if want := map[string]scenario.Duration{
		"silent.g[0]": scenario.Duration(5 * second), "silent.g[1]": scenario.Duration(7*second + 1), "silent.g[2]": scenario.Duration(60*second + 1),
		"silent.g[3]": scenario.Duration(32 * second), "silent.g[4]": scenario.Duration(mean), "stated.g[1]": scenario.Duration(60*second + 1),
	}; !maps.Equal(f.Durations, want) {
		t.Errorf("durations %v, want %v", f.Durations, want)
	}
	if f.Jobs[0].Groups[0].Duration != 0 || f.Jobs[1].Groups[0].Duration != scenario.Duration(30*second) || len(notes) != 1 {
		t.Errorf("jobs %+v, notes %v", f.Jobs, notes)
	}
	var text strings.Builder
	no(t, scenario.Encode(&text, f, scenario.YAML))
	read, err := scenario.Decode("rec.yaml", strings.NewReader(text.String()))
	no(t, err)
	finished := map[string]int64{}
	_, err = sim.Play(t.Context(), read, sim.Options{
		Timeline: func(e timeline.Event) {
			if e.Kind == timeline.Finished {
				finished[e.Alloc] = e.At
			}
		},
		Resolve: func(sim.PolicySpec) (*policy.Version, error) {
			return policy.NewVersion(policy.Source{Name: "default", Module: policy.Native("sha256:rules", func() sdk.Policy { return rules.New() })})
		},
	})
	no(t, err)
	if want := map[string]int64{
		"silent.g[0]": 15 * second, "silent.g[1]": 17*second + 1, "silent.g[3]": 42 * second, "silent.g[4]": 10*second + mean, "stated.g[0]": 40 * second,
	}; !maps.Equal(finished, want) {
		t.Errorf("finished %v, want %v", finished, want)
	}
}

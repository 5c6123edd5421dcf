package audit_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/audit"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// played plays the scenario that most mutants start from.
func played(t *testing.T) audit.Run {
	t.Helper()
	return playedFile(t, "testdata/cluster.yaml", func(*scenario.File) {})
}

// playedMove plays a scenario in which one of two equal instances is moved to make room for
// a larger one.
func playedMove(t *testing.T) audit.Run {
	t.Helper()
	return playedFile(t, "../testdata/places/gangdefrag.yaml", func(f *scenario.File) {
		f.Scheduler.Moves = &scenario.Moves{PerJob: 1, Window: scenario.Duration(3600e9)}
	})
}

func playedFile(t *testing.T, name string, change func(*scenario.File)) audit.Run {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := scenario.Decode(name, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	run := audit.Run{File: f, Policy: policy.DefaultName, Unplaced: map[[2]string]int{}}
	played, err := sim.Play(t.Context(), f, sim.Options{
		Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
			return policy.NewVersion(policy.Source{
				Name: spec.Name, Module: policy.Native(policy.BuiltinDigest("default", "test"), func() sdk.Policy { return rules.New() }),
			})
		},
		Timeline: func(ev timeline.Event) { run.Events = append(run.Events, ev) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range played.Result.Unplaced {
		run.Unplaced[[2]string{u.Job, u.Group}] = u.Count
	}
	for _, e := range played.Result.Evicted {
		if e.Alloc != "" {
			run.LostWork = append(run.LostWork, audit.Loss{Alloc: e.Alloc, Work: int64(e.LostWork)})
		}
	}
	return run
}

// at returns the position of the first event of a kind and an allocation.
func at(t *testing.T, r *audit.Run, kind timeline.Kind, alloc string) int {
	t.Helper()
	i := slices.IndexFunc(r.Events, func(ev timeline.Event) bool {
		return ev.Kind == kind && strings.HasPrefix(ev.Alloc, alloc)
	})
	if i < 0 {
		t.Fatalf("no event %s of %s", kind, alloc)
	}
	return i
}

// drop removes the first event of a kind and an allocation.
func drop(t *testing.T, r *audit.Run, kind timeline.Kind, alloc string) {
	i := at(t, r, kind, alloc)
	r.Events = slices.Delete(r.Events, i, i+1)
}

// insert adds an event after another one, with its time and entry.
func insert(r *audit.Run, after int, ev timeline.Event) {
	ev.At, ev.Entry = r.Events[after].At, r.Events[after].Entry
	r.Events = slices.Insert(r.Events, after+1, ev)
}

func jobOf(t *testing.T, r *audit.Run, id string) *scenario.Job {
	i := slices.IndexFunc(r.File.Jobs, func(j scenario.Job) bool { return j.ID == id })
	if i < 0 {
		t.Fatalf("no job %s", id)
	}
	return &r.File.Jobs[i]
}

func TestCheck_AcceptsTheRunOfTheMutants(t *testing.T) {
	t.Parallel()
	run := played(t)
	for _, f := range audit.Check(run) {
		t.Error(f)
	}
	if t.Failed() || testing.Verbose() {
		for _, ev := range run.Events {
			t.Logf("%+v", ev)
		}
	}
}

// Each mutant violates one rule. It changes the timeline of a correct run, or the file so
// that the timeline violates it.
func TestCheck_FindsMutants(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name   string
		rule   string
		mutate func(t *testing.T, r *audit.Run)
	}{
		{"a placement on a full node", "capacity", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Placed, "pair.g[0]")].Node = "n3"
		}},
		{"a port that another allocation has", "capacity", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "pair").Groups[0].Ports = []uint16{80}
		}},
		{"a device group with too few instances", "capacity", func(_ *testing.T, r *audit.Run) {
			r.File.Nodes[0].Devices[0].Count = 1
		}},
		{"a device that does not serve the request", "devices", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Placed, "gpu")].Devices[0].Count = 1
		}},
		{"a placement on a node with a taint", "constraints", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Placed, "pair.g[0]")].Node = "n2"
		}},
		{"a placement that violates a constraint", "constraints", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "pair").Groups[0].Constraints = append(jobOf(t, r, "pair").Groups[0].Constraints,
				scenario.Constraint{Attribute: "zone", Operator: "=", Value: "nowhere"})
		}},
		{"two instances on one host", "topology", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Placed, "pair.g[1]")].Node = r.Events[at(t, r, timeline.Placed, "pair.g[0]")].Node
		}},
		{"allocations that must be separate", "topology", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "top").Groups[0].Separate = []scenario.LabelTerm{{Labels: map[string]string{"app": "low"}, TopologyKey: "node"}}
		}},
		{"a placement far from its co-location target", "topology", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "top").Groups[0].Colocate = []scenario.LabelTerm{{Labels: map[string]string{"app": "gpu"}, TopologyKey: "node"}}
		}},
		{"a victim of a priority that is too high", "victims", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Priority = new(int32(85))
		}},
		{"a victim that is not preemptible", "victims", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Preemptible = new(false)
		}},
		{"a victim within its minimum runtime", "victims", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Toleration = &scenario.PreemptionToleration{MinRuntime: scenario.Duration(1e13)}
		}},
		{"a preemptor below the tolerated priority", "victims", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Toleration = &scenario.PreemptionToleration{MinPreemptorPriority: new(int32(99))}
		}},
		{"a preemptor that never preempts", "victims", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "top").PreemptionPolicy = "Never"
		}},
		{"a type of job without preemption", "victims", func(_ *testing.T, r *audit.Run) {
			r.File.Scheduler.Preemption = &scenario.Preemption{Service: &scenario.PreemptionMode{}}
		}},
		{"an eviction without a placement", "victims", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Placed, "top")
		}},
		{"an eviction on a node that gains nothing", "victims", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Evicted, "l")].Alloc = "l0"
		}},
		{"an eviction that is not necessary", "minimal", func(t *testing.T, r *audit.Run) {
			i := at(t, r, timeline.Evicted, "l")
			other := r.Events[i]
			other.Alloc = map[string]string{"l2": "l3", "l3": "l2"}[other.Alloc]
			insert(r, i, other)
		}},
		{"an eviction beyond a strict budget", "budgets", func(_ *testing.T, r *audit.Run) {
			r.File.Budgets[0].MaxUnavailable = &scenario.Bound{Number: 0}
		}},
		{"an eviction beyond a percentage", "budgets", func(_ *testing.T, r *audit.Run) {
			r.File.Budgets[0].MaxUnavailable, r.File.Budgets[0].MinAvailable = nil, &scenario.Bound{Number: 80, Percent: true}
		}},
		{"evictions beyond a number per window", "budgets", func(_ *testing.T, r *audit.Run) {
			r.File.Budgets = append(r.File.Budgets, scenario.Budget{Name: "rate", MaxEvictions: new(int32(2)), Window: scenario.Duration(1e13)})
		}},
		{"a part of a gang", "gangs", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Placed, "gang.g[1]")
		}},
		{"a part of an all-or-none job evicted", "cohorts", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Evicted, "m1")
		}},
		{"an instance that runs twice", "count", func(t *testing.T, r *audit.Run) {
			i := at(t, r, timeline.Placed, "pair.g[0]")
			twin := r.Events[i]
			twin.Alloc, twin.Node = "pair.g[0]#7", "n0"
			insert(r, i, twin)
		}},
		{"one ID placed twice", "placements", func(t *testing.T, r *audit.Run) {
			i := at(t, r, timeline.Placed, "pair.g[0]")
			insert(r, i, r.Events[i])
		}},
		{"a completed instance placed again", "placements", func(t *testing.T, r *audit.Run) {
			i := at(t, r, timeline.Finished, "once")
			insert(r, i, timeline.Event{Kind: timeline.Placed, Alloc: "once.g[0]#1", Job: "once", Group: "g", Node: "n0"})
			r.Events[i+1].Entry++
		}},
		{"evicted work that is lost", "unplaced", func(t *testing.T, r *audit.Run) {
			r.Unplaced[[2]string{"mpi", "g"}] = 0
		}},
		{"a missing instance that fits", "waits", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Placed, "lone.g[0]#1")
			drop(t, r, timeline.Started, "lone.g[0]#1")
		}},
		{"a preemption that is left undone", "evicts", func(t *testing.T, r *audit.Run) {
			first := at(t, r, timeline.Evicted, "l")
			victim := r.Events[first].Alloc
			r.File.Budgets = nil // the checker does not rely on victims under a strict budget
			r.Events = slices.DeleteFunc(r.Events, func(ev timeline.Event) bool {
				return strings.HasPrefix(ev.Alloc, "top") || ev.Alloc == victim
			})
		}},
		{"a start before the victim has stopped", "starts", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Groups[0].KillTimeout *= 2
		}},
		{"an end at a wrong time", "times", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "once").Groups[0].Duration++
		}},
		{"a victim that stops at a wrong time", "times", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "low").Groups[0].KillTimeout--
		}},
		{"lost work that is wrong", "lost work", func(_ *testing.T, r *audit.Run) {
			r.LostWork[0].Work++
		}},
		{"saved work that is wrong", "saved work", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Placed, "low.g")].SavedWork++
		}},
		{"an allocation that outlives its node", "lost", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Lost, "lone")
		}},
		{"a stop without a reason", "stops", func(t *testing.T, r *audit.Run) {
			i := at(t, r, timeline.Placed, "pair.g[0]")
			insert(r, i, timeline.Event{Kind: timeline.Stopped, Alloc: "l0"})
		}},
		{"an allocation on a node that repels it", "taints", func(_ *testing.T, r *audit.Run) {
			r.File.Nodes[0].Taints = []scenario.Taint{{Key: "repair", Effect: "NoExecute"}}
		}},
		{"events that go back in time", "order", func(_ *testing.T, r *audit.Run) {
			r.Events[len(r.Events)-1].At = 0
		}},
		{"a full member cluster", "capacity", func(t *testing.T, r *audit.Run) {
			r.Events[at(t, r, timeline.Assigned, "default/w1")].Replicas = 11
		}},
		{"a victim binding of a priority that is too high", "victims", func(_ *testing.T, r *audit.Run) {
			r.File.Bindings[0].Priority = new(int32(79))
		}},
		{"a cluster that a binding excludes", "bindings", func(_ *testing.T, r *audit.Run) {
			r.File.Bindings[1].Constraints = []scenario.Constraint{{Attribute: "region", Operator: "is_set"}}
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			run := played(t)
			m.mutate(t, &run)
			found := audit.Check(run)
			if !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Rule == m.rule }) {
				t.Errorf("rule %s is violated, found %v", m.rule, found)
			}
		})
	}
}

// The members of a gang are placed together, so that its co-location is checked after its plan.
func TestCheck_FindsGangThatDependsOnItsVictims(t *testing.T) {
	t.Parallel()
	run := played(t)
	jobOf(t, &run, "gang").Groups[0].Colocate = []scenario.LabelTerm{{Labels: map[string]string{"app": "mpi"}, TopologyKey: "zone"}}
	found := audit.Check(run)
	if !slices.ContainsFunc(found, func(f audit.Finding) bool { return strings.Contains(f.Text, "depends on a victim of its plan") }) {
		t.Errorf("found %v", found)
	}
}

func TestCheck_FindsMutantsOfMoves(t *testing.T) {
	t.Parallel()
	run := playedMove(t)
	if found := audit.Check(run); len(found) > 0 || !slices.ContainsFunc(run.Events, func(ev timeline.Event) bool { return ev.Kind == timeline.Stopped && ev.Moved != "" }) {
		t.Fatalf("found %v in\n%+v", found, run.Events)
	}
	moved := func(r *audit.Run, kind timeline.Kind) *timeline.Event {
		return &r.Events[slices.IndexFunc(r.Events, func(ev timeline.Event) bool { return ev.Kind == kind && ev.Moved != "" })]
	}
	jobOfMove := func(t *testing.T, r *audit.Run) *scenario.Job { return jobOf(t, r, moved(r, timeline.Placed).Job) }
	for _, m := range []struct {
		name   string
		rule   string
		mutate func(t *testing.T, r *audit.Run)
	}{
		{"moves are off", "moves", func(_ *testing.T, r *audit.Run) { r.File.Scheduler.Moves = nil }},
		{"beyond the limit of the job", "moves", func(_ *testing.T, r *audit.Run) { r.File.Scheduler.Moves.PerJob = 0 }},
		{"beyond a budget of best effort", "moves", func(t *testing.T, r *audit.Run) {
			jobOfMove(t, r).Groups[0].Labels = map[string]string{"app": "x"}
			r.File.Budgets = append(r.File.Budgets, scenario.Budget{Name: "b", Labels: map[string]string{"app": "x"}, MaxUnavailable: &scenario.Bound{}})
		}},
		{"without a second half", "moves", func(t *testing.T, r *audit.Run) { drop(t, r, timeline.Placed, moved(r, timeline.Placed).Alloc) }},
		{"without a first half", "moves", func(t *testing.T, r *audit.Run) { moved(r, timeline.Stopped).Moved = "" }},
		{"to the same node", "moves", func(_ *testing.T, r *audit.Run) {
			moved(r, timeline.Placed).Node = moved(r, timeline.Stopped).Node
		}},
		{"for nothing", "moves", func(t *testing.T, r *audit.Run) {
			drop(t, r, timeline.Placed, "big")
			drop(t, r, timeline.Started, "big")
		}},
		{"for a lower priority", "moves", func(t *testing.T, r *audit.Run) { jobOfMove(t, r).Priority = new(int32(51)) }},
		{"of a protected job", "moves", func(t *testing.T, r *audit.Run) { jobOfMove(t, r).Preemptible = new(bool) }},
		{"for an instance that is not larger", "moves", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "big").Groups[0].Resources["gpu"] = 2
		}},
		{"of an instance that could have stayed", "moves", func(t *testing.T, r *audit.Run) {
			jobOf(t, r, "big").Groups[0].Resources["gpu"] = 6
		}},
		{"to a full node", "capacity", func(t *testing.T, r *audit.Run) { jobOf(t, r, "a").Groups[0].Resources["gpu"] = 7 }},
	} {
		t.Run(m.name, func(t *testing.T) {
			run := playedMove(t)
			m.mutate(t, &run)
			found := audit.Check(run)
			if !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Rule == m.rule }) {
				t.Errorf("rule %s is violated, found %v", m.rule, found)
			}
		})
	}
}

package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/policies/karmada"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func resolveKarmada(spec PolicySpec) (*policy.Version, error) {
	build := func() sdk.Policy { return rules.New() }
	if spec.Use == "karmada" {
		build = func() sdk.Policy { return karmada.New() }
	}
	config, err := json.Marshal(spec.Config)
	if err != nil {
		return nil, err
	}
	return policy.NewVersion(policy.Source{Name: spec.Name, Config: config, Module: policy.Native(policy.BuiltinDigest(spec.Use, "test"), build)})
}

func priorityOf(f *scenario.File, binding string) int32 {
	for i := range f.Bindings {
		if b := &f.Bindings[i]; b.ID == binding {
			return *b.Priority
		}
	}
	return 0
}

// playChecked plays a file and checks the state after every instant.
func playChecked(t *rapid.T, f *scenario.File) (*engine, *Run) {
	resolved, err := scenario.Resolve(f)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{opts: Options{Resolve: resolveKarmada}, file: resolved, waiting: lifetime.NewWaiting(), jobs: newJobStats(), bound: newBindings()}
	if err := e.loadPolicies(); err != nil {
		t.Fatal(err)
	}
	if err := e.assemble(); err != nil {
		t.Fatal(err)
	}
	for {
		at, ok := e.nextInstant()
		if !ok {
			return e, e.finish()
		}
		e.clock.AdvanceTo(time.Unix(0, at))
		e.ends(at)
		if err := e.steps(at); err != nil {
			t.Fatal(err)
		}
		if err := e.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.checkBindings(t)
	}
}

// checkBindings checks that the state is consistent, no cluster exceeds its capacity,
// no binding exceeds its replicas or clusters, and no pending binding could be
// placed.
func (e *engine) checkBindings(t *rapid.T) {
	snap := e.store.Snapshot()
	if err := snap.Check(); err != nil {
		t.Fatal(err)
	}
	for c := range snap.Clusters() {
		left := c.Avail
		for _, a := range snap.ClusterAssignments(c.ID) {
			left.Sub(&a.Vec)
		}
		for d, n := range left {
			if n < 0 {
				t.Fatalf("at %s cluster %s is over its capacity of %s by %d", At(e.now()), c.ID, snap.Dims().Name(d), -n)
			}
		}
	}
	s := scheduler.New(scheduler.Config{Policies: e.policies})
	for b := range snap.Bindings() {
		total, clusters, groups := 0, map[string]bool{}, map[string]bool{} // a cluster can hold a completed and a live assignment
		for _, a := range snap.BindingAssignments(b.Key()) {
			if a.CountsAsPlaced() {
				total += a.Replicas
				if b.Duplicated && a.Live() && a.Replicas < b.Replicas && (b.MinReplicas == 0 || a.Replicas < b.MinReplicas) {
					t.Fatalf("%s has %d replicas on %s, want %d or at least %d", b.ID, a.Replicas, a.ClusterID, b.Replicas, b.MinReplicas)
				}
				clusters[a.ClusterID] = true
				groups[b.SpreadGroup(snap.Cluster(a.ClusterID))] = true
			}
		}
		on := len(clusters)
		if !b.Duplicated && total > b.Replicas || b.Duplicated && total > on*b.Replicas {
			t.Fatalf("%s has %d replicas on %d clusters, want %d", b.ID, total, on, b.Replicas)
		}
		if b.MaxClusters > 0 && on > b.MaxClusters {
			t.Fatalf("%s is assigned to %d clusters, want at most %d", b.ID, on, b.MaxClusters)
		}
		if b.MaxGroups > 0 && len(groups) > b.MaxGroups {
			t.Fatalf("%s is assigned to %d regions, want at most %d", b.ID, len(groups), b.MaxGroups)
		}
		if total == b.Replicas && total > 0 && !b.Duplicated && (on < b.MinClusters || len(groups) < b.MinGroups) {
			t.Fatalf("%s has all replicas on %d clusters in %d regions, want %s", b.ID, on, len(groups), b.SpreadText())
		}
		again := &model.Evaluation{ID: "again", Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority}
		out, err := s.Process(again, snap, e.now())
		if err != nil {
			t.Fatal(err)
		}
		if !out.Plan.Empty() {
			t.Fatalf("at %s %s is pending, but fits: %+v", At(e.now()), b.ID, out.Plan.Groups[0])
		}
	}
}

// randomBindings draws clusters with little capacity and bindings that compete for
// it.
func randomBindings(t *rapid.T, forever bool) *scenario.File {
	n := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	f := &scenario.File{Version: 1, Name: "fight", Scheduler: scenario.Scheduler{Policy: "karmada"}, Until: new(scenario.Duration(3600e9))}
	switch n("policy", 0, 5) {
	case 0:
		f.Scheduler.Policy, f.Scheduler.PriorityDelta = "default", new(int32(2))
	case 4:
		f.Scheduler.Policy = "gentle-and-wide"
		f.Policies = []scenario.PolicyVariant{{Name: "gentle-and-wide", Use: "karmada", Config: map[string]any{"multiCluster": true, "elastic": true}}}
	case 3:
		f.Scheduler.Policy = "wide"
		f.Policies = []scenario.PolicyVariant{{Name: "wide", Use: "karmada", Config: map[string]any{"multiCluster": true}}}
	case 1, 2:
		f.Scheduler.Policy = "gentle"
		f.Policies = []scenario.PolicyVariant{{Name: "gentle", Use: "karmada", Config: map[string]any{"elastic": true}}}
	}
	for i := range n("clusters", 1, 4) {
		f.Clusters = append(f.Clusters, scenario.Cluster{
			ID: fmt.Sprintf("m%d", i), Capacity: scenario.Quantities{"units": int64(n("capacity", 4, 14)), "memory": int64(n("memory", 4, 14))},
			Attributes: map[string]string{"region": fmt.Sprintf("r%d", n("region", 0, 2))},
		})
	}
	for i := range n("bindings", 2, 9) {
		b := scenario.Binding{
			ID: fmt.Sprintf("b%d", i), Priority: new(int32(n("priority", 0, 5))), Replicas: new(n("replicas", 1, 4)),
			Resources:        scenario.Quantities{"units": int64(n("units", 0, 5)), "memory": int64(n("bytes", 0, 3))},
			PreemptionPolicy: "PreemptLowerPriority", KillTimeout: scenario.Duration(n("kill", 0, 2)) * 20e9,
		}
		switch n("kind", 0, 11) {
		case 0:
			b.ReplicaScheduling = "duplicated"
			if n("spread", 0, 1) == 0 {
				b.Spread.MinClusters = new(min(2, len(f.Clusters)))
			}
		case 10, 11:
			if n("duplicated", 0, 1) == 0 {
				b.ReplicaScheduling, b.Replicas = "duplicated", new(min(2, *b.Replicas))
			}
			b.Spread.By, b.Spread.MinGroups = "region", new(min(n("least regions", 1, 2), *b.Replicas))
			if n("bounded", 0, 1) == 0 {
				b.Spread.MaxGroups = new(max(*b.Spread.MinGroups, n("most regions", 1, 2)))
			}
			if n("few", 0, 2) == 0 {
				b.Spread.MaxClusters = new(max(2, *b.Spread.MinGroups))
			}
		case 1:
			b.Scope, b.PreemptionPolicy = "cluster", ""
		case 2:
			b.PreemptionPolicy = "Never"
		case 3:
			b.Spread.MaxClusters = new(1)
		case 4:
			b.Spread.MinClusters = new(min(2, *b.Replicas))
		case 5:
			b.Weights = map[string]int{"m0": n("weight", 1, 3), f.Clusters[len(f.Clusters)-1].ID: 1}
		}
		if n("elastic", 0, 2) == 0 {
			b.MinReplicas = n("least", 1, *b.Replicas)
		}
		if !forever && n("finite", 0, 3) == 0 {
			b.Duration = 150e9
		}
		f.Bindings = append(f.Bindings, b)
	}
	at := scenario.Duration(0)
	for range n("events", 2, 14) {
		at += scenario.Duration(n("pause", 0, 3)) * 15e9
		id := fmt.Sprintf("b%d", n("which", 0, len(f.Bindings)-1))
		if !forever && n("stop", 0, 4) == 0 {
			f.Events = append(f.Events, scenario.Event{At: at, Stop: id})
		} else {
			f.Events = append(f.Events, scenario.Event{At: at, Submit: id})
		}
	}
	return f
}

// bindingRounds returns the number of rounds of a hundred cases each.
func bindingRounds() int { return soak.Count(4, 500) }

func TestBindings_Invariants(t *testing.T) {
	t.Parallel()
	for range bindingRounds() {
		rapid.Check(t, func(t *rapid.T) {
			f := randomBindings(t, false)
			_, run := playChecked(t, f)
			for _, v := range run.Result.Evicted {
				if by, victim := priorityOf(f, v.By), priorityOf(f, v.Binding); victim >= by {
					t.Fatalf("%s of priority %d evicts %s of %d", v.By, by, v.Binding, victim)
				}
				listed := slices.ContainsFunc(run.Result.Bindings, func(b Binding) bool {
					return b.At == v.At && b.Binding == v.By && b.Clusters[v.Cluster] > 0 && len(b.Preempted) > 0
				})
				if !listed {
					t.Fatalf("no claim was listed for %+v", v)
				}
			}
		})
	}
}

// Evictions converge: if all bindings are submitted again before any completes, no
// further binding is evicted.
func TestBindings_Converge(t *testing.T) {
	t.Parallel()
	for range bindingRounds() {
		rapid.Check(t, func(t *rapid.T) {
			f := randomBindings(t, true)
			e, run := playChecked(t, f)
			evicted := len(run.Result.Evicted)
			for _, b := range e.file.Bindings {
				if e.store.Snapshot().Binding(b.Key()) == nil {
					continue
				}
				if err := e.submitBinding(b); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(e.record.evicted); got != evicted {
				t.Fatalf("%d additional evictions: %+v", got-evicted, e.record.evicted[evicted:])
			}
		})
	}
}

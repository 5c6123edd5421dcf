package binding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// elasticPolicy applies the built-in rules, with the declarations in info.
type elasticPolicy struct {
	info  sdk.Info
	rules rules.Bindings
}

func (r *elasticPolicy) Info() sdk.Info { return r.info }

func (r *elasticPolicy) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	return r.rules.PreemptBindings(in, out)
}

func elasticRounds() int { return soak.Count(1000, 50_000) }

// fullClustersAtRandom returns clusters of 12 units that are full of random bindings, and a
// pending binding of priority 9.
func fullClustersAtRandom(t *testing.T, r *rand.Rand, clusters int) (*state.Snapshot, *model.Binding) {
	t.Helper()
	txn := state.New().Begin(1)
	put := func(b *model.Binding) *model.Binding {
		b.Namespace = "default"
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	n := 0
	for c := range clusters {
		id := fmt.Sprint("m", c)
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 12}}); err != nil {
			t.Fatal(err)
		}
		for free := 12; free > r.IntN(3); {
			each := 1 + r.IntN(min(3, free))
			b := &model.Binding{
				ID: fmt.Sprint("b", n), Priority: int32(r.IntN(11)), Replicas: 1 + r.IntN(free/each), Resources: model.Resources{"cpu": int64(each)},
			}
			b.MinReplicas = r.IntN(b.Replicas + 1)
			put(b)
			txn.AssignmentWriter().Upsert(&model.Assignment{
				ID: b.ID, Binding: b.Key(), ClusterID: id, Replicas: b.Replicas, Vec: b.TotalAsk(b.Replicas), StartTime: int64(r.IntN(3)),
			})
			free -= each * b.Replicas
			n++
		}
	}
	pending := put(&model.Binding{
		ID: "pending", Priority: 9, Preempts: true, Replicas: 1 + r.IntN(3), Resources: model.Resources{"cpu": 1 + r.Int64N(4)},
	})
	return txn.Commit(), pending
}

func request(t *testing.T, snap *state.Snapshot, pending *model.Binding, info sdk.Info) *binding.Request {
	t.Helper()
	v := versionOf(t, info.Name, &elasticPolicy{info: info})
	req := &binding.Request{Binding: pending, Replicas: pending.Replicas, Policy: v, Default: v}
	for c := range snap.Clusters() {
		if _, soon := snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0); pending.FittingReplicas(&soon, pending.Replicas) < pending.Replicas {
			req.Clusters = append(req.Clusters, c)
		}
	}
	return req
}

// An elastic search frees enough, and no replica more. Bindings keep their minimum unless
// they are evicted, and a cluster is found exactly if one is found without shrinking.
func TestFind_ShrinksNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 5))
	shrunk := 0
	for range elasticRounds() {
		snap, pending := fullClustersAtRandom(t, r, 1+r.IntN(3))
		req := request(t, snap, pending, sdk.Info{Name: "elastic", Delta: 1, Ascending: true, Elastic: true})
		if len(req.Clusters) == 0 {
			continue
		}
		found, err := binding.Find(snap, req)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := binding.Find(snap, request(t, snap, pending, sdk.Info{Name: "whole", Delta: 1, Ascending: true}))
		if err != nil || (found.Cluster == nil) != (whole.Cluster == nil) {
			t.Fatalf("got %+v, without shrinking %+v, %v", found, whole, err)
		}
		if found.Cluster == nil {
			continue
		}
		_, free := snap.ClusterFreeCapacity(found.Cluster.ID, pending.Key(), pending.Priority, 0)
		for _, v := range found.Victims {
			free[0] += v.Vec[0] / int64(v.Replicas) * int64(v.Replicas-v.Keep)
		}
		needs := pending.TotalAsk(pending.Replicas)
		for _, v := range found.Victims {
			b := snap.Binding(v.Binding)
			if b.Priority >= pending.Priority || v.Keep != 0 && v.Keep < b.MinReplicas {
				t.Fatalf("binding %+v keeps %d replicas", b, v.Keep)
			}
			back := v.Vec[0] / int64(v.Replicas)
			switch {
			case v.Keep > 0:
				shrunk++
			case b.MinReplicas > 0: // it could only stay with its minimum
				back *= int64(b.MinReplicas)
			default:
				back = v.Vec[0]
			}
			if free[0] < needs[0] || free[0]-back >= needs[0] {
				t.Fatalf("%d free of %d needed, but %+v could keep more than %d", free[0], needs[0], b, v.Keep)
			}
		}
	}
	if shrunk == 0 {
		t.Error("no binding was shrunk")
	}
}

// totalFitting returns how many replicas fit on some clusters together.
func totalFitting(b *model.Binding, free []model.Vector) (n int) {
	for i := range free {
		n += b.FittingReplicas(&free[i], b.Replicas)
	}
	return n
}

// A search over several clusters evicts the lowest priorities that suffice, and none in
// vain. It finds victims exactly if evicting every lower priority would suffice.
func TestFindSpread_EvictsLowestSufficientVictims(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 6))
	some := 0
	for range elasticRounds() {
		snap, pending := fullClustersAtRandom(t, r, 2+r.IntN(2))
		req := request(t, snap, pending, sdk.Info{Name: "spread", Delta: 1, Ascending: true, MultiCluster: true})
		if len(req.Clusters) < 2 {
			continue
		}
		found, err := binding.FindSpread(snap, req, func(free []model.Vector) bool { return totalFitting(pending, free) >= pending.Replicas })
		if err != nil {
			t.Fatal(err)
		}
		free := make([]model.Vector, len(req.Clusters))
		var lower []*model.Assignment
		at := map[string]int{}
		for i, c := range req.Clusters {
			_, free[i] = snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0)
			at[c.ID] = i
			for a, b := range snap.ClusterWorkload(c.ID) {
				if b.Priority < pending.Priority {
					lower = append(lower, a)
				}
			}
		}
		if totalFitting(pending, free) >= pending.Replicas {
			continue // it fits without evictions
		}
		for _, a := range lower {
			free[at[a.ClusterID]].Add(&a.Vec)
		}
		if possible := totalFitting(pending, free) >= pending.Replicas; possible != (len(found.Victims) > 0) {
			t.Fatalf("got %d victims, possible: %v", len(found.Victims), possible)
		} else if !possible {
			continue
		}
		some++
		checkSpread(t, snap, pending, req, found)
	}
	if some == 0 {
		t.Error("the property was not exercised")
	}
}

// checkSpread checks that the victims suffice, that none is redundant, and that lower
// priorities alone would not suffice.
func checkSpread(t *testing.T, snap *state.Snapshot, pending *model.Binding, req *binding.Request, found binding.SpreadResult) {
	t.Helper()
	enough := func(gone func(a *model.Assignment, b *model.Binding) bool) bool {
		free := make([]model.Vector, len(req.Clusters))
		for i, c := range req.Clusters {
			_, free[i] = snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0)
			for a, b := range snap.ClusterWorkload(c.ID) {
				if gone(a, b) {
					free[i].Add(&a.Vec)
				}
			}
		}
		return totalFitting(pending, free) >= pending.Replicas
	}
	highest := int32(-1)
	for _, omitted := range append([]binding.Victim{{Assignment: &model.Assignment{}}}, found.Victims...) {
		without := enough(func(a *model.Assignment, _ *model.Binding) bool {
			return a.ID != omitted.ID && slices.ContainsFunc(found.Victims, func(v binding.Victim) bool { return v.ID == a.ID })
		})
		if without != (omitted.ID == "") {
			t.Fatalf("victims %[2]v without %[1]q suffice: %[3]v", omitted.ID, ids(found.Victims), without)
		}
		if omitted.ID != "" {
			highest = max(highest, snap.Binding(omitted.Binding).Priority)
		}
	}
	if enough(func(_ *model.Assignment, b *model.Binding) bool { return b.Priority < highest }) {
		t.Fatalf("victims %v have priorities up to %d, but lower ones suffice", ids(found.Victims), highest)
	}
}

package binding_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// bindingsOnSeveralClusters returns small clusters, bindings that run on one or several of
// them, and a pending binding.
func bindingsOnSeveralClusters(t *testing.T, r *rand.Rand) (*state.Snapshot, *model.Binding) {
	t.Helper()
	txn := state.New().Begin(1)
	put := func(b *model.Binding) {
		b.Namespace = "default"
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
	}
	dims := []string{"cpu", "memory"}[:1+r.IntN(2)]
	amounts := func(from, to int) model.Resources {
		rs := model.Resources{}
		for _, d := range dims {
			rs[d] = int64(from + r.IntN(to-from+1))
		}
		return rs
	}
	clusters := 1 + r.IntN(3)
	free := make([]model.Resources, clusters)
	for c := range clusters {
		free[c] = amounts(3, 8)
		cluster := &model.Cluster{ID: fmt.Sprint("m", c), Capacity: maps.Clone(free[c])}
		if err := txn.ClusterWriter().Upsert(cluster); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 1 + r.IntN(5) {
		b := &model.Binding{ID: fmt.Sprint("b", n), Priority: int32(r.IntN(4)), Resources: amounts(1, 2), Duplicated: r.IntN(6) == 0}
		var on []*model.Assignment
		most := 1 + r.IntN(4)
		for c := range clusters {
			fit := most
			for d, each := range b.Resources {
				fit = min(fit, int(free[c][d]/each))
			}
			if fit == 0 || b.Duplicated && fit < most || r.IntN(3) == 0 {
				continue
			}
			k := fit
			if !b.Duplicated {
				k = 1 + r.IntN(fit)
			}
			for d, each := range b.Resources {
				free[c][d] -= each * int64(k)
			}
			on = append(on, &model.Assignment{ID: fmt.Sprint(b.ID, "/m", c), ClusterID: fmt.Sprint("m", c), Replicas: k, StartTime: int64(r.IntN(2))})
			if b.Replicas += k; b.Duplicated {
				b.Replicas = most
			}
		}
		if b.Replicas > 0 && r.IntN(4) > 0 {
			b.MinReplicas = r.IntN(b.Replicas + 1)
		}
		put(b)
		for _, a := range on {
			a.Binding, a.Vec = b.Key(), b.TotalAsk(a.Replicas)
			txn.AssignmentWriter().Upsert(a)
		}
	}
	pending := &model.Binding{ID: "pending", Priority: 3, Preempts: true, Replicas: 1 + r.IntN(5), Resources: amounts(1, 3)}
	put(pending)
	return txn.Commit(), pending
}

// refUnit is a part of an assignment: the surplus, of which any number of replicas may
// leave, or the minimum, which leaves whole.
type refUnit struct {
	*model.Assignment
	binding   *model.Binding
	cluster   int  // cluster
	isMinimum bool // the minimum; otherwise the surplus, or all replicas
	replicas  int  // replicas that may leave
	shared    bool // with other clusters
}

// surplusOf returns how many replicas a binding has above its minimum on all clusters.
func surplusOf(snap *state.Snapshot, b *model.Binding) int {
	have := 0
	for _, x := range snap.BindingAssignments(b.Key()) {
		have += x.Replicas
	}
	return have - b.MinReplicas
}

// refUnits returns the candidates in eviction order: by priority, surplus before minimum,
// by cluster, the youngest first. Minimums without replicas come last, as long as shrinking
// suffices.
func refUnits(snap *state.Snapshot, pending *model.Binding, clusters []*model.Cluster) (units []*refUnit) {
	for at, c := range clusters {
		for a, b := range snap.ClusterWorkload(c.ID) {
			if b.Priority >= pending.Priority {
				continue
			}
			u, rest := &refUnit{Assignment: a, binding: b, cluster: at, replicas: a.Replicas}, &refUnit{Assignment: a, binding: b, cluster: at, isMinimum: true}
			spare := a.Replicas - b.MinReplicas
			if !b.Duplicated {
				spare, u.shared = min(a.Replicas, surplusOf(snap, b)), true
			}
			if units = append(units, u); b.MinReplicas == 0 || spare <= 0 {
				u.shared = false
				continue
			}
			u.replicas, rest.replicas = spare, a.Replicas-spare
			units = append(units, rest)
		}
	}
	is := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	slices.SortFunc(units, func(x, y *refUnit) int {
		return cmp.Or(
			cmp.Compare(x.binding.Priority, y.binding.Priority), cmp.Compare(is(x.isMinimum), is(y.isMinimum)), cmp.Compare(x.cluster, y.cluster),
			cmp.Compare(is(x.replicas == 0), is(y.replicas == 0)), cmp.Compare(y.StartTime, x.StartTime), cmp.Compare(y.binding.ID, x.binding.ID),
		)
	})
	return units
}

// reference is the state of a reference search.
type reference struct {
	snap   *state.Snapshot
	free   []model.Vector
	enough func([]model.Vector) bool
}

// exhaustiveSearch tries every combination of removals.
type exhaustiveSearch struct {
	*reference
	free    []model.Vector
	open    []*refUnit      // candidates, by assignment
	evicted map[string]bool // by ID: may leave regardless of the minimum
	left    map[model.JobKey]int
	drawn   map[model.JobKey]int // of left, by assignments that are not evicted
}

// possible reports whether removing units can free enough. It tries every way to share the
// surplus of bindings among clusters, with and without eviction.
func (x *reference) possible(gone []*refUnit) bool {
	t := &exhaustiveSearch{x, slices.Clone(x.free), nil, map[string]bool{}, map[model.JobKey]int{}, map[model.JobKey]int{}}
	for _, u := range gone {
		if t.left[u.Binding] = surplusOf(x.snap, u.binding); u.isMinimum {
			t.evicted[u.ID] = true
		} else {
			t.open = append(t.open, u)
		}
	}
	for _, u := range gone { // minimums without a surplus
		if u.isMinimum && !slices.ContainsFunc(t.open, func(o *refUnit) bool { return o.ID == u.ID }) {
			t.open = append(t.open, &refUnit{Assignment: u.Assignment, binding: u.binding, cluster: u.cluster, shared: u.shared})
		}
	}
	return t.try(t.open)
}

// try tries all combinations for the open units. Evicted replicas reduce the surplus.
func (t *exhaustiveSearch) try(open []*refUnit) bool {
	if !t.mayFit(open) {
		return false
	}
	if len(open) == 0 {
		return true
	}
	u := open[0]
	if t.evicted[u.ID] && t.tryFirst(open, u.Replicas, 0) {
		return true
	}
	for n := u.replicas; n >= 0; n-- {
		drawn := 0
		if u.shared {
			drawn = n
		}
		if t.tryFirst(open, n, drawn) {
			return true
		}
	}
	return false
}

// tryFirst tries to remove n replicas of the first open unit.
func (t *exhaustiveSearch) tryFirst(open []*refUnit, n, drawn int) bool {
	u := open[0]
	key, taken := u.Binding, 0
	if u.shared || t.evicted[u.ID] && !u.binding.Duplicated {
		taken = n
	}
	t.left[key] -= taken
	t.drawn[key] += drawn
	release(t.free, u, n)
	ok := (t.drawn[key] == 0 || t.left[key] >= 0) && t.try(open[1:])
	release(t.free, u, -n)
	t.drawn[key] -= drawn
	t.left[key] += taken
	return ok
}

// mayFit reports whether removing as much as possible would free enough.
func (t *exhaustiveSearch) mayFit(open []*refUnit) bool {
	free := slices.Clone(t.free)
	for _, u := range open {
		n := u.replicas
		if t.evicted[u.ID] {
			n = u.Replicas
		}
		release(free, u, n)
	}
	return t.enough(free)
}

func release(free []model.Vector, u *refUnit, n int) {
	for d, all := range u.Vec {
		free[u.cluster][d] += all / int64(u.Replicas) * int64(n)
	}
}

// reprieved removes all units, then restores as much as possible in reverse order. It
// returns how many replicas leave by assignment, or nil if removing all does not suffice.
func (x *reference) reprieved(units []*refUnit) map[string]int {
	if !x.possible(units) {
		return nil
	}
	gone := slices.Clone(units)
	for k, u := range slices.Backward(gone) {
		if !u.isMinimum && slices.ContainsFunc(gone, func(o *refUnit) bool { return o.isMinimum && o.ID == u.ID }) {
			continue // it is evicted
		}
		without := slices.Delete(slices.Clone(gone), k, k+1)
		if x.possible(without) {
			gone = without
			continue
		}
		for !u.isMinimum && u.binding.MinReplicas > 0 && (u.shared || u.binding.Duplicated && u.replicas < u.Replicas) && u.replicas > 1 {
			if u.replicas--; !x.possible(gone) {
				u.replicas++
				break
			}
		}
	}
	leaves := map[string]int{}
	for _, u := range gone {
		leaves[u.ID] += u.replicas
		if u.isMinimum {
			leaves[u.ID] = u.Replicas
		}
	}
	return leaves
}

// elasticRules returns the rules of the karmada policy with elastic set.
func elasticRules(t *testing.T, several bool) *elasticPolicy {
	t.Helper()
	return &elasticPolicy{
		info:  sdk.Info{Name: "elastic", Delta: 1, Ascending: true, Elastic: true, MultiCluster: several},
		rules: rules.Bindings{Elastic: true},
	}
}

func leavingOf(victims []binding.Victim) map[string]int {
	leaves := map[string]int{}
	for _, v := range victims {
		leaves[v.ID] = v.Replicas - v.Keep
	}
	return leaves
}

// checkAgainst compares victims with those of the reference implementation.
func checkAgainst(t *testing.T, snap *state.Snapshot, pending *model.Binding, victims []binding.Victim, x *reference, units []*refUnit) {
	t.Helper()
	got, want := leavingOf(victims), x.reprieved(units)
	if fmt.Sprint(got) != fmt.Sprint(want) && (len(got) > 0 || want != nil) {
		for c := range snap.Clusters() {
			t.Logf("cluster %s with capacity %v", c.ID, c.Capacity)
		}
		for b := range snap.Bindings() {
			t.Logf("binding %s: priority %d, %d replicas of at least %d, duplicated %v, each %v", b.ID, b.Priority, b.Replicas, b.MinReplicas, b.Duplicated, b.Resources)
			for _, a := range snap.BindingAssignments(b.Key()) {
				t.Logf("  %d on %s since %d", a.Replicas, a.ClusterID, a.StartTime)
			}
		}
		t.Fatalf("%s: got victims %v, want %v", pending.ID, got, want)
	}
}

// checkMinimums checks that every shrunk binding keeps its minimum, on all clusters
// together, once all victims have left.
func checkMinimums(t *testing.T, snap *state.Snapshot, victims []binding.Victim) {
	t.Helper()
	leaves := leavingOf(victims)
	for _, v := range victims {
		b, stay := snap.Binding(v.Binding), v.Keep
		if !b.Duplicated {
			stay = 0
			for _, a := range snap.BindingAssignments(v.Binding) {
				stay += a.Replicas - leaves[a.ID]
			}
		}
		if v.Keep > 0 && (b.MinReplicas == 0 || stay < b.MinReplicas) {
			t.Fatalf("%s is shrunk to %d: its binding keeps %d replicas, less than %d", v.ID, v.Keep, stay, b.MinReplicas)
		}
	}
}

// Victims on one cluster equal those of the reference: remove all, then reprieve replica by
// replica. No binding is evicted if shrinking suffices at its priority.
func TestFind_ElasticMatchesReference(t *testing.T) {
	t.Parallel()
	r, some := rand.New(rand.NewPCG(7, 9)), 0
	for range elasticRounds() {
		snap, pending := bindingsOnSeveralClusters(t, r)
		v := versionOf(t, "elastic", elasticRules(t, false))
		for c := range snap.Clusters() {
			_, soon := snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0)
			enough := func(free []model.Vector) bool { return totalFitting(pending, free) >= pending.Replicas }
			x := &reference{snap, []model.Vector{soon}, enough}
			if enough(x.free) {
				continue
			}
			req := &binding.Request{Binding: pending, Replicas: pending.Replicas, Policy: v, Default: v, Clusters: []*model.Cluster{c}}
			found, err := binding.Find(snap, req)
			if err != nil {
				t.Fatal(err)
			}
			checkMinimums(t, snap, found.Victims)
			checkAgainst(t, snap, pending, found.Victims, x, refUnits(snap, pending, req.Clusters))
			some += len(found.Victims)
		}
	}
	if some == 0 {
		t.Error("the property was not exercised")
	}
}

// The same over several clusters, some of which must run a replica: the surplus of a binding
// is shared among them in any way that suffices.
func TestFindSpread_ElasticMatchesReference(t *testing.T) {
	t.Parallel()
	r, some := rand.New(rand.NewPCG(7, 10)), 0
	for range elasticRounds() {
		snap, pending := bindingsOnSeveralClusters(t, r)
		v := versionOf(t, "elastic", elasticRules(t, true))
		req := &binding.Request{Binding: pending, Replicas: pending.Replicas, Policy: v, Default: v, Clusters: slices.Collect(snap.Clusters())}
		least := min(1+r.IntN(len(req.Clusters)), pending.Replicas)
		enough := func(free []model.Vector) bool {
			on := 0
			for i := range free {
				on += pending.FittingReplicas(&free[i], 1)
			}
			return on >= least && totalFitting(pending, free) >= pending.Replicas
		}
		x := &reference{snap: snap, enough: enough}
		for _, c := range req.Clusters {
			_, soon := snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0)
			x.free = append(x.free, soon)
		}
		if enough(x.free) {
			continue
		}
		found, err := binding.FindSpread(snap, req, enough)
		if err != nil {
			t.Fatal(err)
		}
		checkMinimums(t, snap, found.Victims)
		units := refUnits(snap, pending, req.Clusters)
		checkAgainst(t, snap, pending, found.Victims, x, units)
		some += len(found.Victims)
	}
	if some == 0 {
		t.Error("the property was not exercised")
	}
}

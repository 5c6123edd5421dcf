package binding

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	search "github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/karmada"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// regions returns clusters of three regions that bindings fill, and a binding that is
// spread over them, possibly with a few replicas.
func regions(t *testing.T, r *rand.Rand, name string) (*state.Snapshot, *model.Binding) {
	t.Helper()
	x := &model.Binding{
		Namespace: "default", ID: "x", Priority: 3, Preempts: true, Replicas: 1 + r.IntN(4), Resources: model.Resources{"cpu": 1 + r.Int64N(3)},
		SpreadBy: "region", MinGroups: r.IntN(3), MaxGroups: r.IntN(3), MinClusters: r.IntN(3), MaxClusters: r.IntN(4), Duplicated: r.IntN(3) == 0,
	}
	if x.MinGroups+x.MaxGroups == 0 {
		x.SpreadBy = ""
	}
	if x.Validate() != nil {
		return nil, nil
	}
	return filled(t, r, name, x, 1+r.IntN(4), 6), x
}

// filled returns clusters of three regions that bindings fill. They have 2 units and up to size-1
// more.
func filled(t *testing.T, r *rand.Rand, policy string, x *model.Binding, clusters, size int) *state.Snapshot {
	t.Helper()
	txn := state.New().Begin(1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config := *coretest.AllPreempt()
	config.Policy = policy
	txn.ConfigWriter().Set(&config)
	must(txn.BindingWriter().Upsert(x))
	for c := range clusters {
		id, free := fmt.Sprint("m", c), int64(2+r.IntN(size))
		must(txn.ClusterWriter().Upsert(&model.Cluster{
			ID: id, Capacity: model.Resources{"cpu": free}, Attributes: map[string]string{"region": fmt.Sprint("r", r.IntN(3))},
		}))
		put := func(b *model.Binding, replicas int) {
			free -= b.Resources["cpu"] * int64(replicas)
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: b.ID + id, Binding: b.Key(), ClusterID: id, Replicas: replicas, Vec: b.TotalAsk(replicas)})
		}
		if x.Replicas > 1 && free >= x.Resources["cpu"] && !x.Duplicated && len(txn.BindingAssignments(x.Key())) == 0 && r.IntN(6) == 0 {
			put(x, 1)
		}
		for n := 0; free > 0 && n < 4; n++ {
			b := &model.Binding{
				Namespace: "default", ID: fmt.Sprint("b", c, n), Priority: int32(r.IntN(5)), Replicas: 1, Resources: model.Resources{"cpu": 1 + r.Int64N(free)},
				ClusterScoped: r.IntN(8) == 0,
			}
			must(txn.BindingWriter().Upsert(b))
			put(b, 1)
		}
	}
	return txn.Commit()
}

// karmadas returns the policies of the test: karmada with and without multiCluster, and with it if
// priorities rank clusters before the number of victims.
func karmadas(t *testing.T) *policy.Set {
	t.Helper()
	versions := []*policy.Version{coretest.Policies().Default()}
	for name, settings := range map[string]map[string]any{
		"one": {}, "several": {"multiCluster": true}, "priority": {"multiCluster": true, "clusters": "priority"},
	} {
		config, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		v, err := policy.NewVersion(policy.Source{
			Name: name, Config: config, Module: policy.Native("sha256:"+name, func() sdk.Policy { return karmada.New() }),
		})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	set, err := policy.NewSet(versions...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// evicting computes the capacity of clusters after some evictions.
type evicting struct {
	run  *evaluation
	gone map[string]bool
}

func (e *evicting) slots(replicas int) (slots []slot) {
	for _, c := range e.run.layout.feasible {
		_, room := e.run.view.capacity(c)
		for _, a := range e.run.Snapshot.ClusterAssignments(c.ID) {
			if e.gone[a.ID] {
				room.Add(&a.Vec)
			}
		}
		slots = append(slots, e.run.layout.slot(c, e.run.binding.FittingReplicas(&room, replicas)))
	}
	return slots
}

// divides reports whether some division of the missing replicas is within the limits,
// on one cluster only or on any number.
func (e *evicting) divides(several bool) (ok bool) {
	missing, x := e.run.binding.Replicas, e.run.layout.limits()
	for _, n := range e.run.layout.on {
		missing -= n
	}
	divisions(e.slots(missing), missing, func(d []slot) { ok = ok || x.within(d) && (several || len(d) == 1) })
	return ok
}

// copies reports whether as many clusters as required hold all replicas, with evictions
// on at most one of them.
func (e *evicting) copies() (ok bool) {
	x, free := e.run.layout.limits(), (&evicting{run: e.run}).slots(e.run.binding.Replicas)
	subsets(e.slots(e.run.binding.Replicas), func(taken []slot) {
		left := 0
		for _, s := range taken {
			at := slices.IndexFunc(free, func(f slot) bool { return f.cluster == s.cluster })
			if s.capacity < e.run.binding.Replicas {
				left = 2
			} else if free[at].capacity < s.capacity {
				left++
			}
		}
		ok = ok || len(taken) > 0 && left <= 1 && x.within(taken)
	})
	return ok
}

// Capacity is claimed if and only if the reference implementation finds victims, and no
// victim is redundant, with and without regions. Without multiCluster, a divided
// binding preempts on one cluster, which has to satisfy its spread limits.
func TestPlan_PreemptsOverRegionsAsReference(t *testing.T) {
	t.Parallel()
	rounds, met := soak.Count(3000, 50_000), map[string]int{}
	set, r := karmadas(t), rand.New(rand.NewPCG(7, 11))
	for range rounds {
		name := []string{"one", "several"}[r.IntN(2)]
		snap, b := regions(t, r, name)
		if snap == nil {
			continue
		}
		eval := &model.Evaluation{ID: "e", Namespace: "default", JobID: "x", Type: model.JobBinding, Priority: b.Priority}
		run, err := newEvaluation(&Input{Policies: set, Eval: eval, Snapshot: snap, Now: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.process(); err != nil {
			t.Fatal(err)
		}
		if len(run.changes.group.Assignments) > 0 || run.result.Waiting == nil {
			continue // there was enough capacity
		}
		e := &evicting{run, map[string]bool{}}
		for c := range snap.Clusters() {
			for a, other := range snap.ClusterWorkload(c.ID) {
				e.gone[a.ID] = other.Priority < b.Priority && !other.ClusterScoped
			}
		}
		possible := func(claims int) bool {
			switch {
			case b.Duplicated:
				return e.copies()
			case claims == 1:
				return e.divides(false)
			}
			return e.divides(name == "several")
		}
		if want := possible(0); want != (len(run.changes.group.Claims) > 0) || want != (len(run.changes.group.Withdrawals) > 0) {
			t.Fatalf("possible %v, plan %+v of %+v: %s", want, run.changes.group, b, run.result.Waiting)
		}
		met[fmt.Sprint(name, b.Duplicated, len(run.changes.group.Claims))]++
		if len(run.changes.group.Claims) == 0 {
			continue
		}
		e.gone = map[string]bool{}
		for _, w := range run.changes.group.Withdrawals {
			e.gone[w.AssignmentID] = true
		}
		if !possible(len(run.changes.group.Claims)) {
			t.Fatalf("victims free too little: %+v of %+v", run.changes.group, b)
		}
		for _, w := range run.changes.group.Withdrawals {
			e.gone[w.AssignmentID] = false
			if possible(len(run.changes.group.Claims)) {
				t.Fatalf("victim %s is redundant: %+v of %+v", w.AssignmentID, run.changes.group, b)
			}
			e.gone[w.AssignmentID] = true
		}
	}
	for _, kind := range []string{"onefalse 0", "onefalse 1", "onetrue 0", "onetrue 1", "onetrue 2", "severalfalse 1", "severalfalse 2"} {
		if met[kind] == 0 && !soak.Quick() {
			t.Errorf("case not covered: %s of %v", kind, met)
		}
	}
}

// planOf returns the evaluation of a binding on several clusters.
func planOf(t *testing.T, set *policy.Set, snap *state.Snapshot) *evaluation {
	t.Helper()
	eval := &model.Evaluation{ID: "e", Namespace: "default", JobID: "x", Type: model.JobBinding, Priority: 5}
	run, err := newEvaluation(&Input{Policies: set, Eval: eval, Snapshot: snap, Now: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.process(); err != nil {
		t.Fatal(err)
	}
	return run
}

// cost returns the victims of a policy by its order: their number, the highest priority and the
// sum, or their number last. The sum counts the distance to the lowest possible priority.
func (e *evaluation) cost(policy string) [3]int {
	number, highest, sum := 0, -1, 0
	for _, w := range e.changes.group.Withdrawals {
		priority := int(e.Snapshot.Binding(e.Snapshot.Assignment(w.AssignmentID).Binding).Priority)
		number, highest, sum = number+1, max(highest, priority), sum+priority+1<<31
	}
	if policy == "priority" {
		return [3]int{highest, sum, number}
	}
	return [3]int{number, highest, sum}
}

// A binding that must be within one region and preempts on several clusters evicts in the region
// with the cheapest victims, as if it were limited to each region in turn. A search over all
// regions together often finds more victims.
func TestPlan_PreemptsInCheapestRegionAsBruteForce(t *testing.T) {
	t.Parallel()
	set, r := karmadas(t), rand.New(rand.NewPCG(13, 17))
	choices, unequal, more := 0, 0, 0
	for range soak.Count(6000, 100_000) {
		name := []string{"several", "priority"}[r.IntN(2)]
		b := &model.Binding{
			Namespace: "default", ID: "x", Priority: 5, Preempts: true, Replicas: 2 + r.IntN(3), Resources: model.Resources{"cpu": 1 + r.Int64N(2)},
			SpreadBy: "region", MaxGroups: 1,
		}
		snap := filled(t, r, name, b, 4+r.IntN(4), 3)
		run := planOf(t, set, snap)
		if len(run.changes.group.Claims) < 2 || len(run.changes.group.Withdrawals) == 0 || len(snap.BindingAssignments(b.Key())) > 0 {
			continue // one cluster or free capacity suffices, or nothing does
		}
		var ways [][3]int
		for k := range 3 {
			limited := *b
			limited.Constraints = []model.Constraint{{Attribute: "region", Operator: model.OpEqual, Value: fmt.Sprint("r", k)}}
			txn := snap.Fork(snap.Index() + 1)
			if err := txn.BindingWriter().Upsert(&limited); err != nil {
				t.Fatal(err)
			}
			if way := planOf(t, set, txn.Snapshot()); len(way.changes.group.Claims) > 0 {
				ways = append(ways, way.cost(name))
			}
		}
		slices.SortFunc(ways, func(x, y [3]int) int { return slices.Compare(x[:], y[:]) })
		if len(ways) == 0 || run.cost(name) != ways[0] {
			t.Fatalf("%s: cost %v, by region %v: %+v", name, run.cost(name), ways, b)
		}
		if len(ways) < 2 {
			continue
		}
		if choices++; ways[0] != ways[1] {
			unequal++
		}
		l := &run.layout
		all, err := search.FindSpread(snap, run.request(l.feasible, b.Replicas), func(offers []model.Vector) bool { return l.canDivide(b.Replicas, offers) })
		if err != nil {
			t.Fatal(err)
		}
		if len(all.Victims) > len(run.changes.group.Withdrawals) {
			more++
		}
	}
	t.Logf("%d choices, %d of unequal regions; a search over all regions finds more victims in %d", choices, unequal, more)
	if more < 5 && !soak.Quick() {
		t.Errorf("%d cases with more victims over all regions: too few", more)
	}
}

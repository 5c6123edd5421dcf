package state_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// plainBindings is the reference for the tables of bindings.
type plainBindings struct {
	bindings    map[model.JobKey]*model.Binding
	assignments map[string]*model.Assignment
	clusters    map[string]*model.Cluster
	claims      map[string]*model.Claim
}

func newPlainBindings() *plainBindings {
	return &plainBindings{
		map[model.JobKey]*model.Binding{}, map[string]*model.Assignment{}, map[string]*model.Cluster{}, map[string]*model.Claim{},
	}
}

func (p *plainBindings) clone() *plainBindings {
	return &plainBindings{
		maps.Clone(p.bindings), maps.Clone(p.assignments), maps.Clone(p.clusters), maps.Clone(p.claims),
	}
}

var bindingClusters = []string{"m1", "m2", "m3"}

func bindingKeys() (keys []model.JobKey) {
	for i := range 4 {
		keys = append(keys, model.JobKey{Namespace: "default", ID: fmt.Sprintf("b%d", i)})
	}
	return keys
}

// write applies one random change to a transaction and to the plain maps.
func (p *plainBindings) write(t *rapid.T, txn *Txn) {
	key := rapid.SampledFrom(bindingKeys()).Draw(t, "key")
	cluster := rapid.SampledFrom(bindingClusters).Draw(t, "cluster")
	id := fmt.Sprintf("%s@%s#%d", key.ID, cluster, rapid.IntRange(0, 1).Draw(t, "n"))
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		b := &model.Binding{Namespace: key.Namespace, ID: key.ID, Replicas: 2, Resources: model.Resources{"cpu": 5, "units": 1}}
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
		p.bindings[key] = b
	case 1:
		txn.BindingWriter().Delete(key)
		if p.bindings[key] != nil {
			for id, c := range p.claims {
				if c.Claimant == key {
					delete(p.claims, id)
				}
			}
		}
		delete(p.bindings, key)
	case 2:
		c := &model.Cluster{ID: cluster, Capacity: model.Resources{"cpu": 100}, Down: rapid.Bool().Draw(t, "down")}
		if err := txn.ClusterWriter().Upsert(c); err != nil {
			t.Fatal(err)
		}
		p.clusters[cluster] = c
	case 3, 4:
		a := &model.Assignment{
			ID: id, Binding: key, ClusterID: cluster, Replicas: 1, Vec: model.Vector{rapid.Int64Range(0, 9).Draw(t, "cpu")},
			Desired: model.DesiredStatus(rapid.IntRange(0, 2).Draw(t, "desired")), Done: rapid.IntRange(0, 3).Draw(t, "done") == 0,
		}
		txn.AssignmentWriter().Upsert(a)
		p.assignments[id] = a
	case 5:
		txn.AssignmentWriter().Delete(id)
		delete(p.assignments, id)
	default:
		claimID := "claim " + id
		if rapid.Bool().Draw(t, "drop") {
			txn.ClaimWriter().Delete(claimID)
			delete(p.claims, claimID)
			return
		}
		c := &model.Claim{ID: claimID, Claimant: key, ClusterID: cluster, Vec: model.Vector{3}, Priority: 5, Expiry: 10}
		txn.ClaimWriter().Upsert(c)
		p.claims[claimID] = c
	}
}

func (p *plainBindings) compare(t *rapid.T, v *View) {
	for _, key := range bindingKeys() {
		if v.Binding(key) != p.bindings[key] {
			t.Fatalf("binding %s is %p, want %p", key, v.Binding(key), p.bindings[key])
		}
	}
	var all []*model.Assignment
	for a := range v.Assignments() {
		all = append(all, a)
		if p.assignments[a.ID] != a {
			t.Fatalf("assignment %s is another", a.ID)
		}
	}
	if len(all) != len(p.assignments) || v.AssignmentCount() != len(all) || v.BindingCount() != len(p.bindings) {
		t.Fatalf("%d assignments of %d, %d bindings of %d", len(all), len(p.assignments), v.BindingCount(), len(p.bindings))
	}
	asker := model.JobKey{Namespace: "default", ID: "b0"}
	for _, id := range bindingClusters {
		if v.Cluster(id) != p.clusters[id] {
			t.Fatalf("cluster %s is another", id)
		}
		var free, soon model.Vector
		if c := p.clusters[id]; c != nil && !c.Down {
			free = c.Avail
			for _, claim := range p.claims {
				if claim.ClusterID == id && claim.Claimant != asker {
					free.Sub(&claim.Vec)
				}
			}
			soon = free
			for _, a := range p.assignments {
				if a.ClusterID == id && !a.Done {
					free.Sub(&a.Vec)
					if a.Desired == model.DesiredRun {
						soon.Sub(&a.Vec)
					}
				}
			}
		}
		if f, s := v.ClusterFreeCapacity(id, asker, 5, 9); f != free || s != soon {
			t.Fatalf("cluster %s has %v and soon %v, want %v and %v", id, f, s, free, soon)
		}
	}
}

// Old snapshots do not change if later transactions write.
func TestBindings_AgainstReference(t *testing.T) {
	t.Parallel()
	checkProperty(t, func(t *rapid.T) {
		s := New()
		type old struct {
			sn *Snapshot
			p  *plainBindings
		}
		var kept []old
		p := newPlainBindings()
		for range rapid.IntRange(1, 6).Draw(t, "transactions") {
			txn := s.Begin(s.Snapshot().Index() + 1)
			before := p.clone()
			for range rapid.IntRange(1, 12).Draw(t, "writes") {
				p.write(t, txn)
			}
			p.compare(t, &txn.View)
			if rapid.IntRange(0, 4).Draw(t, "abort") == 0 {
				txn.Abort()
				p = before
				continue
			}
			kept = append(kept, old{txn.Commit(), p.clone()})
		}
		for _, k := range kept {
			k.p.compare(t, &k.sn.View)
			if err := k.sn.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBindings_ShareTheSpaceOfNamesWithJobs(t *testing.T) {
	t.Parallel()
	txn := New().Begin(1)
	defer txn.Abort()
	if err := txn.JobWriter().Upsert(&model.Job{Namespace: "default", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := txn.BindingWriter().Upsert(&model.Binding{Namespace: "default", ID: "x"}); !errors.Is(err, ErrKeyTaken) {
		t.Errorf("a binding took the key of a job: %v", err)
	}
	if err := txn.BindingWriter().Upsert(&model.Binding{Namespace: "default", ID: "y"}); err != nil {
		t.Fatal(err)
	}
	if err := txn.JobWriter().Upsert(&model.Job{Namespace: "default", ID: "y"}); !errors.Is(err, ErrKeyTaken) {
		t.Errorf("a job took the key of a binding: %v", err)
	}
}

// A victim loses its assignment on that cluster only, and gets an evaluation.
func TestPlan_EvictsFromOneCluster(t *testing.T) {
	t.Parallel()
	txn := New().Begin(1)
	defer txn.Abort()
	for _, id := range []string{"m1", "m2"} {
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 10}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"low", "high"} {
		if err := txn.BindingWriter().Upsert(&model.Binding{Namespace: "default", ID: id, Replicas: 2}); err != nil {
			t.Fatal(err)
		}
	}
	low, high := model.JobKey{Namespace: "default", ID: "low"}, model.JobKey{Namespace: "default", ID: "high"}
	for _, cluster := range []string{"m1", "m2"} {
		txn.AssignmentWriter().Upsert(&model.Assignment{ID: "low@" + cluster, Binding: low, ClusterID: cluster, Replicas: 1, Vec: model.Vector{4}})
	}
	plan := &model.Plan{EvalID: "e", Job: high, Priority: 9, Groups: []model.CommitGroup{{
		Claims:      []*model.Claim{{ID: "c", Claimant: high, ClusterID: "m1", Vec: model.Vector{4}, Priority: 9, Expiry: 100}},
		Withdrawals: []model.Withdrawal{{AssignmentID: "low@m1", By: "c"}},
	}}}
	evals := apply.Plan(txn, 7, plan, []int{0})
	if len(evals) != 1 || evals[0].JobKey() != low || evals[0].Type != model.JobBinding {
		t.Fatalf("evaluations %+v, want one of the victim", evals)
	}
	if a := txn.Assignment("low@m1"); a.Desired != model.DesiredEvict || a.PreemptedBy != "c" || a.EndTime != 7 {
		t.Errorf("the victim is %+v", a)
	}
	if !txn.Assignment("low@m2").Live() {
		t.Error("the victim lost its replicas on another cluster")
	}
	if got := apply.AssignmentEnds(txn.AssignmentWriter(), 8, "low@m1", "nobody"); !slices.Equal(got, []string{"m1"}) || txn.Assignment("low@m1") != nil {
		t.Errorf("room on %v, and the victim is %v", got, txn.Assignment("low@m1"))
	}
	bind := &model.Plan{EvalID: "e2", Job: high, Groups: []model.CommitGroup{{
		Assignments: []*model.Assignment{{ID: "high@m1", Binding: high, ClusterID: "m1", Replicas: 2, Vec: model.Vector{4}}},
	}}}
	apply.Plan(txn, 9, bind, []int{0})
	if txn.Claim("c") != nil || txn.Assignment("high@m1").StartTime != 9 {
		t.Error("a binding that has its place keeps its claim, or did not start")
	}
	if err := txn.Snapshot().Check(); err != nil {
		t.Error(err)
	}
}

// A replaced assignment may have completed meanwhile, and counts: the binding gets
// an evaluation, since it may have too many replicas now and no other trigger would
// remove them.
func TestPlan_EvaluatesBindingWhoseReplacedAssignmentCompleted(t *testing.T) {
	t.Parallel()
	txn := New().Begin(1)
	defer txn.Abort()
	key := model.JobKey{Namespace: "default", ID: "b"}
	for _, id := range []string{"m1", "m2"} {
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 10}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.BindingWriter().Upsert(&model.Binding{Namespace: "default", ID: "b", Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	txn.AssignmentWriter().Upsert(&model.Assignment{ID: "old", Binding: key, ClusterID: "m1", Replicas: 1, Vec: model.Vector{4}})
	plan := &model.Plan{EvalID: "e", Job: key, Groups: []model.CommitGroup{{
		Withdrawals: []model.Withdrawal{{AssignmentID: "old", Reason: "the binding was changed"}},
		Assignments: []*model.Assignment{{ID: "new", Binding: key, ClusterID: "m2", Replicas: 1, Vec: model.Vector{5}}},
	}}}
	apply.AssignmentUpdates(txn, 5, []apply.AssignmentUpdate{{ID: "old", Client: model.ClientComplete}})
	if evals := apply.Plan(txn, 7, plan, []int{0}); len(evals) != 1 || evals[0].JobKey() != key {
		t.Errorf("evaluations %+v, want one of the binding", evals)
	}
	if err := txn.Snapshot().Check(); err != nil {
		t.Error(err)
	}
}

package binding

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// For the state on which an evaluation left a binding waiting, the counts are equal.
func TestRecount_EqualsExplanationOfSameState(t *testing.T) {
	t.Parallel()
	set, r, waiting := karmadas(t), rand.New(rand.NewPCG(3, 5)), 0
	for range 3000 {
		snap, x := regions(t, r, "several")
		if x == nil {
			continue
		}
		eval := &model.Evaluation{ID: "e", Namespace: "default", JobID: "x", Type: model.JobBinding, Priority: x.Priority}
		run, err := newEvaluation(&Input{Policies: set, Eval: eval, Snapshot: snap, Now: 1})
		if err == nil {
			err = run.process()
		}
		if err != nil {
			t.Fatal(err)
		}
		why := run.result.Waiting
		if why == nil || len(run.changes.group.Assignments)+len(run.changes.group.Withdrawals)+len(run.changes.group.Claims) > 0 {
			continue // it changes something, and the state is another one after that
		}
		waiting++
		if again := Recount(snap, x, why, 1); !reflect.DeepEqual(again, why) {
			t.Fatalf("%s\nrecounted: %s", why, again)
		}
	}
	if waiting < 100 {
		t.Errorf("only %d bindings waited", waiting)
	}
}

// Clusters that joined, failed or filled up since the evaluation are counted as they are.
func TestRecount_CountsCurrentClusters(t *testing.T) {
	t.Parallel()
	b := &model.Binding{Namespace: "default", ID: "x", Replicas: 2, Resources: model.Resources{"cpu": 2}}
	then := &model.Explanation{Of: "clusters", Nodes: 1, Exhausted: map[string]int{"cpu": 1}, NoEviction: "the binding's preemptionPolicy is Never"}
	for _, c := range []struct {
		clusters []*model.Cluster
		want     string
	}{
		{
			[]*model.Cluster{{ID: "m1", Capacity: model.Resources{"cpu": 1}}, {ID: "m2", Capacity: model.Resources{"cpu": 9}, Down: true}, {ID: "m3", Capacity: model.Resources{"cpu": 3}}},
			"0 of 3 clusters: 2 lack cpu, 1 is down; no preemption: the binding's preemptionPolicy is Never",
		},
		{nil, "there are no clusters"},
		{[]*model.Cluster{{ID: "m1", Capacity: model.Resources{"cpu": 4}}}, then.String()}, // it is about to be looked at
	} {
		txn := state.New().Begin(1)
		txn.ConfigWriter().Set(coretest.AllPreempt())
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.clusters {
			if err := txn.ClusterWriter().Upsert(m); err != nil {
				t.Fatal(err)
			}
		}
		if got := Recount(txn.Commit(), b, then, 0).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		b = &model.Binding{Namespace: "default", ID: "x", Replicas: 2, Resources: model.Resources{"cpu": 2}}
	}
}

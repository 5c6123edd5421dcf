package state_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
)

// The rules of eviction change with the weight of a namespace, and not with its
// description.
func TestNamespaces_RecordWhenWeightsChange(t *testing.T) {
	store := New()
	for _, c := range []struct {
		name                  string
		weight                float64
		text                  string
		create, modify, rules uint64
	}{
		{"team", 1, "as without an object", 1, 1, 0},
		{"team", 3, "", 1, 2, 2},
		{"team", 3, "described", 1, 3, 2},
		{"other", 1, "", 4, 4, 2},
		{"other", 0.5, "", 4, 5, 5},
		{"team", 1, "", 1, 6, 6},
	} {
		txn := store.Begin(store.Snapshot().Index() + 1)
		txn.NamespaceWriter().Upsert(&model.Namespace{Name: c.name, Weight: c.weight, Description: c.text})
		snap := txn.Commit()
		n := snap.Namespace(c.name)
		if n.CreateIndex != c.create || n.ModifyIndex != c.modify || snap.RulesChangeIndex() != c.rules {
			t.Errorf("index %d: %+v, rules changed at %d; want %+v", snap.Index(), n, snap.RulesChangeIndex(), c)
		}
		if got := snap.NamespaceWeight(c.name); got != c.weight {
			t.Errorf("index %d: weight %v, want %v", snap.Index(), got, c.weight)
		}
	}
	if got := store.Snapshot().NamespaceWeight("unknown"); got != 1 {
		t.Errorf("a namespace without an object has weight %v", got)
	}
}

// Objects that have ended are not in a namespace any more, but those that still use
// capacity are.
func TestObjectsIn_CountsObjectsThatHaveNotEnded(t *testing.T) {
	store := New()
	in := func(namespace string) func(*model.Job) {
		return func(j *model.Job) { j.Namespace = namespace }
	}
	stopped := func(j *model.Job) { j.Stopped = true }
	txn := store.Begin(1)
	no(t, txn.NodeWriter().Upsert(coretest.Node("n1", 100, 100, 0)))
	active := coretest.Job("active").Change(in("team")).Obj()
	ended := coretest.Job("ended").Change(in("team")).Change(stopped).Obj()
	ending := coretest.Job("ending").Change(in("team")).Change(stopped).Obj()
	for _, j := range []*model.Job{active, ended, ending, coretest.Job("elsewhere").Obj()} {
		no(t, txn.JobWriter().Upsert(j))
	}
	gone, stops := coretest.Running("a1", ended, 0, 0, "n1"), coretest.Running("a2", ending, 0, 0, "n1")
	gone.Desired, gone.Client = model.DesiredStop, model.ClientComplete
	stops.Desired = model.DesiredStop
	txn.AllocWriter().Upsert(gone, stops)
	no(t, txn.BindingWriter().Upsert(&model.Binding{Namespace: "team", ID: "bound", Replicas: 1}))
	no(t, txn.BindingWriter().Upsert(&model.Binding{Namespace: "team", ID: "unbound", Replicas: 1, Stopped: true}))
	txn.BudgetWriter().Upsert(&model.Budget{Namespace: "team", Name: "b", Labels: map[string]string{"app": "x"}, MinAvailable: &model.Bound{Number: 1}})
	txn.TokenWriter().Upsert(&model.Token{Accessor: "ci", Namespace: "team", ExpiresAt: 100})
	txn.TokenWriter().Upsert(&model.Token{Accessor: "old", Namespace: "team", ExpiresAt: 10, Hash: [32]byte{1}})
	txn.TokenWriter().Upsert(&model.Token{Accessor: "admin", Hash: [32]byte{2}})
	snap := txn.Commit()
	if got, want := fmt.Sprint(snap.ObjectsIn("team", 50)), "jobs active, ending; binding bound; disruption budget b; token ci"; got != want {
		t.Errorf("objects %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(snap.ObjectsIn("tea", 50)), ""; got != want {
		t.Errorf("objects %s, want %s", got, want)
	}
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

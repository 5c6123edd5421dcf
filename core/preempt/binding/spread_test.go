package binding_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// findSpread searches several clusters, and shrinks bindings if elastic is set.
func findSpread(t *testing.T, snap *state.Snapshot, pending *model.Binding, elastic bool) ([]*model.Cluster, []binding.Victim) {
	t.Helper()
	req := request(t, snap, pending, sdk.Info{Name: "spread", Delta: 1, Ascending: true, MultiCluster: true, Elastic: elastic})
	found, err := binding.FindSpread(snap, req, func(free []model.Vector) bool { return totalFitting(pending, free) >= pending.Replicas })
	if err != nil {
		t.Fatal(err)
	}
	return req.Clusters, found.Victims
}

// fittingAfter returns how many replicas fit once victims have left, if one of them keeps
// some more replicas.
func fittingAfter(snap *state.Snapshot, pending *model.Binding, clusters []*model.Cluster, victims []binding.Victim, keeps string, more int) int {
	free := make([]model.Vector, len(clusters))
	for i, c := range clusters {
		_, free[i] = snap.ClusterFreeCapacity(c.ID, pending.Key(), pending.Priority, 0)
		for _, v := range victims {
			if v.ClusterID != c.ID {
				continue
			}
			if v.ID == keeps {
				v.Keep += more
			}
			freed := v.Freed()
			free[i].Add(&freed)
		}
	}
	return totalFitting(pending, free)
}

// An elastic search over several clusters frees enough, and no replica more. Bindings keep
// their minimum unless they are evicted, and victims are found exactly if some are found
// without shrinking.
func TestFindSpread_ShrinksNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	shrunk := 0
	for range elasticRounds() {
		snap, pending := fullClustersAtRandom(t, r, 2+r.IntN(2))
		clusters, victims := findSpread(t, snap, pending, true)
		_, whole := findSpread(t, snap, pending, false)
		if (len(victims) > 0) != (len(whole) > 0) {
			t.Fatalf("got victims %v, without shrinking %v", ids(victims), ids(whole))
		}
		if len(victims) == 0 {
			continue
		}
		if got := fittingAfter(snap, pending, clusters, victims, "", 0); got < pending.Replicas {
			t.Fatalf("without %v, %d of %d replicas fit", ids(victims), got, pending.Replicas)
		}
		for _, v := range victims {
			b, more := snap.Binding(v.Binding), 1
			switch {
			case v.Keep > 0:
				shrunk++
			case b.MinReplicas > 0: // it could only stay with its minimum
				more = b.MinReplicas
			default:
				more = v.Replicas
			}
			if b.Priority >= pending.Priority || v.Keep != 0 && v.Keep < b.MinReplicas {
				t.Fatalf("binding %+v keeps %d replicas", b, v.Keep)
			}
			if fittingAfter(snap, pending, clusters, victims, v.ID, more) >= pending.Replicas {
				t.Fatalf("binding %+v could keep %d replicas more than %d", b, more, v.Keep)
			}
		}
	}
	if shrunk == 0 {
		t.Error("no binding was shrunk")
	}
}

// The minimum of a binding counts replicas on all clusters together, unless the binding is
// duplicated.
func TestFindSpread_MinimumSpansClusters(t *testing.T) {
	t.Parallel()
	for _, duplicated := range []bool{false, true} {
		txn := state.New().Begin(1)
		elastic := &model.Binding{
			Namespace: "default", ID: "elastic", Priority: 1, Replicas: 6, MinReplicas: 5, Resources: model.Resources{"cpu": 2}, Duplicated: duplicated,
		}
		other := &model.Binding{Namespace: "default", ID: "other", Priority: 2, Replicas: 1, Resources: model.Resources{"cpu": 2}}
		each := 3
		if duplicated {
			elastic.Replicas, elastic.MinReplicas = 3, 2
		}
		pending := &model.Binding{Namespace: "default", ID: "pending", Priority: 9, Preempts: true, Replicas: 2, Resources: model.Resources{"cpu": 2}}
		for _, b := range []*model.Binding{elastic, other, pending} {
			if err := txn.BindingWriter().Upsert(b); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			id := fmt.Sprint("m", i)
			if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": int64(6 + 2*i)}}); err != nil {
				t.Fatal(err)
			}
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: "elastic/" + id, Binding: elastic.Key(), ClusterID: id, Replicas: each, Vec: elastic.TotalAsk(each)})
		}
		txn.AssignmentWriter().Upsert(&model.Assignment{ID: "other", Binding: other.Key(), ClusterID: "m1", Replicas: 1, Vec: other.TotalAsk(1)})
		_, victims := findSpread(t, txn.Commit(), pending, true)
		got := ""
		for _, v := range victims {
			got += fmt.Sprintf("%s keeps %d, ", v.ID, v.Keep)
		}
		want := "elastic/m0 keeps 2, elastic/m1 keeps 2, "
		if !duplicated { // one replica is not enough: the minimum of the lowest leaves
			want = "elastic/m0 keeps 0, "
		}
		if got != want {
			t.Errorf("duplicated %v: got %s; want %s", duplicated, got, want)
		}
	}
}

// Lost work counts from the last checkpoint.
func TestFind_ReportsLostWork(t *testing.T) {
	t.Parallel()
	txn := state.New().Begin(1)
	if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: "m", Capacity: model.Resources{"cpu": 2}}); err != nil {
		t.Fatal(err)
	}
	pending := &model.Binding{Namespace: "default", ID: "pending", Priority: 9, Preempts: true, Replicas: 2, Resources: model.Resources{"cpu": 1}}
	for _, b := range []*model.Binding{
		pending,
		{Namespace: "default", ID: "saves", Replicas: 1, Resources: model.Resources{"cpu": 1}, Checkpoint: 60},
		{Namespace: "default", ID: "saves-not", Replicas: 1, Resources: model.Resources{"cpu": 1}},
	} {
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
		if b != pending {
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: b.ID, Binding: b.Key(), ClusterID: "m", Replicas: 1, Vec: b.TotalAsk(1), StartTime: 20})
		}
	}
	snap := txn.Commit()
	recorded := &recorder{}
	req := request(t, snap, pending, sdk.Info{})
	req.Now, req.Policy = 120, versionOf(t, "recorder", recorded)
	if _, err := binding.Find(snap, req); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(recorded.lost); got != "[40 100]" {
		t.Errorf("got lost work %s, want [40 100]", got)
	}
}

// recorder records the lost work column.
type recorder struct {
	elasticPolicy
	lost []int64
}

func (p *recorder) Info() sdk.Info {
	return sdk.Info{Name: "recorder", Delta: 1, Columns: sdk.BindingColumns | sdk.LostWorkColumn}
}

func (p *recorder) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	if p.lost == nil {
		p.lost = append(p.lost, in.Rows.LostWork...)
	}
	return p.elasticPolicy.PreemptBindings(in, out)
}

// Evicted replicas count as well: if they leave a binding below its minimum, no other
// assignment of it is shrunk.
func TestFindSpread_ShrinksNothingBelowMinimum(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]string{
		5: "a keeps 0, b keeps 3, ",
		6: "a keeps 0, b keeps 0, ",
		7: "a keeps 0, b keeps 0, ",
	} {
		txn := state.New().Begin(1)
		elastic := &model.Binding{
			Namespace: "default", ID: "elastic", Priority: 1, Replicas: 8, MinReplicas: 3, Resources: model.Resources{"cpu": 1},
		}
		pending := &model.Binding{
			Namespace: "default", ID: "pending", Priority: 9, Preempts: true, Replicas: replicas, Resources: model.Resources{"cpu": 1},
		}
		for _, b := range []*model.Binding{elastic, pending} {
			if err := txn.BindingWriter().Upsert(b); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"a", "b"} {
			if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 4}}); err != nil {
				t.Fatal(err)
			}
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: id, Binding: elastic.Key(), ClusterID: id, Replicas: 4, Vec: elastic.TotalAsk(4)})
		}
		_, victims := findSpread(t, txn.Commit(), pending, true)
		got := ""
		for _, v := range victims {
			got += fmt.Sprintf("%s keeps %d, ", v.ID, v.Keep)
		}
		if got != want {
			t.Errorf("for %d replicas got %s; want %s", replicas, got, want)
		}
	}
}

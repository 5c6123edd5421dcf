package state_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Every server applies the entry on its own, so dropped groups depend on the state
// alone. Groups that rely on a dropped group are dropped with it, including earlier
// groups of the same plan.
func TestBatch_DropsGroupsThatRelyOnADroppedGroup(t *testing.T) {
	t.Parallel()
	web := coretest.Job("web").Priority(70).Ask(500, 1, 0).Count(20).Obj()
	other := coretest.Job("other").Priority(70).Ask(500, 1, 0).Count(20).Obj()
	low := coretest.Job("low").Priority(20).Ask(1000, 1, 0).Count(9).Obj()
	store := state.New()
	setUp := store.Begin(1)
	for i := range 5 {
		if err := setUp.NodeWriter().Upsert(coretest.Node(fmt.Sprintf("n%d", i), 1000, 1000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range []*model.Job{web, other, low} {
		if err := setUp.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range []string{"n0", "n1", "n2"} {
		setUp.AllocWriter().Upsert(&model.Allocation{ID: "a" + node, Job: low, Group: low.Groups[0], Index: i, NodeID: node})
	}
	snap := setUp.Commit()
	group := func(id string, j *model.Job, index int, node string, victims ...string) model.CommitGroup {
		g := model.CommitGroup{Placements: []*model.Allocation{{
			ID: id, Job: j, Group: j.Groups[0], Index: index, NodeID: node, Preempted: victims,
		}}}
		for _, v := range victims {
			g.Evictions = append(g.Evictions, model.Eviction{AllocID: v, By: id})
		}
		return g
	}
	planOf := func(j *model.Job, groups ...model.CommitGroup) *model.Plan {
		return &model.Plan{EvalID: "e-" + j.ID, Job: j.Key(), Priority: j.Priority, Groups: groups}
	}
	claim := func(id, node string) model.CommitGroup {
		return model.CommitGroup{Claims: []*model.Claim{{ID: id, Claimant: web.Key(), NodeID: node, Expiry: 1}}}
	}
	first := planOf(web,
		group("w1", web, 1, "n1"),               // leans on the next
		group("w2", web, 2, "n0", "an1", "an0"), // leans on the gang
		model.CommitGroup{ // the gang: one of its nodes goes away
			Placements: []*model.Allocation{group("w3", web, 3, "n3").Placements[0], group("w4", web, 4, "n2").Placements[0]},
			Evictions:  []model.Eviction{{AllocID: "an0", By: "w3"}, {AllocID: "an2", By: "w4"}},
		},
		group("w5", web, 5, "n4"),
		claim("k0", "n2"),
		claim("k3", "n3"),
		claim("k4", "n4"),
	)
	second := planOf(other, group("o0", other, 0, "n2"), group("o1", other, 1, "n4"))
	batch := apply.Batch{Plans: []apply.BatchPlan{
		{Plan: first, Groups: []int{0, 1, 2, 3, 4, 5, 6}}, {Plan: second, Groups: []int{0, 1}},
	}}

	txn := snap.Fork(100)
	if _, dropped := batch.Apply(txn); len(dropped) > 0 {
		t.Fatalf("with all nodes there, dropped %v", dropped)
	}
	txn = snap.Fork(100)
	down := model.NodeDown
	apply.NodeStatus(txn, 0, []string{"n3"}, apply.NodeChange{Status: &down})
	_, dropped := batch.Apply(txn)
	want := []apply.DroppedGroup{{Plan: 0, Group: 0}, {Plan: 0, Group: 1}, {Plan: 0, Group: 2}, {Plan: 0, Group: 4}, {Plan: 0, Group: 5}, {Plan: 1, Group: 0}}
	if !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
	for _, pos := range txn.NodeOrder() {
		if free := txn.Chunk(0).Free(model.CPU)[pos]; free < 0 {
			t.Errorf("node %s is over capacity by %d", txn.NodeAt(pos).ID, -free)
		}
	}
	if txn.Alloc("w5") == nil || txn.Alloc("o1") == nil || txn.Claim("k4") == nil || txn.Alloc("w4") != nil {
		t.Error("the rest was not written, or the gang was")
	}
	if txn.DirtyIndex(web.Key()) != 100 || txn.DirtyIndex(other.Key()) != 100 {
		t.Error("the jobs that lost a group are not looked at again")
	}
}

// A plan replaces an instance that has completed since the plan was verified. The completed work is
// not repeated, also if the stop is in another group. Instances of failed or running allocations are
// replaced. Servers of an earlier cluster version replace all of them.
func TestBatch_DoesNotReplaceCompletedInstances(t *testing.T) {
	t.Parallel()
	for _, version := range []uint32{apply.RerunFrom - 1, apply.RerunFrom} {
		job := coretest.Job("batch").Type(model.JobBatch).Ask(1, 1, 0).Count(4).Obj()
		store := state.New()
		setUp := store.Begin(1)
		setUp.ConfigWriter().SetMeta(state.Meta{Version: version})
		for _, id := range []string{"n0", "n1"} {
			if err := setUp.NodeWriter().Upsert(coretest.Node(id, 1000, 1000, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if err := setUp.JobWriter().Upsert(job); err != nil {
			t.Fatal(err)
		}
		plan := &model.Plan{EvalID: "e", Job: job.Key(), Priority: job.Priority}
		for i, status := range []model.ClientStatus{model.ClientComplete, model.ClientComplete, model.ClientFailed, model.ClientRunning} {
			old := &model.Allocation{ID: fmt.Sprint("a", i), Job: job, Group: job.Groups[0], Index: i, NodeID: "n0", Client: status}
			setUp.AllocWriter().Upsert(old)
			next := *old
			next.ID, next.NodeID, next.Client, next.Incarnation = fmt.Sprint("b", i), "n1", model.ClientPending, 1
			place := model.CommitGroup{Placements: []*model.Allocation{&next}}
			stop := []model.Stop{{AllocID: old.ID, Reason: "its node is draining"}}
			if i == 0 {
				place.Stops = stop
			} else {
				plan.Groups = append(plan.Groups, model.CommitGroup{Stops: stop})
			}
			plan.Groups = append(plan.Groups, place)
		}
		setUp.Commit()
		groups := make([]int, len(plan.Groups))
		for i := range groups {
			groups[i] = i
		}
		txn := store.Begin(2)
		_, dropped := (&apply.Batch{Now: 9, Plans: []apply.BatchPlan{{Plan: plan, Groups: groups}}}).Apply(txn)
		snap := txn.Commit()
		var placed, done []string
		for a := range snap.Allocs() {
			if a.NodeID == "n1" {
				placed = append(placed, a.ID)
			}
			if a.IsDone(snap.Job(job.Key())) {
				done = append(done, a.ID)
			}
		}
		want := [3]string{"[b0 b1 b2 b3]", "[]", "[]"}
		if version >= apply.RerunFrom {
			want = [3]string{"[b2 b3]", "[a0 a1]", "[{0 0} {0 2}]"}
		}
		if got := [3]string{fmt.Sprint(placed), fmt.Sprint(done), fmt.Sprint(dropped)}; got != want {
			t.Errorf("version %d: placed, done, dropped: %v, want %v", version, got, want)
		}
	}
}

// If the state is restored from a snapshot, an allocation may have been stopped since. The report of
// its stop, which states why, does not complete it.
func TestClientUpdates_StopOfRestoredAllocationIsNoCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version uint32
		text    string
		desired model.DesiredStatus
		want    model.ClientStatus
		evals   int
	}{
		{apply.RerunFrom, "stopped", model.DesiredRun, model.ClientFailed, 1},
		{apply.RerunFrom, "", model.DesiredRun, model.ClientComplete, 0},
		{apply.RerunFrom, "stopped", model.DesiredStop, model.ClientComplete, 0},
		{apply.RerunFrom - 1, "stopped", model.DesiredRun, model.ClientComplete, 0},
	} {
		txn := state.New().Begin(1)
		txn.ConfigWriter().SetMeta(state.Meta{Version: c.version})
		job := coretest.Job("batch").Type(model.JobBatch).Obj()
		if err := txn.NodeWriter().Upsert(coretest.Node("n0", 1000, 1000, 0)); err != nil {
			t.Fatal(err)
		}
		if err := txn.JobWriter().Upsert(job); err != nil {
			t.Fatal(err)
		}
		txn.AllocWriter().Upsert(&model.Allocation{ID: "a", Job: job, Group: job.Groups[0], NodeID: "n0", Desired: c.desired})
		evals := apply.ClientUpdates(txn, 9, []apply.ClientUpdate{{AllocID: "a", Status: model.ClientComplete, Text: c.text}})
		if got := txn.Alloc("a").Client; got != c.want || len(evals) != c.evals {
			t.Errorf("%+v: %v, %d evaluations", c, got, len(evals))
		}
		txn.Abort()
	}
}

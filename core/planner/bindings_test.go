package planner_test

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
)

var bindKey = model.JobKey{Namespace: "default", ID: "asker"}

// bindWorld is a cluster of capacity 10 with a low and a high binding that hold 4
// each, and a preemptor of priority 5.
func bindWorld(t *testing.T) *state.Snapshot {
	t.Helper()
	txn := state.New().Begin(1)
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(txn.ClusterWriter().Upsert(&model.Cluster{ID: "m1", Capacity: model.Resources{"cpu": 10}}))
	fail(txn.ClusterWriter().Upsert(&model.Cluster{ID: "down", Capacity: model.Resources{"cpu": 10}, Down: true}))
	for id, priority := range map[string]int32{"low": 1, "high": 5, "asker": 5, "scoped": 0} {
		b := &model.Binding{
			Namespace: "default", ID: id, Priority: priority, Replicas: 3, Resources: model.Resources{"cpu": 2},
			Preempts: true, ClusterScoped: id == "scoped",
		}
		fail(txn.BindingWriter().Upsert(b))
		if id == "low" || id == "high" {
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: id, Binding: b.Key(), ClusterID: "m1", Replicas: 2, Vec: b.TotalAsk(2)})
		}
		if id == "scoped" {
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: id, Binding: b.Key(), ClusterID: "m1", Replicas: 0})
		}
	}
	return txn.Commit()
}

func assigning(cluster string, replicas int) *model.Assignment {
	return &model.Assignment{ID: "new", Binding: bindKey, ClusterID: cluster, Replicas: replicas, Vec: model.Vector{int64(2 * replicas)}}
}

func claiming(cpu int64) *model.Claim {
	return &model.Claim{ID: "c", Claimant: bindKey, ClusterID: "m1", Vec: model.Vector{cpu}, Priority: 5, Expiry: 100}
}

func TestVerify_Bindings(t *testing.T) {
	t.Parallel()
	snap := bindWorld(t)
	evict := func(id string) []model.Withdrawal { return []model.Withdrawal{{AssignmentID: id, By: "c"}} }
	for name, c := range map[string]struct {
		group model.CommitGroup
		want  string // "": it holds
	}{
		"there is room":                       {model.CommitGroup{Assignments: []*model.Assignment{assigning("m1", 1)}}, ""},
		"there is not":                        {model.CommitGroup{Assignments: []*model.Assignment{assigning("m1", 2)}}, "lacks 2 of cpu"},
		"more than it wants":                  {model.CommitGroup{Assignments: []*model.Assignment{assigning("m1", 4)}}, "lacks"},
		"the cluster is down":                 {model.CommitGroup{Assignments: []*model.Assignment{assigning("down", 1)}}, "the cluster is down"},
		"the cluster is gone":                 {model.CommitGroup{Assignments: []*model.Assignment{assigning("m9", 1)}}, "the cluster is gone"},
		"a victim makes room":                 {model.CommitGroup{Claims: []*model.Claim{claiming(6)}, Withdrawals: evict("low")}, ""},
		"it makes too little":                 {model.CommitGroup{Claims: []*model.Claim{claiming(7)}, Withdrawals: evict("low")}, "lacks 1 of cpu"},
		"an equal priority cannot be evicted": {model.CommitGroup{Claims: []*model.Claim{claiming(6)}, Withdrawals: evict("high")}, "is not below 5"},
		"nor what is cluster-scoped": {
			model.CommitGroup{Claims: []*model.Claim{claiming(2)}, Withdrawals: evict("scoped")}, "cluster-scoped",
		},
		"eviction without a claim": {model.CommitGroup{Withdrawals: evict("low")}, "serves no claim"},
		"a victim that is gone":    {model.CommitGroup{Claims: []*model.Claim{claiming(2)}, Withdrawals: evict("gone")}, ""},
	} {
		t.Run(name, func(t *testing.T) { verifyGroup(t, snap, c.group, c.want) })
	}
}

// verifyGroup verifies a plan of one group. It must hold if want is "", and otherwise be
// rejected for a reason that contains want.
func verifyGroup(t *testing.T, snap *state.Snapshot, group model.CommitGroup, want string) {
	t.Helper()
	plan := &model.Plan{EvalID: "e", Job: bindKey, Priority: 5, Groups: []model.CommitGroup{group}}
	var scratch planner.Scratch
	v, err := planner.Verify(snap, plan, 1, nil, &scratch)
	switch {
	case err != nil:
		t.Fatal(err)
	case want == "" && len(v.Committed) != 1:
		t.Errorf("rejected: %+v", v.Rejected)
	case want != "" && (len(v.Rejected) != 1 || !strings.Contains(v.Rejected[0].Reason, want)):
		t.Errorf("%+v, want a rejection that says %q", v.Rejected, want)
	}
}

// The parts of a group are committed together, so they must fit together. Each of these
// fits by itself.
func TestVerify_ChecksPartsOfGroupTogether(t *testing.T) {
	t.Parallel()
	snap := bindWorld(t) // on m1, 2 of 10 are free; a replica requires 2
	assign := func(id string) *model.Assignment {
		a := assigning("m1", 1)
		a.ID = id
		return a
	}
	claim := func(id string) *model.Claim {
		c := claiming(2)
		c.ID = id
		return c
	}
	for name, c := range map[string]struct {
		group model.CommitGroup
		want  string
	}{
		"one assignment":            {model.CommitGroup{Assignments: []*model.Assignment{assign("a")}}, ""},
		"two assignments":           {model.CommitGroup{Assignments: []*model.Assignment{assign("a"), assign("b")}}, "lacks 2 of cpu"},
		"one claim":                 {model.CommitGroup{Claims: []*model.Claim{claim("a")}}, ""},
		"two claims":                {model.CommitGroup{Claims: []*model.Claim{claim("a"), claim("b")}}, "lacks 2 of cpu"},
		"an assignment and a claim": {model.CommitGroup{Assignments: []*model.Assignment{assign("a")}, Claims: []*model.Claim{claim("b")}}, "lacks 2 of cpu"},
	} {
		t.Run(name, func(t *testing.T) { verifyGroup(t, snap, c.group, c.want) })
	}
}

// If the replaced assignment has completed meanwhile, the plan would leave the
// binding with both.
func TestVerify_CountsCompletedWithdrawals(t *testing.T) {
	t.Parallel()
	txn := state.New().Begin(1)
	for _, id := range []string{"m1", "m2"} {
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 10}}); err != nil {
			t.Fatal(err)
		}
	}
	b := &model.Binding{Namespace: "default", ID: bindKey.ID, Priority: 5, Replicas: 1, Resources: model.Resources{"cpu": 2}}
	if err := txn.BindingWriter().Upsert(b); err != nil {
		t.Fatal(err)
	}
	for _, done := range []bool{false, true} {
		txn.AssignmentWriter().Upsert(&model.Assignment{ID: "old", Binding: bindKey, ClusterID: "m2", Replicas: 1, Vec: model.Vector{1}, Done: done})
		plan := &model.Plan{EvalID: "e", Job: bindKey, Priority: 5, Groups: []model.CommitGroup{{
			Withdrawals: []model.Withdrawal{{AssignmentID: "old"}}, Assignments: []*model.Assignment{assigning("m1", 1)},
		}}}
		var scratch planner.Scratch
		v, err := planner.Verify(txn.Snapshot(), plan, 1, nil, &scratch)
		if err != nil || len(v.Rejected) == 1 != done {
			t.Errorf("done: %t; rejected: %+v, %v", done, v.Rejected, err)
		}
	}
	txn.Abort()
}

func TestVerify_RefusesMalformedPlansOfBindings(t *testing.T) {
	t.Parallel()
	snap := bindWorld(t)
	for want, groups := range map[string][]model.CommitGroup{
		"one group":                     {{Assignments: []*model.Assignment{assigning("m1", 1)}}, {}},
		"of 0 replicas":                 {{Assignments: []*model.Assignment{assigning("m1", 0)}}},
		"names a node":                  {{Claims: []*model.Claim{{ID: "c", Claimant: bindKey, ClusterID: "m1", NodeID: "n"}}}},
		"of default/low":                {{Withdrawals: []model.Withdrawal{{AssignmentID: "low"}}}},
		"both allocations and bindings": {{Assignments: []*model.Assignment{assigning("m1", 1)}, Stops: []model.Stop{{AllocID: "a"}}}},
		"listed twice":                  {{Assignments: []*model.Assignment{assigning("m1", 1), assigning("m1", 1)}}},
		"names no assignment":           {{Withdrawals: []model.Withdrawal{{}}}},
	} {
		plan := &model.Plan{EvalID: "e", Job: bindKey, Priority: 5, Groups: groups}
		var scratch planner.Scratch
		if _, err := planner.Verify(snap, plan, 1, nil, &scratch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a fault that says %q", err, want)
		}
	}
}

// A shrunk binding retains its minimum after all withdrawals of the plan: each of
// them alone would leave enough.
func TestVerify_MinReplicasAfterTheWholePlan(t *testing.T) {
	t.Parallel()
	txn := state.New().Begin(1)
	low := &model.Binding{Namespace: "default", ID: "low", Priority: 1, Replicas: 8, MinReplicas: 3, Resources: model.Resources{"cpu": 2}}
	asker := &model.Binding{Namespace: "default", ID: bindKey.ID, Priority: 5, Replicas: 8, Preempts: true, Resources: model.Resources{"cpu": 2}}
	for _, b := range []*model.Binding{low, asker} {
		if err := txn.BindingWriter().Upsert(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"m1", "m2"} {
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"cpu": 8}}); err != nil {
			t.Fatal(err)
		}
		txn.AssignmentWriter().Upsert(&model.Assignment{ID: id, Binding: low.Key(), ClusterID: id, Replicas: 4, Vec: low.TotalAsk(4)})
	}
	snap := txn.Commit()
	for keep, want := range map[[2]int]string{
		{0, 4}:  "4 of its 4 replicas were to stay",
		{0, -1}: "-1 of its 4 replicas were to stay",
		{0, 3}:  "",
		{1, 2}:  "",
		{0, 2}:  "2 replicas would stay, and its minReplicas is 3",
		{1, 1}:  "2 replicas would stay, and its minReplicas is 3",
		{2, 0}:  "2 replicas would stay, and its minReplicas is 3",
		{0, 0}:  "", // evicted whole
	} {
		g := model.CommitGroup{}
		for i, id := range []string{"m1", "m2"} {
			g.Claims = append(g.Claims, &model.Claim{
				ID: id, Claimant: bindKey, ClusterID: id, Vec: model.Vector{int64(8 - 2*max(0, keep[i]))}, Priority: 5, Expiry: 100,
			})
			g.Withdrawals = append(g.Withdrawals, model.Withdrawal{AssignmentID: id, Remaining: keep[i], By: id})
		}
		plan := &model.Plan{EvalID: "e", Job: bindKey, Priority: 5, Groups: []model.CommitGroup{g}}
		var scratch planner.Scratch
		v, err := planner.Verify(snap, plan, 1, nil, &scratch)
		switch {
		case err != nil:
			t.Fatal(err)
		case want == "" && len(v.Committed) != 1:
			t.Errorf("keeping %v is rejected: %+v", keep, v.Rejected)
		case want != "" && (len(v.Rejected) != 1 || !strings.Contains(v.Rejected[0].Reason, want)):
			t.Errorf("keeping %v: %+v, want a rejection that says %q", keep, v.Rejected, want)
		}
	}
}

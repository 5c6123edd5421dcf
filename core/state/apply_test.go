package state_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

const now = int64(1_000)

// preempted returns a seeded store with jobs low0 and low1 on both nodes, and a job
// high.
func preempted(t *testing.T) (*Store, *model.Job) {
	t.Helper()
	s := seeded(t)
	txn := s.Begin(2)
	for _, j := range []*model.Job{jobOf("low0", 20), jobOf("low1", 30), jobOf("high", 90)} {
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		for k := range 2 {
			txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("v%d%d", i, k), fmt.Sprintf("low%d", k), fmt.Sprintf("n%d", i)))
		}
	}
	sn := txn.Commit()
	return s, sn.Job(keyOf("high"))
}

func placement(id string, j *model.Job, node string, victims ...string) *model.Allocation {
	return &model.Allocation{ID: id, Job: j, Group: j.Groups[0], NodeID: node, EvalID: "e-high", Preempted: victims}
}

func planOf(j *model.Job, groups ...model.CommitGroup) *model.Plan {
	return &model.Plan{EvalID: "e-high", Job: j.Key(), Priority: j.Priority, Groups: groups}
}

func checked(t *testing.T, txn *Txn) *Snapshot {
	t.Helper()
	sn := txn.Commit()
	if err := sn.Check(); err != nil {
		t.Fatal(err)
	}
	return sn
}

func triggers(evals []*model.Evaluation) []string {
	var out []string
	for _, e := range evals {
		out = append(out, fmt.Sprintf("%s %s %d %s %s", e.JobKey(), e.Type, e.Priority, e.TriggeredBy, e.Previous))
	}
	return out
}

func TestPlan_EvictsAndDerivesFollowUpsInOneEntry(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	place := placement("p0", high, "n0", "v00", "v01")
	plan := planOf(high, model.CommitGroup{
		Placements: []*model.Allocation{place},
		Evictions:  []model.Eviction{{AllocID: "v01", By: "p0"}, {AllocID: "v00", By: "p0"}},
	})
	txn := s.Begin(3)
	evals := apply.Plan(txn, now, plan, []int{0})
	sn := checked(t, txn)

	want := []string{"default/low0 service 20 preemption e-high", "default/low1 service 30 preemption e-high"}
	if d := cmp.Diff(want, triggers(evals)); d != "" {
		t.Error(d)
	}
	for _, e := range evals {
		if e.ID != apply.FollowUpID(3, e.JobKey()) || e.CreateTime != now || e.CreateIndex != 3 || sn.Eval(e.ID) != e {
			t.Errorf("evaluation %+v", e)
		}
		if sn.DirtyIndex(e.JobKey()) != 3 {
			t.Errorf("%s is not dirty", e.JobKey())
		}
	}
	p := sn.Alloc("p0")
	if p == place || p.CreateTime != now || p.CreateIndex != 3 || p.ModifyIndex != 3 || !slices.Equal(p.Preempted, []string{"v00", "v01"}) {
		t.Errorf("placement %+v", p)
	}
	if place.CreateIndex != 0 || place.CreateTime != 0 {
		t.Error("the plan itself was changed")
	}
	v := sn.Alloc("v00")
	if v.Desired != model.DesiredEvict || v.PreemptedBy != "p0" || v.DesiredReason != "preempted by p0" || v.ModifyIndex != 3 || v.CreateIndex != 2 {
		t.Errorf("victim %+v", v)
	}
	if sn.DirtyIndex(high.Key()) != 2 {
		t.Error("the preemptor's job is dirty for no reason")
	}
}

func TestPlan_DropsGroupsOnIneligibleNodes(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*Txn){
		"down":       func(t *Txn) { apply.NodeStatus(t, now, []string{"n0"}, apply.NodeChange{Status: new(model.NodeDown)}) },
		"draining":   func(t *Txn) { apply.NodeStatus(t, now, []string{"n0"}, apply.NodeChange{Drain: new(true)}) },
		"ineligible": func(t *Txn) { apply.NodeStatus(t, now, []string{"n0"}, apply.NodeChange{Ineligible: new(true)}) },
		"deleted":    func(t *Txn) { t.NodeWriter().Delete("n0") },
	} {
		t.Run(name, func(t *testing.T) {
			s, high := preempted(t)
			txn := s.Begin(3)
			gone(txn)
			txn.Commit()
			txn = s.Begin(4)
			evals := apply.Plan(txn, now, planOf(high,
				model.CommitGroup{Placements: []*model.Allocation{placement("p0", high, "n0")}, Evictions: []model.Eviction{{AllocID: "v00", By: "p0"}}},
				model.CommitGroup{Claims: []*model.Claim{{ID: "c0", Claimant: high.Key(), NodeID: "n0"}}},
				model.CommitGroup{Placements: []*model.Allocation{placement("p1", high, "n1")}, Evictions: []model.Eviction{{AllocID: "v10", By: "p1"}}},
				model.CommitGroup{Stops: []model.Stop{{AllocID: "v01", Reason: "lost", Lost: true}}},
			), []int{0, 1, 2, 3})
			sn := checked(t, txn)
			if sn.Alloc("p0") != nil || sn.Claim("c0") != nil || !sn.Alloc("v00").Live() {
				t.Error("a group was applied to a node that is gone")
			}
			if sn.Alloc("p1") == nil || sn.Alloc("v10").Live() || sn.Alloc("v01").Client != model.ClientLost {
				t.Error("the other groups were dropped, too")
			}
			if sn.DirtyIndex(high.Key()) != 4 {
				t.Error("the job is not dirty")
			}
			if len(evals) != 1 || evals[0].JobID != "low0" {
				t.Errorf("evaluations %v", triggers(evals))
			}
		})
	}
}

func TestPlan_WritesCommittedGroupsOnly(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	txn := s.Begin(3)
	apply.Plan(txn, now, planOf(high,
		model.CommitGroup{Placements: []*model.Allocation{placement("p0", high, "n0")}},
		model.CommitGroup{Placements: []*model.Allocation{placement("p1", high, "n1")}},
	), []int{1})
	sn := checked(t, txn)
	if sn.Alloc("p0") != nil || sn.Alloc("p1") == nil {
		t.Error("a rejected group was applied, or a committed one was not")
	}
}

// Several plans share an entry, and may evict from the same job.
func TestPlan_OneFollowUpForAllPlansOfAnEntry(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	group := func(id, node, victim string) model.CommitGroup {
		return model.CommitGroup{
			Placements: []*model.Allocation{placement(id, high, node)}, Evictions: []model.Eviction{{AllocID: victim, By: id}},
		}
	}
	txn := s.Begin(3)
	first := apply.Plan(txn, now, planOf(high, group("p0", "n0", "v00")), []int{0})
	second := apply.Plan(txn, now, planOf(high, group("p1", "n1", "v10")), []int{0})
	sn := checked(t, txn)
	if len(first) != 1 || len(second) != 0 || len(sn.EvalsOfJob(keyOf("low0"))) != 1 {
		t.Errorf("%v, then %v", triggers(first), triggers(second))
	}
}

func TestPlan_SkipsVictimsThatEnded(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	txn := s.Begin(3)
	apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: "v00", Status: model.ClientComplete}})
	txn.EvalWriter().Delete(apply.FollowUpID(3, keyOf("low0")))
	txn.Commit()
	txn = s.Begin(4)
	evals := apply.Plan(txn, now, planOf(high, model.CommitGroup{
		Placements: []*model.Allocation{placement("p0", high, "n0")}, Evictions: []model.Eviction{{AllocID: "v00", By: "p0"}, {AllocID: "gone", By: "p0"}},
	}), []int{0})
	sn := checked(t, txn)
	if v := sn.Alloc("v00"); v.PreemptedBy != "" || v.Desired != model.DesiredRun || len(evals) != 0 {
		t.Errorf("victim %+v, evaluations %v", v, triggers(evals))
	}
}

func TestPlan_StopsRetainTheirReason(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	txn := s.Begin(3)
	apply.Plan(txn, now, planOf(high, model.CommitGroup{Evictions: []model.Eviction{{AllocID: "v00", By: "c"}}}), []int{0})
	txn.Commit()
	txn = s.Begin(4)
	apply.Plan(txn, now, planOf(high, model.CommitGroup{Stops: []model.Stop{
		{AllocID: "v00", Reason: "node lost", Lost: true}, {AllocID: "v01", Reason: "moved"}, {AllocID: "gone"},
	}}), []int{0})
	sn := checked(t, txn)
	if v := sn.Alloc("v00"); v.Desired != model.DesiredEvict || v.Client != model.ClientLost || v.PreemptedBy != "c" {
		t.Errorf("lost victim %+v", v)
	}
	if v := sn.Alloc("v01"); v.Desired != model.DesiredStop || v.DesiredReason != "moved" || v.Client != model.ClientPending {
		t.Errorf("moved %+v", v)
	}
}

// The node may report between the plan and its commit.
func TestPlan_UpdateRetainsClientStatus(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	stale := *s.Snapshot().Alloc("v00")
	txn := s.Begin(3)
	apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: "v00", Status: model.ClientRunning, Started: true, StartTime: 77}})
	next := jobOf("low0", 25)
	if err := txn.JobWriter().Upsert(next); err != nil {
		t.Fatal(err)
	}
	txn.Commit()
	stale.Job, stale.Group = next, next.Groups[0]
	txn = s.Begin(4)
	apply.Plan(txn, now, planOf(high, model.CommitGroup{Updates: []*model.Allocation{&stale}}), []int{0})
	sn := checked(t, txn)
	if a := sn.Alloc("v00"); a.Job != next || a.Client != model.ClientRunning || a.StartTime != 77 || a.CreateIndex != 2 {
		t.Errorf("updated %+v", a)
	}
}

func TestPlan_PlacementReleasesClaimsOfItsJob(t *testing.T) {
	t.Parallel()
	s, high := preempted(t)
	txn := s.Begin(3)
	for _, c := range []model.Claim{
		{ID: "mine-here", Claimant: high.Key(), NodeID: "n0"},
		{ID: "mine-there", Claimant: high.Key(), NodeID: "n1"},
		{ID: "other", Claimant: keyOf("low0"), NodeID: "n0"},
	} {
		txn.ClaimWriter().Upsert(&c)
	}
	txn.Commit()
	txn = s.Begin(4)
	apply.Plan(txn, now, planOf(high, model.CommitGroup{
		Placements: []*model.Allocation{placement("p0", high, "n0")},
		Claims:     []*model.Claim{{ID: "next", Claimant: high.Key(), NodeID: "n0"}},
	}), []int{0})
	sn := checked(t, txn)
	var left []string
	for c := range sn.Claims() {
		left = append(left, c.ID)
	}
	if d := cmp.Diff([]string{"mine-there", "next", "other"}, left); d != "" {
		t.Error(d)
	}
}

func TestNodeStatus_OneEvaluationForEachJob(t *testing.T) {
	t.Parallel()
	s := New()
	txn := s.Begin(1)
	var nodes []string
	for i := range 100 {
		nodes = append(nodes, fmt.Sprintf("n%02d", i))
		if err := txn.NodeWriter().Upsert(&model.Node{ID: nodes[i], Datacenter: "dc1"}); err != nil {
			t.Fatal(err)
		}
	}
	system := func(id string, change func(*model.Job)) {
		j := jobOf(id, 60)
		j.Type = model.JobSystem
		change(j)
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
	}
	system("sys-all", func(*model.Job) {})
	system("sys-dc1", func(j *model.Job) { j.Datacenters = []string{"dc2", "dc1"}; j.Type = model.JobSysBatch })
	system("sys-dc2", func(j *model.Job) { j.Datacenters = []string{"dc2"} })
	system("sys-stopped", func(j *model.Job) { j.Stopped = true })
	for _, id := range []string{"web", "stopping", "ended", "elsewhere"} {
		if err := txn.JobWriter().Upsert(jobOf(id, 50)); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("web%d", i), "web", n))
	}
	stop := allocOf(txn, "stop", "stopping", "n00")
	stop.Desired = model.DesiredStop
	end := allocOf(txn, "end", "ended", "n00")
	end.Client = model.ClientComplete
	txn.AllocWriter().Upsert(stop, end)
	txn.Commit()

	txn = s.Begin(2)
	evals := apply.NodeStatus(txn, now, append(nodes, "unknown"), apply.NodeChange{Status: new(model.NodeDown)})
	again := apply.NodeStatus(txn, now, nodes, apply.NodeChange{Status: new(model.NodeDown)})
	sn := checked(t, txn)
	want := []string{
		"default/stopping service 50 node-update ", "default/sys-all system 60 node-update ",
		"default/sys-dc1 sysbatch 60 node-update ", "default/web service 50 node-update ",
	}
	if d := cmp.Diff(want, triggers(evals)); d != "" {
		t.Error(d)
	}
	if again != nil {
		t.Errorf("nothing changed, but %v", triggers(again))
	}
	if sn.DirtyIndex(keyOf("web")) != 2 || sn.DirtyIndex(keyOf("sys-dc2")) != 1 || sn.DirtyIndex(keyOf("ended")) != 1 {
		t.Error("wrong jobs are dirty")
	}
	if n := sn.Node("n07"); n.Status != model.NodeDown || n.ModifyIndex != 2 || n.CreateIndex != 1 || sn.Chunk(0).Eligible() != 0 {
		t.Errorf("node %+v", n)
	}
	if !sn.Alloc("web7").Live() {
		t.Error("apply lost an allocation, which is for the scheduler to decide")
	}

	txn = s.Begin(3)
	evals = apply.NodeStatus(txn, now, nodes[:1], apply.NodeChange{Status: new(model.NodeReady), Drain: new(true)})
	txn.Commit()
	if len(evals) != 4 || evals[0].TriggeredBy != model.TriggerNodeDrain {
		t.Errorf("drain: %v", triggers(evals))
	}
}

func TestNodes_RegistersAllOrNone(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	txn := s.Begin(2)
	sys := jobOf("sys", 60)
	sys.Type = model.JobSystem
	if err := txn.JobWriter().Upsert(sys); err != nil {
		t.Fatal(err)
	}
	txn.Commit()

	tooMany := model.Resources{}
	for i := range model.MaxDimensions {
		tooMany[fmt.Sprintf("r%02d", i)] = 1
	}
	txn = s.Begin(3)
	if _, err := apply.Nodes(txn, now, &model.Node{ID: "n8"}, &model.Node{ID: "n9", Capacity: tooMany}); err == nil {
		t.Error("17 resources are accepted")
	}
	if txn.Node("n8") != nil || txn.Dims().Len() != 4 {
		t.Error("half of it was written")
	}
	evals, err := apply.Nodes(txn, now, &model.Node{ID: "n0", Datacenter: "dc1"}, &model.Node{ID: "n2", Datacenter: "dc1"})
	if err != nil {
		t.Fatal(err)
	}
	checked(t, txn)
	want := []string{"default/j0 service 20 node-update ", "default/sys system 60 node-update "}
	if d := cmp.Diff(want, triggers(evals)); d != "" {
		t.Error(d)
	}

	txn = s.Begin(4)
	evals = apply.NodeDelete(txn, now, []string{"n0", "n2", "n3"})
	sn := checked(t, txn)
	if d := cmp.Diff(want, triggers(evals)); d != "" {
		t.Error(d)
	}
	if sn.NodeCount() != 1 || len(sn.AppendNodeAllocs(nil, "n0")) != 1 {
		t.Error("allocations of a deleted node must be found, so that they can be lost")
	}
}

func TestClientUpdates_TerminalStatusIsFinal(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	txn := s.Begin(2)
	batch := jobOf("batch", 40)
	batch.Type = model.JobBatch
	if err := txn.JobWriter().Upsert(batch); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("b%d", i), "batch", "n1"))
	}
	stopped := *txn.Alloc("b2")
	stopped.Desired = model.DesiredEvict
	txn.AllocWriter().Upsert(&stopped)
	txn.Commit()

	txn = s.Begin(3)
	evals := apply.ClientUpdates(txn, now, []apply.ClientUpdate{
		{AllocID: "b0", Status: model.ClientRunning, Started: true, StartTime: 5},
		{AllocID: "b1", Status: model.ClientComplete},
		{AllocID: "b2", Status: model.ClientFailed},
		{AllocID: "unknown", Status: model.ClientFailed},
	})
	sn := checked(t, txn)
	if len(evals) != 0 || sn.DirtyIndex(batch.Key()) != 2 {
		t.Errorf("nothing is missing, but %v", triggers(evals))
	}
	if a := sn.Alloc("b0"); a.Client != model.ClientRunning || !a.Started || a.StartTime != 5 {
		t.Errorf("started %+v", a)
	}

	txn = s.Begin(4)
	evals = apply.ClientUpdates(txn, now, []apply.ClientUpdate{
		{AllocID: "b1", Status: model.ClientRunning},                                // after its end
		{AllocID: "b0", Status: model.ClientRunning, Started: true, StartTime: 5},   // nothing new
		{AllocID: "b3", Status: model.ClientFailed},                                 // missing now
		{AllocID: "a0", Status: model.ClientComplete, Started: true, StartTime: 10}, // a service should not complete
	})
	sn = checked(t, txn)
	want := []string{"default/batch batch 40 alloc-stop ", "default/j0 service 20 alloc-stop "}
	if d := cmp.Diff(want, triggers(evals)); d != "" {
		t.Error(d)
	}
	if sn.Alloc("b1").Client != model.ClientComplete || sn.Alloc("b0").ModifyIndex != 3 {
		t.Error("an update that says nothing new was written")
	}
}

func TestFollowUpID_DistinguishesNamespaceAndName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range []model.JobKey{{Namespace: "a", ID: "bc"}, {Namespace: "ab", ID: "c"}, {Namespace: "", ID: "abc"}} {
		for index := range uint64(3) {
			seen[apply.FollowUpID(index, k)] = true
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d different ids, want 9", len(seen))
	}
	if got, want := apply.FollowUpID(7, keyOf("web")), apply.FollowUpID(7, keyOf("web")); got != want || len(got) != 36 {
		t.Errorf("%q, %q", got, want)
	}
}

func TestStops_EndLiveAllocationsWithOneEvaluation(t *testing.T) {
	t.Parallel()
	s, _ := preempted(t)
	txn := s.Begin(3)
	evals, nodes := apply.Stops(txn, now, []string{"v00", "v10", "v00", "nobody"}, "stopped by hand")
	if len(evals) != 1 || evals[0].JobID != "low0" || evals[0].TriggeredBy != model.TriggerAllocStop {
		t.Errorf("evaluations %v, want one of low0", evals)
	}
	if !slices.Equal(nodes, []string{"n0", "n1"}) {
		t.Errorf("nodes %v", nodes)
	}
	a := txn.Alloc("v00")
	if a.Live() || a.DesiredReason != "stopped by hand" || a.EndTime != now || a.ModifyTime != now {
		t.Errorf("it is %+v", a)
	}
	sn := txn.Commit()
	if sn.DirtyIndex(keyOf("low0")) != 3 {
		t.Error("its job is not looked at again")
	}
	if err := sn.Check(); err != nil {
		t.Error(err)
	}
}

package planner_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// verify checks a plan on the newest state of a cluster.
func (c *cluster) verify(plan *model.Plan) planner.Verification {
	c.t.Helper()
	var scratch planner.Scratch
	v, err := planner.Verify(c.store.Snapshot(), plan, 0, nil, &scratch)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// gpuCluster returns a cluster of one node with two kinds of devices.
func gpuCluster(t *testing.T, jobs ...*model.Job) *cluster {
	c := newCluster(t, 0)
	c.write(func(txn *state.Txn) {
		n := coretest.Node("n0", 1000, 1000, 0)
		n.Devices = []model.Device{{ID: "acme/gpu/big", Count: 6}, {ID: "acme/fpga/one", Count: 2}}
		if err := txn.NodeWriter().Upsert(n); err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if err := txn.JobWriter().Upsert(j); err != nil {
				t.Fatal(err)
			}
		}
	})
	return c
}

func withDevices(job *model.Job, requests ...model.DeviceRequest) *model.Job {
	job.Groups[0].Devices = requests
	return job
}

// hashicorp/nomad#27820: with several device requests, instances used by earlier
// requests were counted wrongly.
func TestVerify_27820_SeveralDeviceRequestsAreCountedTogether(t *testing.T) {
	t.Parallel()
	two := withDevices(coretest.Job("two").Priority(70).Obj(),
		model.DeviceRequest{ID: "gpu", Count: 2}, model.DeviceRequest{ID: "fpga", Count: 1}, model.DeviceRequest{ID: "gpu", Count: 2})
	low := withDevices(coretest.Job("low").Priority(20).Obj(), model.DeviceRequest{ID: "gpu", Count: 3})
	c := gpuCluster(t, two, low)
	c.write(func(txn *state.Txn) {
		a := coretest.Running("a", low, 0, 0, "n0")
		a.Devices = []model.DeviceUse{{ID: "acme/gpu/big", Count: 3}}
		txn.AllocWriter().Upsert(a)
	})
	plan := c.place("t0", "two", 0, "n0")
	plan.Groups[0].Placements[0].Devices = []model.DeviceUse{
		{ID: "acme/gpu/big", Count: 2}, {ID: "acme/fpga/one", Count: 1}, {ID: "acme/gpu/big", Count: 2},
	}
	if v := c.verify(plan); len(v.Rejected) != 1 || v.Causes[0] != planner.CauseDevice {
		t.Errorf("3 of 6 are free, 2+2 are requested: %+v", v)
	}
	plan.Groups[0].Evictions = []model.Eviction{{AllocID: "a", By: "t0"}}
	if v := c.verify(plan); len(v.Rejected) != 0 {
		t.Errorf("all are free once the victim is gone: %+v", v.Rejected)
	}
}

// hashicorp/nomad#25808: scheduler and applier disagreed about devices for ever.
// Both call model.Fits, so requests that fit next to the victims are accepted, to
// the last instance; a device group that changed its kind is not.
func TestVerify_25808_AgreesWithFitsAboutDevices(t *testing.T) {
	t.Parallel()
	train := withDevices(coretest.Job("train").Priority(70).Count(9).Obj(), model.DeviceRequest{ID: "acme/gpu", Count: 3})
	c := gpuCluster(t, train)
	plan := c.place("t0", "train", 0, "n0")
	next := c.place("t1", "train", 1, "n0")
	plan.Groups = append(plan.Groups, next.Groups[0])
	for i := range plan.Groups {
		plan.Groups[i].Placements[0].Devices = []model.DeviceUse{{ID: "acme/gpu/big", Count: 3}}
	}
	if v := c.verify(plan); len(v.Committed) != 2 {
		t.Errorf("6 of 6: %+v", v.Rejected)
	}
	plan.Groups[1].Placements[0].Devices[0].ID = "acme/fpga/one"
	if v := c.verify(plan); len(v.Committed) != 1 || v.Causes[0] != planner.CauseDevice {
		t.Errorf("another kind serves nobody: %+v", v)
	}
}

// hashicorp/nomad#9506, #13017, #14850: port collisions that only the applier
// detected were rejected for ever. Ports of a victim or a stopped allocation are
// free for the group; those of a third allocation are not.
func TestVerify_13017_PortsOfVictimsAreFree(t *testing.T) {
	t.Parallel()
	port := func(g *model.Group) { g.Ports = []uint16{80, 443} }
	web := coretest.Job("web").Priority(70).Count(9).With(port).Obj()
	low := coretest.Job("low").Priority(20).With(port).Obj()
	c := newCluster(t, 2, web, low)
	c.run("a", "low", 0, "n0")
	c.run("w9", "web", 9, "n1")
	if v := c.verify(c.place("w0", "web", 0, "n0")); len(v.Rejected) != 1 || v.Causes[0] != planner.CausePort {
		t.Errorf("port is taken: %+v", v)
	}
	if v := c.verify(c.place("w0", "web", 0, "n0", "a")); len(v.Rejected) != 0 {
		t.Errorf("port is the victim's: %+v", v.Rejected)
	}
	moved := c.place("w9b", "web", 9, "n1")
	moved.Groups[0].Stops = []model.Stop{{AllocID: "w9"}}
	if v := c.verify(moved); len(v.Rejected) != 0 {
		t.Errorf("port is the predecessor's: %+v", v.Rejected)
	}
	both := c.place("w0", "web", 0, "n0", "a")
	both.Groups = append(both.Groups, c.place("w1", "web", 1, "n0").Groups[0])
	if v := c.verify(both); len(v.Committed) != 1 {
		t.Errorf("one port for two: %+v", v)
	}
}

// Capacity counted twice is used twice: a victim that is listed twice, in one group
// or in two, frees its capacity once.
func TestVerify_VictimListedTwiceFreesItsCapacityOnce(t *testing.T) {
	t.Parallel()
	web := coretest.Job("web").Priority(70).Ask(600, 1, 0).Count(9).Obj()
	low := coretest.Job("low").Priority(20).Ask(600, 1, 0).Obj()
	c := newCluster(t, 1, web, low)
	c.run("a", "low", 0, "n0")
	plan := c.place("w0", "web", 0, "n0", "a", "a")
	second := c.place("w1", "web", 1, "n0", "a")
	plan.Groups = append(plan.Groups, second.Groups[0])
	v := c.verify(plan)
	if !slices.Equal(v.Committed, []int{0}) || len(v.Plan.Groups[0].Evictions) != 1 {
		t.Errorf("%+v, evicts %+v", v, v.Plan.Groups[0].Evictions)
	}
	if !slices.Equal(v.Plan.Groups[0].Placements[0].Preempted, []string{"a", "a"}) && len(v.Plan.Groups[0].Placements[0].Preempted) == 0 {
		t.Error("the placement lost its victim")
	}
}

// distinctNodes is a rule that no two placements of a plan share a node.
type distinctNodes struct {
	plan  *model.Plan
	taken map[string]bool
	begun int
}

func (r *distinctNodes) StartPlan(_ *state.Snapshot, plan *model.Plan) planner.PlacementCheck {
	r.plan, r.taken = plan, map[string]bool{}
	r.begun++
	return r
}

func (r *distinctNodes) Add(groups []int) (string, string) {
	taken := maps.Clone(r.taken)
	for _, i := range groups {
		for _, a := range r.plan.Groups[i].Placements {
			if taken[a.NodeID] {
				return a.NodeID, "distinct hosts"
			}
			taken[a.NodeID] = true
		}
	}
	r.taken = taken
	return "", ""
}

func TestVerify_RulesCheckAcceptedGroups(t *testing.T) {
	t.Parallel()
	web := coretest.Job("web").Ask(300, 1, 0).Count(9).Obj()
	c := newCluster(t, 2, web)
	plan := c.place("w0", "web", 0, "n0")
	for i, node := range []string{"n0", "n1", "n1"} {
		plan.Groups = append(plan.Groups, c.place("x"+node+string(rune('0'+i)), "web", i+1, node).Groups[0])
	}
	distinct := distinctNodes{}
	var scratch planner.Scratch
	v, err := planner.Verify(c.store.Snapshot(), plan, 0, &distinct, &scratch)
	if err != nil || !slices.Equal(v.Committed, []int{0, 2}) || !slices.Equal(v.Causes, []planner.RejectionCause{planner.CauseRules, planner.CauseRules}) {
		t.Errorf("%+v, %v", v, err)
	}
	if len(v.Rejected) != 2 || v.Rejected[0].NodeID != "n0" || v.Rejected[1].Reason != "distinct hosts" {
		t.Errorf("%+v", v.Rejected)
	}
	if distinct.begun != 1 {
		t.Errorf("begun %d times for one plan", distinct.begun)
	}
}

// System jobs have one instance for each group and node; their index is not used.
func TestVerify_SystemJobRunsOncePerNode(t *testing.T) {
	t.Parallel()
	agent := coretest.Job("agent").Type(model.JobSystem).Ask(10, 1, 0).Obj()
	c := newCluster(t, 2, agent)
	c.run("s0", "agent", 0, "n0")
	plan := c.place("s1", "agent", 0, "n1")
	plan.Groups = append(plan.Groups, c.place("s2", "agent", 0, "n0").Groups[0], c.place("s3", "agent", 0, "n1").Groups[0])
	if v := c.verify(plan); !slices.Equal(v.Committed, []int{0}) {
		t.Errorf("%+v", v)
	}
}

// An allocation on a deleted node holds its instance until it is stopped as lost.
func TestVerify_LostInstanceIsReplacedOnce(t *testing.T) {
	t.Parallel()
	web := coretest.Job("web").Ask(300, 1, 0).Count(9).Obj()
	c := newCluster(t, 2, web)
	c.run("w0", "web", 0, "n0")
	c.write(func(txn *state.Txn) { txn.NodeWriter().Delete("n0") })
	plan := c.place("x0", "web", 0, "n1")
	if v := c.verify(plan); len(v.Rejected) != 1 || v.Causes[0] != planner.CausePlaced {
		t.Errorf("%+v", v)
	}
	lost := model.Stop{AllocID: "w0", Lost: true}
	// The stop is in a group of its own, and listed twice.
	plan.Groups = append(plan.Groups, model.CommitGroup{Stops: []model.Stop{lost, lost}})
	v := c.verify(plan)
	if !slices.Equal(v.Committed, []int{0, 1}) || len(v.Plan.Groups[1].Stops) != 1 {
		t.Errorf("%+v", v)
	}
	plan.Groups = append(plan.Groups, c.place("x1", "web", 0, "n1").Groups[0])
	if v := c.verify(plan); !slices.Equal(v.Committed, []int{0, 1}) {
		t.Errorf("%+v", v)
	}
}

// hashicorp/nomad#5545: a malformed plan crashed the leader. Missing, duplicate,
// negative or foreign values lead to an error or a rejection, and if groups are
// committed nevertheless, all invariants hold.
func TestVerify_5545_MalformedPlansNeverPanic(t *testing.T) {
	t.Parallel()
	web := coretest.Job("web").Priority(70).Ask(300, 1, 0).Count(9).With(func(g *model.Group) { g.Ports = []uint16{80} }).Obj()
	low := withDevices(coretest.Job("low").Priority(20).Ask(300, 1, 0).Count(9).Obj(), model.DeviceRequest{ID: "gpu", Count: 1})
	c := gpuCluster(t, web, low)
	c.write(func(txn *state.Txn) {
		a := coretest.Running("a", low, 0, 0, "n0")
		a.Devices = []model.DeviceUse{{ID: "acme/gpu/big", Count: 1}}
		txn.AllocWriter().Upsert(a)
		b := coretest.Running("b", web, 0, 5, "n0")
		txn.AllocWriter().Upsert(b)
	})
	snap := c.store.Snapshot()
	var scratch planner.Scratch // shared: one plan must not affect the next
	good := c.place("d", "web", 0, "n0")
	rapid.Check(t, func(t *rapid.T) {
		defer func() {
			if v, err := planner.Verify(snap, good, 0, nil, &scratch); err != nil || len(v.Committed)+len(v.Rejected) != 1 {
				t.Fatalf("a good plan behind it: %+v, %v", v, err)
			}
		}()
		plan := wildPlan(t, web, low)
		v, err := planner.Verify(snap, plan, 0, nil, &scratch)
		if err != nil {
			if _, ok := errors.AsType[*planner.PlanError](err); !ok {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(v.Committed)+len(v.Rejected) != len(plan.Groups) {
			t.Fatalf("%d groups, %+v", len(plan.Groups), v)
		}
		txn := snap.Fork(snap.Index() + 1)
		(&apply.Batch{Plans: []apply.BatchPlan{{Plan: v.Plan, Groups: v.Committed}}}).Apply(txn)
		after := txn.Snapshot()
		if err := after.Check(); err != nil {
			t.Fatal(err)
		}
		if err := overfull(after); err != nil {
			t.Fatal(err)
		}
	})
}

// wildPlan returns a plan of random, often invalid parts.
func wildPlan(t *rapid.T, jobs ...*model.Job) *model.Plan {
	if rapid.IntRange(0, 50).Draw(t, "nil") == 0 {
		return nil
	}
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	// Valid more often than not, so that most plans pass the first checks.
	job := rapid.SampledFrom([]*model.Job{jobs[0], jobs[0], jobs[0], jobs[0], jobs[0], jobs[0], jobs[1], nil})
	node := rapid.SampledFrom([]string{"n0", "n0", "n0", "n0", "n9", ""})
	uses := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.DeviceUse {
		return model.DeviceUse{
			ID:    rapid.SampledFrom([]string{"acme/gpu/big", "acme/fpga/one", ""}).Draw(t, "device"),
			Count: rapid.Int32Range(-1, 7).Draw(t, "count"),
		}
	}), 0, 2)
	alloc := rapid.Custom(func(t *rapid.T) *model.Allocation {
		j := job.Draw(t, "job")
		if rapid.IntRange(0, 40).Draw(t, "missing") == 0 {
			return nil
		}
		a := &model.Allocation{
			ID: id.Draw(t, "id"), Job: j, NodeID: node.Draw(t, "node"), Index: rapid.IntRange(-1, 9).Draw(t, "index"),
		}
		if rapid.IntRange(0, 4).Draw(t, "devices") == 0 {
			a.Devices = uses.Draw(t, "uses")
		}
		if g := job.Draw(t, "group of"); g != nil {
			a.Group = g.Groups[0]
		}
		if j != nil && rapid.IntRange(0, 9).Draw(t, "own group") > 0 {
			a.Group = j.Groups[0]
		}
		return a
	})
	claim := rapid.Custom(func(t *rapid.T) *model.Claim {
		return &model.Claim{
			ID: id.Draw(t, "id"), Claimant: jobs[0].Key(), NodeID: node.Draw(t, "node"), Devices: uses.Draw(t, "uses"),
			Vec: model.Vector{rapid.Int64Range(-1, 2000).Draw(t, "cpu")}, Priority: rapid.Int32Range(0, 71).Draw(t, "priority"),
			Ports: []uint16{rapid.Uint16Range(79, 81).Draw(t, "port")}, Expiry: 1,
		}
	})
	plan := &model.Plan{Job: jobs[0].Key(), Priority: rapid.SampledFrom([]int32{70, 70, 70, 20, 90}).Draw(t, "priority")}
	for range rapid.IntRange(0, 3).Draw(t, "groups") {
		var g model.CommitGroup
		g.Placements = rapid.SliceOfN(alloc, 0, 2).Draw(t, "place")
		g.Updates = rapid.SliceOfN(alloc, 0, 1).Draw(t, "update")
		g.Claims = rapid.SliceOfN(claim, 0, 1).Draw(t, "claims")
		for range rapid.IntRange(0, 2).Draw(t, "stops") {
			g.Stops = append(g.Stops, model.Stop{AllocID: id.Draw(t, "stop"), Lost: rapid.Bool().Draw(t, "lost")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "evictions") {
			g.Evictions = append(g.Evictions, model.Eviction{AllocID: id.Draw(t, "victim"), By: id.Draw(t, "by")})
		}
		plan.Groups = append(plan.Groups, g)
	}
	return plan
}

// An instance that completes while its replacement is planned is not replaced, and still counts as
// done: its stop is omitted.
func TestVerify_RejectsReplacementOfCompletedInstance(t *testing.T) {
	t.Parallel()
	batch := coretest.Job("batch").Type(model.JobBatch).Ask(300, 1, 0).Count(9).Obj()
	c := newCluster(t, 2, batch)
	c.run("b0", "batch", 0, "n0")
	plan := c.place("x0", "batch", 0, "n1")
	plan.Groups[0].Stops = []model.Stop{{AllocID: "b0", Reason: "its node is draining"}}
	plan.Groups = append(plan.Groups, model.CommitGroup{Stops: []model.Stop{{AllocID: "b0"}}})
	c.write(func(txn *state.Txn) {
		done := *txn.Alloc("b0")
		done.Client = model.ClientComplete
		txn.AllocWriter().Upsert(&done)
	})
	v := c.verify(plan)
	if len(v.Rejected) != 1 || v.Rejected[0].Group != 0 || v.Causes[0] != planner.CausePlaced || len(v.Plan.Groups[1].Stops) != 0 {
		t.Errorf("%+v", v)
	}
}

// A job that is purged and registered again while it is planned begins with version 0 again. The
// plan is of another job then, with other tasks or resources, and is rejected without a fault.
func TestVerify_RejectsPlanOfPurgedJob(t *testing.T) {
	t.Parallel()
	for _, cpu := range []int64{300, 400} {
		c := newCluster(t, 1, coretest.Job("batch").Type(model.JobBatch).Ask(300, 1, 0).Count(2).Obj())
		plan := c.place("x0", "batch", 0, "n0")
		c.write(func(txn *state.Txn) { txn.JobWriter().Delete(plan.Job) })
		c.write(func(txn *state.Txn) {
			if err := txn.JobWriter().Upsert(coretest.Job("batch").Type(model.JobBatch).Ask(cpu, 1, 0).Count(2).Obj()); err != nil {
				t.Fatal(err)
			}
		})
		if v := c.verify(plan); len(v.Rejected) != 1 || v.Causes[0] != planner.CauseJob {
			t.Errorf("cpu %d: %+v", cpu, v)
		}
	}
}

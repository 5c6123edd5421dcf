package state_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

const (
	poolSize = 40 // ids of allocations, evaluations and claims that tests use
	nodePool = 6  // ids of nodes that tests spread them over
)

func ids(kind string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%02d", kind, i)
	}
	return out
}

func jobKeys() []model.JobKey {
	var keys []model.JobKey
	for _, ns := range []string{"default", "other"} {
		for _, id := range []string{"job-0", "job-1", "job-10"} {
			keys = append(keys, model.JobKey{Namespace: ns, ID: id})
		}
	}
	return keys
}

// checkProperty runs a property, many more times if CEDE_SOAK is set.
func checkProperty(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range soak.Count(8, 1000) {
		rapid.Check(t, prop)
	}
}

// world is a branch of the state with its reference.
type world struct {
	txn *Txn
	ref *reference
}

type frozen struct {
	sn  *Snapshot
	ref *reference
}

func (f frozen) compare(t *rapid.T) {
	compareState(t, &f.sn.View, f.ref)
	if err := f.sn.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestStore_AgainstReference applies random changes to a store and its forks, and to
// plain maps. Old snapshots are compared repeatedly: they never change.
func TestStore_AgainstReference(t *testing.T) {
	t.Parallel()
	checkProperty(t, func(t *rapid.T) {
		s := New()
		last := newReference()
		branches := []*world{begin(s, last)}
		for range 4 {
			writeNode(t, branches[0])
			writeJob(t, branches[0])
		}
		defer func() { branches[0].txn.Abort() }()
		old := []frozen{{s.Snapshot(), last}}
		keep := func(f frozen) {
			if len(old) == 8 {
				old = slices.Delete(old, 1, 2)
			}
			old = append(old, f)
		}
		actions := map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				w := branches[0]
				sn := w.txn.Commit()
				if s.Snapshot() != sn {
					t.Fatal("a commit publishes another snapshot than it returns")
				}
				last = w.ref
				keep(frozen{sn, last})
				branches[0] = begin(s, last)
			},
			"abort": func(_ *rapid.T) {
				branches[0].txn.Abort()
				branches[0] = begin(s, last)
			},
			"snapshot": func(t *rapid.T) {
				w := rapid.SampledFrom(branches).Draw(t, "branch")
				keep(frozen{w.txn.Snapshot(), w.ref.clone()})
			},
			"fork": func(t *rapid.T) {
				from := rapid.SampledFrom(old).Draw(t, "from")
				fork := &world{from.sn.Fork(from.ref.index + 1), from.ref.clone()}
				fork.ref.index++
				if len(branches) == 4 {
					branches = slices.Delete(branches, 1, 2)
				}
				branches = append(branches, fork)
			},
			// Not after every step: orders that readers compute and share must also
			// be correct if they were not read for a while.
			"look": func(t *rapid.T) {
				for _, w := range branches {
					compareState(t, &w.txn.View, w.ref)
				}
				for _, f := range old {
					f.compare(t)
					compareChanges(t, f.sn, old[0].sn)
					compareChanges(t, f.sn, old[len(old)-1].sn)
				}
			},
		}
		for name, write := range writes {
			actions[name] = func(t *rapid.T) {
				w := rapid.SampledFrom(branches).Draw(t, "branch")
				for range rapid.IntRange(1, 8).Draw(t, "times") {
					write(t, w)
				}
			}
		}
		t.Repeat(actions)
		actions["look"](t)
	})
}

// compareChanges compares the allocations that changed between two snapshots with those that
// a search of all finds.
func compareChanges(t *rapid.T, sn, since *Snapshot) {
	want := slices.DeleteFunc(slices.Collect(sn.Allocs()), func(a *model.Allocation) bool { return since.Alloc(a.ID) == a })
	if got := sn.ChangedAllocs(since); !slices.Equal(got, want) {
		t.Fatalf("%d allocations changed between index %d and %d, want %d", len(got), since.Index(), sn.Index(), len(want))
	}
}

func begin(s *Store, last *reference) *world {
	ref := last.clone()
	ref.index++
	return &world{s.Begin(ref.index), ref}
}

// writes are the changes that are applied to both sides of a world.
var writes = map[string]func(*rapid.T, *world){
	"upsertNode":   writeNode,
	"deleteNode":   deleteNode,
	"nodeStatus":   writeNodeStatus,
	"upsertJob":    writeJob,
	"deleteJob":    deleteJob,
	"placeAlloc":   writeAlloc,
	"placeAlloc2":  writeAlloc,
	"changeAlloc":  changeAlloc,
	"changeAlloc2": changeAlloc,
	"deleteAllocs": deleteAllocs,
	"upsertEval":   writeEval,
	"deleteEval":   deleteEval,
	"upsertClaim":  writeClaim,
	"deleteClaim":  deleteClaim,
	"config":       writeConfig,
	"policy":       writePolicy,
	"upload":       writeUpload,
	"token":        writeToken,
	"applied":      writeApplied,
	"budget":       writeBudget,
	"deleteBudget": deleteBudget,
}

// resourceNames has one name that few draw, so that dimensions grow late.
var resourceNames = []string{"cpu", "memory", "disk", "gpu", "license"}

func drawResources(t *rapid.T, most int64) model.Resources {
	r := model.Resources{}
	for range rapid.IntRange(0, 3).Draw(t, "resources") {
		r[rapid.SampledFrom(resourceNames).Draw(t, "name")] = rapid.Int64Range(0, most).Draw(t, "amount")
	}
	return r
}

func drawPorts(t *rapid.T) []uint16 {
	return rapid.SliceOfNDistinct(rapid.Uint16Range(80, 84), 0, 3, rapid.ID).Draw(t, "ports")
}

func drawDeviceUses(t *rapid.T) []model.DeviceUse {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.DeviceUse {
		return model.DeviceUse{ID: rapid.SampledFrom(deviceIDs).Draw(t, "device"), Count: rapid.Int32Range(1, 3).Draw(t, "count")}
	}), 0, 2).Draw(t, "uses")
}

var deviceIDs = []string{"nvidia/gpu/a100", "nvidia/gpu/t4", "xilinx/fpga/u50"}

func drawNodeID(t *rapid.T) string { return rapid.SampledFrom(ids("node", nodePool)).Draw(t, "node") }

func drawKey(t *rapid.T) model.JobKey { return rapid.SampledFrom(jobKeys()).Draw(t, "job") }

func writeNode(t *rapid.T, w *world) {
	n := &model.Node{
		ID: drawNodeID(t), Datacenter: rapid.SampledFrom([]string{"dc1", "dc2"}).Draw(t, "dc"),
		Capacity: drawResources(t, 500), Reserved: drawResources(t, 50), Ports: drawPorts(t),
		NodeDrain: model.NodeDrain{Drain: rapid.Bool().Draw(t, "drain")},
	}
	if rapid.Bool().Draw(t, "tainted") {
		n.Taints = []model.Taint{{Key: "t", Effect: rapid.SampledFrom(model.TaintEffects).Draw(t, "effect")}}
	}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(deviceIDs), 0, 3, rapid.ID).Draw(t, "devices") {
		n.Devices = append(n.Devices, model.Device{ID: id, Count: rapid.Int32Range(0, 8).Draw(t, "count")})
	}
	pos, was := w.txn.Position(n.ID)
	if err := w.txn.NodeWriter().Upsert(n); err != nil {
		t.Fatal(err)
	}
	if now, _ := w.txn.Position(n.ID); was && now != pos {
		t.Fatalf("node %s moved from %d to %d", n.ID, pos, now)
	}
	created := w.ref.index
	if old := w.ref.nodes[n.ID]; old != nil {
		created = old.CreateIndex
	}
	if n.CreateIndex != created || n.ModifyIndex != w.ref.index {
		t.Fatalf("node created at %d, modified at %d; want %d and %d", n.CreateIndex, n.ModifyIndex, created, w.ref.index)
	}
	w.ref.nodes[n.ID] = n
	w.ref.grow(n.Capacity, n.Reserved)
}

func deleteNode(t *rapid.T, w *world) {
	id := drawNodeID(t)
	w.txn.NodeWriter().Delete(id)
	delete(w.ref.nodes, id)
}

func writeNodeStatus(t *rapid.T, w *world) {
	id := drawNodeID(t)
	status := rapid.SampledFrom([]model.NodeStatus{model.NodeReady, model.NodeDown}).Draw(t, "status")
	before := w.txn.Node(id)
	evals := apply.NodeStatus(w.txn, 1, []string{id}, apply.NodeChange{Status: &status, Drain: new(false)})
	adoptEvals(w, evals)
	n := w.txn.Node(id)
	if before == nil {
		return
	}
	if n.Status != status || n.Drain || n.CreateIndex != before.CreateIndex {
		t.Fatalf("node %+v after status %s", n, status)
	}
	w.ref.nodes[id] = n
}

// adoptEvals copies the evaluations that apply derived to the reference. The tests
// of apply check their content.
func adoptEvals(w *world, evals []*model.Evaluation) {
	for _, e := range evals {
		w.ref.evals[e.ID] = e
		w.ref.know(e.JobKey())
	}
	for _, key := range jobKeys() {
		if w.ref.known(key) && w.txn.DirtyIndex(key) == w.ref.index {
			w.ref.dirty[key] = w.ref.index
		}
	}
}

func drawLabels(t *rapid.T) map[string]string {
	labels := map[string]string{}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		labels[rapid.SampledFrom(labelKeys).Draw(t, "key")] = rapid.SampledFrom(labelValues).Draw(t, "value")
	}
	return labels
}

var labelKeys, labelValues = []string{"app", "tier"}, []string{"x", "y"}

func drawJob(t *rapid.T, key model.JobKey) *model.Job {
	j := &model.Job{
		Namespace: key.Namespace, ID: key.ID,
		Type:           model.JobType(rapid.IntRange(0, model.JobTypes-1).Draw(t, "type")),
		Priority:       rapid.Int32Range(0, 100).Draw(t, "priority"),
		NonPreemptible: rapid.Bool().Draw(t, "nonPreemptible"), AllOrNone: rapid.Bool().Draw(t, "whole"),
	}
	if rapid.Bool().Draw(t, "tolerant") {
		j.Toleration = &model.PreemptionToleration{MinRuntime: 1}
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "groups") {
		j.Groups = append(j.Groups, &model.Group{
			Name: fmt.Sprintf("g%d", i), Count: rapid.IntRange(0, 9).Draw(t, "count"), Resources: drawResources(t, 100), Ports: drawPorts(t),
			Labels: drawLabels(t), Separate: []model.LabelTerm{{Labels: drawLabels(t)}},
		})
		if rapid.Bool().Draw(t, "annotated") {
			j.Groups[i].Annotations = map[string]float64{"cost": 2}
		}
	}
	return j
}

func writeJob(t *rapid.T, w *world) {
	key := drawKey(t)
	j := drawJob(t, key)
	if old := w.ref.jobs[key]; old != nil && rapid.Bool().Draw(t, "sameGroups") {
		// A shallow copy, as a caller makes that only stops a job.
		again := *old
		again.Priority, again.Stopped = j.Priority, true
		j = &again
	}
	if old := w.ref.jobs[key]; old != nil {
		j.Version = old.Version
		if rapid.Bool().Draw(t, "newVersion") {
			j.Version++
		}
	}
	j.SubmitTime = rapid.Int64Range(0, 1).Draw(t, "submitted")
	if err := w.txn.JobWriter().Upsert(j); err != nil {
		t.Fatal(err)
	}
	for _, g := range j.Groups {
		if g.Job != j {
			t.Fatal("group is not compiled for its job")
		}
	}
	if old := w.ref.jobs[key]; old == nil || old.Version != j.Version {
		w.ref.versions[key] = slices.Insert(slices.Clone(w.ref.versions[key]), 0, j)
		w.ref.versions[key] = w.ref.versions[key][:min(MaxJobVersions, len(w.ref.versions[key]))]
	} else {
		w.ref.versions[key] = slices.Concat([]*model.Job{j}, w.ref.versions[key][1:])
	}
	w.ref.jobs[key] = j
	w.ref.dirty[key] = w.ref.index
	w.ref.grow(j.Resources()...)
}

func deleteJob(t *rapid.T, w *world) {
	key := drawKey(t)
	w.txn.JobWriter().Delete(key)
	if w.ref.jobs[key] != nil {
		delete(w.ref.jobs, key)
		delete(w.ref.versions, key)
		w.ref.dirty[key] = w.ref.index
		w.ref.forget(key)
	}
}

// writeAlloc places an allocation, on a node that need not exist.
func writeAlloc(t *rapid.T, w *world) {
	id := rapid.SampledFrom(ids("alloc", poolSize)).Draw(t, "id")
	if w.ref.allocs[id] != nil {
		return
	}
	key := drawKey(t)
	j := w.ref.jobs[key]
	if j == nil {
		// As a restore does: a version that never went through UpsertJob.
		j = drawJob(t, key)
		w.ref.grow(j.Resources()...)
	}
	a := &model.Allocation{
		ID: id, Job: j, Group: rapid.SampledFrom(j.Groups).Draw(t, "group"), NodeID: drawNodeID(t),
		Devices: drawDeviceUses(t),
	}
	w.txn.AllocWriter().Upsert(a)
	w.ref.allocs[id] = a
	w.ref.know(key)
	w.ref.jobAllocs[key] = append(w.ref.jobAllocs[key], id)
}

// changeAlloc changes any field of an allocation that may change.
func changeAlloc(t *rapid.T, w *world) {
	old := w.ref.allocs[rapid.SampledFrom(ids("alloc", poolSize)).Draw(t, "id")]
	if old == nil {
		return
	}
	a := *old
	a.Desired = rapid.SampledFrom([]model.DesiredStatus{model.DesiredRun, model.DesiredRun, model.DesiredStop, model.DesiredEvict}).Draw(t, "desired")
	a.Client = model.ClientStatus(rapid.IntRange(0, int(model.ClientLost)).Draw(t, "client"))
	a.Started = rapid.Bool().Draw(t, "started")
	a.EndTime = rapid.Int64Range(0, 1).Draw(t, "ended")
	if j := w.ref.jobs[a.Job.Key()]; j != nil && rapid.Bool().Draw(t, "newVersion") {
		a.Job, a.Group = j, rapid.SampledFrom(j.Groups).Draw(t, "group")
	}
	if rapid.Bool().Draw(t, "otherDevices") {
		a.Devices = drawDeviceUses(t)
	}
	w.txn.AllocWriter().Upsert(&a)
	if a.CreateIndex != old.CreateIndex || a.ModifyIndex != w.ref.index {
		t.Fatalf("allocation created at %d, modified at %d", a.CreateIndex, a.ModifyIndex)
	}
	w.ref.allocs[a.ID] = &a
}

func deleteAllocs(t *rapid.T, w *world) {
	ids := rapid.SliceOfN(rapid.SampledFrom(ids("alloc", poolSize)), 0, 8).Draw(t, "ids")
	w.txn.AllocWriter().Delete(ids...)
	for _, id := range ids {
		a := w.ref.allocs[id]
		if a == nil {
			continue
		}
		key := a.Job.Key()
		delete(w.ref.allocs, id)
		w.ref.jobAllocs[key] = slices.DeleteFunc(w.ref.jobAllocs[key], func(other string) bool { return other == id })
		w.ref.forget(key)
	}
}

func writeEval(t *rapid.T, w *world) {
	id := rapid.SampledFrom(ids("eval", poolSize)).Draw(t, "id")
	e := &model.Evaluation{ID: id}
	if old := w.ref.evals[id]; old != nil {
		again := *old
		again.Status = model.EvalStatus(rapid.IntRange(0, int(model.EvalCancelled)).Draw(t, "status"))
		e = &again
	} else {
		key := drawKey(t)
		e.Namespace, e.JobID = key.Namespace, key.ID
	}
	w.txn.EvalWriter().Upsert(e)
	w.ref.evals[id] = e
	w.ref.know(e.JobKey())
}

func deleteEval(t *rapid.T, w *world) {
	id := rapid.SampledFrom(ids("eval", poolSize)).Draw(t, "id")
	w.txn.EvalWriter().Delete(id)
	if e := w.ref.evals[id]; e != nil {
		delete(w.ref.evals, id)
		w.ref.forget(e.JobKey())
	}
}

func writeClaim(t *rapid.T, w *world) {
	c := &model.Claim{
		ID: rapid.SampledFrom(ids("claim", 6)).Draw(t, "id"), Claimant: drawKey(t), NodeID: drawNodeID(t),
		Ports: drawPorts(t), Devices: drawDeviceUses(t), Priority: rapid.Int32Range(0, 100).Draw(t, "priority"),
		Expiry: rapid.Int64Range(0, 100).Draw(t, "expiry"),
	}
	c.Vec[model.CPU] = rapid.Int64Range(0, 100).Draw(t, "cpu")
	w.txn.ClaimWriter().Upsert(c)
	w.ref.claims[c.ID] = c
}

func deleteClaim(t *rapid.T, w *world) {
	id := rapid.SampledFrom(ids("claim", 6)).Draw(t, "id")
	w.txn.ClaimWriter().Delete(id)
	delete(w.ref.claims, id)
}

func writeConfig(t *rapid.T, w *world) {
	c := &model.PriorityClass{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class")}
	if rapid.Bool().Draw(t, "delete") {
		w.txn.PriorityClassWriter().Delete(c.Name)
		delete(w.ref.classes, c.Name)
	} else {
		w.txn.PriorityClassWriter().Upsert(c)
		w.ref.classes[c.Name] = c
	}
	n := &model.Namespace{Name: c.Name, Weight: rapid.SampledFrom([]float64{1, 2, 3}).Draw(t, "weight")}
	if rapid.Bool().Draw(t, "delete namespace") {
		w.txn.NamespaceWriter().Delete(n.Name)
		delete(w.ref.spaces, n.Name)
	} else {
		w.txn.NamespaceWriter().Upsert(n)
		w.ref.spaces[n.Name] = n
	}
	w.ref.config = &model.SchedulerConfig{Policy: c.Name}
	w.txn.ConfigWriter().Set(w.ref.config)
}

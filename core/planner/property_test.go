package planner_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// world is a cluster with a history: plans are made on any of its snapshots.
type world struct {
	*cluster
	past []*state.Snapshot
	ids  int
}

func newWorld(t testing.TB) *world {
	port := func(g *model.Group) { g.Ports = []uint16{80} }
	w := &world{cluster: newCluster(t, 4,
		coretest.Job("a20").Priority(20).Ask(300, 100, 0).Count(20).Obj(),
		coretest.Job("b50").Priority(50).Ask(200, 300, 0).Count(20).With(port).Obj(),
		coretest.Job("c50").Priority(50).Ask(500, 100, 0).Count(20).Obj(),
		coretest.Job("d90").Priority(90).Ask(400, 400, 0).Count(20).With(port).Obj(),
		withDevices(coretest.Job("e70").Priority(70).Ask(10, 10, 0).Count(20).Obj(), model.DeviceRequest{ID: "gpu", Count: 2}))}
	w.write(func(txn *state.Txn) {
		n := *txn.Node("n0")
		n.Devices = []model.Device{{ID: "acme/gpu/x", Count: 5}}
		if err := txn.NodeWriter().Upsert(&n); err != nil {
			t.Fatal(err)
		}
	})
	w.past = append(w.past, w.store.Snapshot())
	return w
}

// plan makes a plan on some snapshot, often with more than fits there.
func (w *world) plan(t *rapid.T) *model.Plan {
	snap := w.past[rapid.IntRange(max(0, len(w.past)-6), len(w.past)-1).Draw(t, "snapshot")]
	jobs := slices.Collect(snap.Jobs())
	j := rapid.SampledFrom(jobs).Draw(t, "job")
	w.ids++
	plan := &model.Plan{
		EvalID: fmt.Sprintf("e%d", w.ids), Job: j.Key(), Priority: j.Priority, SnapshotIndex: snap.Index(),
	}
	for range rapid.IntRange(1, 3).Draw(t, "groups") {
		var g model.CommitGroup
		for range rapid.IntRange(0, 2).Draw(t, "placements") {
			w.addPlacement(t, snap, j, &g)
		}
		if rapid.IntRange(0, 3).Draw(t, "claims") == 0 {
			w.addClaim(t, snap, plan, &g)
		}
		w.addOwn(t, snap, j, &g)
		g.Divisible = rapid.Bool().Draw(t, "divisible")
		plan.Groups = append(plan.Groups, g)
	}
	return plan
}

func (w *world) addPlacement(t *rapid.T, snap *state.Snapshot, j *model.Job, g *model.CommitGroup) {
	pos := rapid.IntRange(0, 3).Draw(t, "node")
	w.ids++
	a := &model.Allocation{
		ID: fmt.Sprintf("x%d", w.ids), Job: j, Group: j.Groups[0],
		Index: rapid.IntRange(0, 9).Draw(t, "index"), NodeID: snap.NodeAt(int32(pos)).ID,
	}
	for range j.Groups[0].Devices {
		a.Devices = append(a.Devices, model.DeviceUse{ID: "acme/gpu/x", Count: 2})
	}
	g.Placements = append(g.Placements, a)
	w.addVictims(t, snap, pos, a.ID, g)
}

func (w *world) addClaim(t *rapid.T, snap *state.Snapshot, plan *model.Plan, g *model.CommitGroup) {
	pos := rapid.IntRange(0, 3).Draw(t, "node")
	w.ids++
	c := &model.Claim{
		ID: fmt.Sprintf("k%d", w.ids), Claimant: plan.Job, NodeID: snap.NodeAt(int32(pos)).ID, Priority: plan.Priority,
		Vec: model.Vector{rapid.Int64Range(1, 600).Draw(t, "cpu")}, Expiry: rapid.Int64Range(0, 3).Draw(t, "expiry"),
	}
	g.Claims = append(g.Claims, c)
	w.addVictims(t, snap, pos, c.ID, g)
}

// addVictims picks any allocation: the applier must find those that are protected.
func (w *world) addVictims(t *rapid.T, snap *state.Snapshot, pos int, by string, g *model.CommitGroup) {
	rows := snap.Chunk(0).Rows(pos)
	for i := range rapid.IntRange(0, len(rows)).Draw(t, "victims") {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: rows[i].Alloc.ID, By: by})
	}
}

// addOwn stops or updates some allocations of the job itself.
func (w *world) addOwn(t *rapid.T, snap *state.Snapshot, j *model.Job, g *model.CommitGroup) {
	for _, a := range snap.AppendJobAllocs(nil, j.Key()) {
		switch rapid.IntRange(0, 9).Draw(t, "own") {
		case 0:
			g.Stops = append(g.Stops, model.Stop{AllocID: a.ID})
		case 1:
			if a.Live() {
				next := *a
				next.Job, next.Group = j, j.Groups[0]
				g.Updates = append(g.Updates, &next)
			}
		}
	}
}

// beneficiaries returns the placements and claims of a batch that evictions may
// serve.
func beneficiaries(batch *apply.Batch) map[string]*model.Plan {
	m := map[string]*model.Plan{}
	for _, bp := range batch.Plans {
		for _, i := range bp.Groups {
			for _, a := range bp.Plan.Groups[i].Placements {
				m[a.ID] = bp.Plan
			}
			for _, c := range bp.Plan.Groups[i].Claims {
				m[c.ID] = bp.Plan
			}
		}
	}
	return m
}

// promises checks the effect of an entry on the state before it.
func promises(before, after *state.Snapshot, batch *apply.Batch) error {
	if err := after.Check(); err != nil {
		return err
	}
	if err := overfull(after); err != nil {
		return err
	}
	made := beneficiaries(batch)
	for a := range after.Allocs() {
		old := before.Alloc(a.ID)
		if a.Desired != model.DesiredEvict || old != nil && old.Desired == model.DesiredEvict {
			continue
		}
		by := made[a.PreemptedBy]
		if by == nil {
			return fmt.Errorf("%s was evicted for %q, which is not of the same entry", a.ID, a.PreemptedBy)
		}
		if a.Job.Priority >= by.Priority || a.Job.Key() == by.Job {
			return fmt.Errorf("%s (%d) was evicted for %s (%d)", a.ID, a.Job.Priority, by.Job, by.Priority)
		}
		if !slices.ContainsFunc(after.EvalsOfJob(a.Job.Key()), func(e *model.Evaluation) bool { return e.CreateIndex == after.Index() }) {
			return fmt.Errorf("%s was evicted and no evaluation follows", a.ID)
		}
	}
	return nil
}

// Plans from stale snapshots, in batches, with failing commits: no node is ever
// over capacity, every eviction serves a placement, and a batch has the result of
// its plans one after the other.
func TestApplier_AnyInterleavingOfStalePlans(t *testing.T) {
	t.Parallel()
	outer := t
	accepted, rejected, parted := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, twin := newWorld(outer), newWorld(outer)
		flaky := &flaky{cluster: w.cluster, every: 4}
		batched := planner.NewApplier(planner.Config{Store: w.store, Committer: flaky, MaxPlans: 3})
		batched.Queue().SetEnabled(true)
		single := planner.NewApplier(planner.Config{Store: twin.store, Committer: twin.cluster})
		for range rapid.IntRange(1, max(6, soak.Scale(6))).Draw(t, "batches") {
			plans := make([]*model.Plan, rapid.IntRange(1, 3).Draw(t, "plans"))
			pending := map[*model.Plan]*planner.PendingPlan{}
			for i := range plans {
				plans[i] = w.plan(t)
				p, err := batched.Queue().Enqueue(plans[i])
				if err != nil {
					t.Fatal(err)
				}
				pending[plans[i]] = p
			}
			before := w.store.Snapshot()
			if _, err := batched.Step(context.Background()); err != nil {
				continue // the commit failed: all were told so, and nothing changed
			}
			after := w.store.Snapshot()
			if after != before {
				w.past = append(w.past, after)
			}
			if after != before {
				if err := promises(before, after, flaky.last); err != nil {
					t.Fatal(err)
				}
			}
			slices.SortStableFunc(plans, func(a, b *model.Plan) int { return int(b.Priority - a.Priority) })
			for _, plan := range plans {
				got, err := pending[plan].Result()
				stale := *plan
				stale.SnapshotIndex = 0 // the twin counts one entry for each plan
				want, wantErr := single.ApplyOne(&stale)
				if (err == nil) != (wantErr == nil) {
					t.Fatalf("in a batch %v, alone %v", err, wantErr)
				}
				if err != nil {
					continue
				}
				if !slices.Equal(got.Committed, want.Committed) || !reflect.DeepEqual(got.Rejected, want.Rejected) {
					t.Fatalf("in a batch %+v, alone %+v", got, want)
				}
				for _, r := range got.Rejected {
					g := &plan.Groups[r.Group]
					if r.Places == nil {
						continue
					}
					if !g.Divisible || len(r.Places) >= len(g.Placements) || !slices.Contains(got.Committed, r.Group) {
						t.Fatalf("a part of %+v was rejected: %+v", g, got)
					}
					parted++
				}
				accepted, rejected = accepted+len(got.Committed), rejected+len(got.Rejected)
			}
			if got, want := standing(w.store), standing(twin.store); !maps.Equal(got, want) {
				t.Fatalf("in batches\n%v\none by one\n%v", got, want)
			}
		}
	})
	t.Logf("%d groups committed, %d rejected, %d of them in part", accepted, rejected, parted)
	if accepted == 0 || rejected == 0 || parted == 0 {
		t.Error("the property was not exercised")
	}
}

// standing returns the state of every allocation.
func standing(s *state.Store) map[string]string {
	m := map[string]string{}
	for a := range s.Snapshot().Allocs() {
		m[a.ID] = fmt.Sprintf("%s on %s by %q for %v", a.Desired, a.NodeID, a.PreemptedBy, a.Preempted)
	}
	return m
}

// A plan built step by step on one snapshot holds on that snapshot, in any grouping
// and order of its steps.
func TestVerify_AcceptsPlansMadeOnTheSameSnapshot(t *testing.T) {
	t.Parallel()
	outer := t
	placed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(outer)
		a := planner.NewApplier(planner.Config{Store: w.store, Committer: w.cluster})
		for range rapid.IntRange(0, 4).Draw(t, "before") {
			if _, err := a.ApplyOne(w.plan(t)); err == nil {
				w.past = []*state.Snapshot{w.store.Snapshot()}
			}
		}
		snap := w.store.Snapshot()
		j := rapid.SampledFrom(slices.Collect(snap.Jobs())).Draw(t, "job")
		plan := &model.Plan{Job: j.Key(), Priority: j.Priority, SnapshotIndex: snap.Index(), Groups: make([]model.CommitGroup, 5)}
		proposed := snap.Fork(snap.Index() + 1)
		index := 100
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var step model.CommitGroup
			own := slices.DeleteFunc(snap.AppendJobAllocs(nil, j.Key()), func(a *model.Allocation) bool {
				return !proposed.Alloc(a.ID).Live()
			})
			node := rapid.IntRange(0, 3).Draw(t, "node")
			w.ids++
			p := &model.Allocation{
				ID: fmt.Sprintf("x%d", w.ids), Job: j, Group: j.Groups[0], Index: index, NodeID: snap.NodeAt(int32(node)).ID,
			}
			index++
			for range j.Groups[0].Devices {
				p.Devices = append(p.Devices, model.DeviceUse{ID: "acme/gpu/x", Count: 2})
			}
			if len(own) > 0 && rapid.Bool().Draw(t, "move") {
				from := rapid.SampledFrom(own).Draw(t, "moved")
				p.Index = from.Index
				step.Stops = []model.Stop{{AllocID: from.ID}}
			}
			for _, row := range proposed.Chunk(0).Rows(node) {
				if row.Priority < j.Priority && rapid.Bool().Draw(t, "evict") {
					step.Evictions = append(step.Evictions, model.Eviction{AllocID: row.Alloc.ID, By: p.ID})
				}
			}
			step.Placements = []*model.Allocation{p}
			trial := proposed.Snapshot().Fork(proposed.Index())
			apply.Plan(trial, 0, &model.Plan{Job: j.Key(), Groups: []model.CommitGroup{step}}, []int{0})
			if !hasRoom(trial, j, node) {
				continue
			}
			proposed = trial
			placed++
			g := &plan.Groups[rapid.IntRange(0, len(plan.Groups)-1).Draw(t, "group")]
			g.Placements, g.Stops, g.Evictions = append(g.Placements, step.Placements...), append(g.Stops, step.Stops...), append(g.Evictions, step.Evictions...)
		}
		var scratch planner.Scratch
		v, err := planner.Verify(snap, plan, 0, nil, &scratch)
		if err != nil || len(v.Rejected) > 0 || v.Plan != plan {
			t.Fatalf("%+v, %v", v, err)
		}
	})
	t.Logf("%d placed", placed)
	if placed == 0 {
		t.Error("the property was not exercised")
	}
}

// hasRoom reports whether the node is within its capacity, including claims of
// others.
func hasRoom(txn *state.Txn, j *model.Job, pos int) bool {
	var scratch model.Vector
	room := txn.FreeCapacityFor(int32(pos), j.Key(), j.Priority, 0, &scratch)
	for d := range txn.Dims().Len() {
		if room.Free[d*room.Stride] < 0 {
			return false
		}
	}
	for i := 1; i < len(room.Ports); i++ {
		if room.Ports[i] == room.Ports[i-1] {
			return false
		}
	}
	// A device group that the node lacks uses nothing there, and serves no request.
	if len(j.Groups[0].Devices) > 0 && len(room.Devices) == 0 {
		return false
	}
	return !slices.ContainsFunc(room.Devices, func(free int32) bool { return free < 0 })
}

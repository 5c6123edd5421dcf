package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// budgetWindow is how many entries a plan may be behind the state that it was verified on.
const budgetWindow = 10

// simChecks checks the state after every entry of the log, when the first server has
// applied it, and compares it with the states of the other servers.
type simChecks struct {
	c *simCluster

	mu        sync.Mutex
	hashes    map[uint64][32]byte         // by index
	last      *state.Snapshot             // newest state that was checked
	evicts    int                         // number of evictions
	placed    int                         // number of placements
	claimants map[string]int              // by claim, the live replicas of its binding at that time
	losses    []int                       // allocations that a budget lost without an eviction, in the last entries
	ranks     map[string]map[int32]uint64 // by member cluster and priority, the last index at which it was assigned or claimed capacity
	downs     map[string]uint64           // by member cluster, the last index at which it was down
}

func newSimChecks(c *simCluster) *simChecks {
	return &simChecks{claimants: map[string]int{}, c: c, hashes: map[uint64][32]byte{}, last: state.New().Snapshot(), ranks: map[string]map[int32]uint64{}, downs: map[string]uint64{}}
}

// applied receives the entries that a server applied.
func (k *simChecks) applied(r *simRun, list []replication.Applied) {
	select {
	case <-r.dead:
		return // entries applied after a crash are ignored
	default:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list {
		a := &list[i]
		if a.Entry == nil {
			continue // a snapshot, of some index
		}
		k.compare(r, a)
		if a.Index > k.last.Index() {
			k.entry(a)
			k.last = a.Snap
		}
	}
}

// hashEvery is the distance of the entries at which states are compared: hashing took half
// the time of a simulation. The seed determines which entries are compared, so that all are
// covered over the seeds. States that differ rarely become equal again within so few
// entries.
const hashEvery = 4

// compare compares the state after an entry with that of other servers. k.mu is held.
func (k *simChecks) compare(r *simRun, a *replication.Applied) {
	if (a.Index+k.c.net.seed)%hashEvery != 0 {
		return
	}
	hash := snapshot.Hash(a.Snap)
	if seen, ok := k.hashes[a.Index]; ok && seen != hash {
		k.c.t.Errorf("the state of server %s at index %d differs from that of other servers", r.of.id, a.Index)
	}
	k.hashes[a.Index] = hash
}

// reset discards all records: the state is about to be replaced.
func (k *simChecks) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hashes, k.last = map[uint64][32]byte{}, state.New().Snapshot()
}

// counts returns the numbers of placements and evictions.
func (k *simChecks) counts() (placed, evicted int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.placed, k.evicts
}

// entry checks the rules after an entry. k.mu is held.
func (k *simChecks) entry(a *replication.Applied) {
	for n := range a.Snap.Nodes() {
		if was := k.last.Node(n.ID); was != nil && was.Status == model.NodeDown && n.Status == model.NodeReady {
			k.c.seen.reconnected.Add(1)
			for _, alloc := range a.Snap.AppendNodeAllocs(nil, n.ID) {
				if alloc.Live() && alloc.Unknown(was) {
					k.c.seen.retained.Add(1)
				}
			}
		}
	}
	k.capacity(a)
	k.bindings(a)
	instances := map[string]string{}
	left, evicted, lost := 0, 0, 0
	for alloc := range a.Snap.Allocs() {
		was := k.last.Alloc(alloc.ID)
		if was == nil {
			k.placed++
		}
		if alloc.Live() && !alloc.Job.Type.PerNode() {
			name := alloc.Job.Key().String() + " " + model.AllocName(alloc.Group, alloc.Index, 0)
			// A replacement runs together with the disconnected allocation until that
			// returns.
			if other := instances[name]; other != "" && !alloc.Group.ReplacesOnDisconnect() {
				k.c.t.Errorf("index %d: %s is placed twice: %s and %s", a.Index, name, other, alloc.ID)
			}
			instances[name] = alloc.ID
		}
		guarded := alloc.Group.Labels["app"] == simGuarded
		if guarded && alloc.Available() {
			left++
		}
		switch {
		case alloc.Desired == model.DesiredEvict && (was == nil || was.Desired != model.DesiredEvict):
			k.evicts++
			k.eviction(a, alloc)
			// One that became available while the plan was in flight may be evicted.
			if guarded && was != nil && was.Available() && a.Index-was.ModifyIndex >= budgetWindow {
				evicted++
			}
		case guarded && was != nil && was.Available() && !alloc.Available():
			lost++
		}
	}
	k.budget(a, left, evicted, lost)
}

// eviction checks that the victim has a lower priority than a placement or claim of the
// same entry.
func (k *simChecks) eviction(a *replication.Applied, victim *model.Allocation) {
	by := a.Snap.Alloc(victim.PreemptedBy)
	if by == nil {
		k.c.t.Errorf("index %d: %s of %s is evicted for %q, which does not exist", a.Index, victim.ID, victim.Job.ID, victim.PreemptedBy)
		return
	}
	if k.last.Alloc(by.ID) != nil {
		k.c.t.Errorf("index %d: %s of %s is evicted for %s, which was placed earlier", a.Index, victim.ID, victim.Job.ID, by.ID)
	}
	if by.Job.Priority <= victim.Job.Priority {
		k.c.t.Errorf("index %d: %s of priority %d is evicted for %s of priority %d", a.Index, victim.ID, victim.Job.Priority, by.ID, by.Job.Priority)
	}
}

// budget checks that evictions leave as many allocations available as a strict budget
// requires. Other losses while a plan is in flight are allowed.
func (k *simChecks) budget(a *replication.Applied, left, evicted, lost int) {
	k.losses = append(k.losses, lost)
	if len(k.losses) > budgetWindow {
		k.losses = k.losses[1:]
	}
	if evicted == 0 || len(a.Snap.Budgets()) == 0 || left >= simKept {
		return
	}
	if a.Index-a.Snap.Budgets()[0].CreateIndex < budgetWindow {
		return // the plan may have been verified before the budget existed
	}
	for _, n := range k.losses {
		if n > 0 {
			return
		}
	}
	k.c.t.Errorf("index %d: evicting %d leaves %d available under a strict budget of %d, which exists since index %d",
		a.Index, evicted, left, simKept, a.Snap.Budgets()[0].CreateIndex)
}

func (k *simChecks) capacity(a *replication.Applied) {
	for n := range a.Snap.Nodes() {
		used := model.Resources{}
		for _, alloc := range a.Snap.AppendNodeAllocs(nil, n.ID) {
			if alloc.Live() {
				for name, amount := range alloc.Group.Resources {
					used[name] += amount
				}
			}
		}
		for name, amount := range used {
			if amount > n.Capacity[name] {
				k.c.t.Errorf("index %d: node %s uses %d of %s, capacity %d", a.Index, n.ID, amount, name, n.Capacity[name])
			}
		}
	}
}

// checkAtRest ends all faults and checks that the cluster becomes idle by itself, and its
// final state.
func (c *simCluster) checkAtRest() {
	c.net.setQuality(0, 0, 4*time.Millisecond)
	for _, s := range c.servers {
		if s.run.Load() == nil && !s.absent.Load() {
			s.start()
		}
	}
	c.faultsOver.Store(true)
	if len(c.members) > 0 {
		c.must(putPlain) // the operator may have deleted it
	}
	c.waitVotersStable()
	for _, a := range c.agents {
		c.must(func(ctx context.Context, s *Server) error {
			_, drained := s.CancelDrain(ctx, a.id)
			_, eligible := s.SetEligible(ctx, a.id, true)
			return firstOf(drained, eligible)
		})
	}
	w := &harness{t: c.t, ctx: c.ctx, machines: map[string]*testNode{}}
	for _, s := range c.servers {
		r := s.run.Load()
		if r == nil {
			continue // it was lost, or has never joined
		}
		m := &member{w: w, id: s.id, node: r.node, server: r.server}
		m.applied.Store(r.server)
		w.members = append(w.members, m)
	}
	w.waitIdle()
	time.Sleep(time.Minute) // disconnected nodes have returned, and dependent allocations have moved
	c.waitBindingsIdle(w)
	w.waitIdle()
	w.checkInvariants()
	placed, evicted := c.checks.counts()
	before := w.snap()
	time.Sleep(30 * time.Second)
	if p, e := c.checks.counts(); p != placed || e != evicted {
		c.t.Errorf("idle, but %d placements and %d evictions followed:%s", p-placed, e-evicted, diffStates(before, w.snap()))
	}
	c.checkJobsComplete(w)
	c.checkBindingsComplete(w)
	for _, a := range c.agents {
		a.checkAgreement(w.snap())
	}
	for _, s := range c.servers {
		if r := s.run.Load(); r == nil {
			continue
		} else if check := r.server.checkPolicies(); !check.OK {
			c.t.Errorf("server %s: %s", s.id, check.Detail)
		}
	}
	reader := newSimClient(c, 99)
	for _, key := range slices.Concat(simKeys, simBindings) {
		reader.read(key)
	}
	c.history.check(c.t)
}

// diffStates describes the decisions between two states, for debugging.
func diffStates(before, snap *state.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, " after index %d", before.Index())
	for a := range snap.Allocs() {
		if a.ModifyIndex > before.Index() {
			name := model.AllocName(a.Group, a.Index, a.Incarnation)
			fmt.Fprintf(&b, "\n%d, %d: %s on %s, %s %s, %s, for evaluation %s", a.CreateIndex, a.ModifyIndex, name, a.NodeID, a.Desired, a.DesiredReason, a.Client, a.EvalID)
		}
	}
	for x := range snap.Assignments() {
		if x.ModifyIndex > before.Index() {
			fmt.Fprintf(&b, "\n%d, %d: assignment %+v", x.CreateIndex, x.ModifyIndex, *x)
		}
	}
	for e := range snap.Evals() {
		if e.ModifyIndex > before.Index() {
			was := "nothing"
			if o := before.Eval(e.ID); o != nil {
				was = fmt.Sprintf("%s until %d", o.Status, o.WaitUntil)
			}
			fmt.Fprintf(&b, "\n%d, %d: evaluation %s of %s by %s: %s at %d, before %s", e.CreateIndex, e.ModifyIndex, e.ID, e.JobID, e.TriggeredBy, e.Status, e.ModifyTime, was)
		}
	}
	return b.String()
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkJobsComplete checks that every job has its instances or is blocked.
func (c *simCluster) checkJobsComplete(w *harness) {
	snap := w.snap()
	for job := range snap.Jobs() {
		if job.Type != model.JobService {
			continue
		}
		want := 0
		if !job.Stopped {
			want = job.Groups[0].Count
		}
		live := 0
		for _, a := range snap.AppendJobAllocs(nil, job.Key()) {
			if a.Live() {
				live++
			}
		}
		if live != want && (live > want || !w.hasBlockedEval(job.Key())) {
			c.t.Errorf("job %s has %d of %d instances at index %d, and is not blocked", job.ID, live, want, snap.Index())
			for _, e := range snap.EvalsOfJob(job.Key()) {
				c.t.Logf("evaluation %s (%s) of index %d is %s since %d: %s", e.ID, e.TriggeredBy, e.CreateIndex, e.Status, e.ModifyIndex, e.StatusText)
			}
		}
	}
}

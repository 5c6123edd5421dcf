package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Member clusters and bindings under faults. The requests exceed the capacity, so that
// bindings evict each other, and claim capacity until their victims are gone.

// simBindings are the bindings that clients write. The key determines the binding, except
// for its request and the value that it carries.
var simBindings = []string{"b-low", "b-shrinks", "b-mid", "b-everywhere", "b-ends", "b-high"}

func simBinding(key, value string, units int64) *model.Binding {
	b := &model.Binding{
		ID: key, Replicas: 2, Resources: model.Resources{"units": units}, Template: []byte(value),
		Preempts: true, KillTimeout: int64(2 * time.Second),
	}
	switch key {
	case "b-low":
		b.Priority, b.Preempts, b.Replicas = 10, false, 3
	case "b-shrinks":
		b.Priority, b.Replicas, b.MinReplicas = 20, 3, 1
	case "b-mid":
		b.Priority = 40
	case "b-everywhere":
		b.Priority, b.Replicas, b.Duplicated, b.MaxClusters = 50, 1, true, 2
	case "b-ends":
		b.Priority, b.Duration = 60, int64(8*time.Second) // ends by time where there is no agent
	case "b-high":
		b.Priority = 90
	}
	return b
}

// The clusters: two with an agent, of which the second one has leases of another pool, and
// one without an agent.
const (
	simMembers = 2
	simPlain   = "m-plain"
	simUnits   = 10
)

func (c *simCluster) addMembers() {
	for i := range simMembers {
		id := fmt.Sprintf("m%d", i)
		m := &simMember{
			c: c, id: id, secret: fmt.Sprintf("%x", sha256.Sum256([]byte(id))), hasLeases: i > 0, rand: rand.New(rand.NewPCG(c.net.seed, uint64(500+i))),
			running: map[string]bool{}, started: map[string]bool{},
		}
		c.members = append(c.members, m)
		c.group.Go(m.run)
	}
	c.must(putPlain)
}

func putPlain(ctx context.Context, s *Server) error {
	_, err := s.PutCluster(ctx, &model.Cluster{ID: simPlain, Capacity: model.Resources{"units": simUnits}})
	return err
}

// A simMember is the agent of a member cluster.
type simMember struct {
	c         *simCluster
	id        string
	secret    string
	hasLeases bool // it has leases of another pool, and reserves capacity for it
	rand      *rand.Rand

	mu      sync.Mutex
	running map[string]bool // assignments that run here
	started map[string]bool // everything that was ever started here
}

func (m *simMember) run() {
	m.c.reports(m.id, m.rand, 4, func(ctx context.Context, s *Server) (*endpoint.NodeLease, error) {
		return s.RegisterMember(ctx, &model.Cluster{ID: m.id, Capacity: model.Resources{"units": simUnits}}, m.secret)
	}, func(ctx context.Context, s *Server) (*endpoint.NodeLease, error) {
		return s.ClusterHeartbeat(ctx, m.id, m.secret, m.report())
	}, m.work)
}

// report returns the current capacity for bindings. It no longer changes once the faults
// are over.
func (m *simMember) report() *endpoint.ClusterReport {
	if !m.hasLeases || m.c.faultsOver.Load() {
		return &endpoint.ClusterReport{Reported: model.Resources{"units": simUnits}}
	}
	r := &endpoint.ClusterReport{Reported: model.Resources{"units": int64(simUnits - m.rand.IntN(4))}}
	if m.rand.IntN(3) == 0 {
		r.Leases = []endpoint.ClusterLease{{Pool: "other", ID: "remote", Resources: model.Resources{"units": 2}, Priority: 45}}
	}
	return r
}

// work starts and stops assignments as the state requires, and reports them.
func (m *simMember) work(snap *state.Snapshot) {
	m.mu.Lock()
	var updates []apply.AssignmentUpdate
	report := func(a *model.Assignment, s model.ClientStatus) {
		updates = append(updates, apply.AssignmentUpdate{ID: a.ID, Client: s, Ready: a.Replicas, StartTime: time.Now().UnixNano()})
	}
	assigned := map[string]bool{}
	for _, a := range snap.ClusterAssignments(m.id) {
		assigned[a.ID] = true
		switch {
		case !a.Live():
			if m.running[a.ID] && m.rand.IntN(4) > 0 {
				continue // the cluster is slow
			}
			delete(m.running, a.ID)
			report(a, model.ClientComplete)
		case m.running[a.ID] && a.Binding.ID == "b-ends" && a.Client == model.ClientRunning && m.rand.IntN(10) == 0:
			delete(m.running, a.ID)
			report(a, model.ClientComplete)
		case m.running[a.ID] && a.Client == model.ClientPending:
			report(a, model.ClientRunning) // an earlier report was lost
		case !m.running[a.ID] && m.started[a.ID]:
			report(a, m.ended(a)) // it ended, and the report was lost
		case !m.running[a.ID]:
			m.running[a.ID], m.started[a.ID] = true, true
			report(a, model.ClientRunning)
		}
	}
	for id := range m.running {
		if !assigned[id] {
			delete(m.running, id)
		}
	}
	m.mu.Unlock()
	if len(updates) == 0 {
		return
	}
	_ = m.c.call(m.id, m.rand, func(ctx context.Context, s *Server) error { // retried at the next round
		_, err := s.UpdateAssignments(ctx, m.id, m.secret, updates)
		return err
	})
}

// ended returns the status of an assignment that ran here before: it ended by itself, or it
// was stopped while the state did not assign it.
func (m *simMember) ended(a *model.Assignment) model.ClientStatus {
	if a.Binding.ID == "b-ends" {
		return model.ClientComplete
	}
	return model.ClientFailed
}

// checkAgreement checks that the cluster runs exactly its assignments in the state.
func (m *simMember) checkAgreement(snap *state.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := map[string]bool{}
	for _, a := range snap.ClusterAssignments(m.id) {
		live[a.ID] = true
		if !m.running[a.ID] {
			m.c.t.Errorf("cluster %s does not run %s, which is assigned to it", m.id, a.ID)
		}
	}
	for id := range m.running {
		if !live[id] {
			m.c.t.Errorf("cluster %s runs %s, which is not assigned to it", m.id, id)
		}
	}
}

// writeBinding registers a binding, and retries until the outcome is known.
func (s *simClient) writeBinding(key, value string) {
	b := simBinding(key, value, int64(1+s.rand.IntN(4)))
	s.keys++
	idempotency := fmt.Sprint(s.id, "/", s.keys)
	op := s.c.history.start(s.n, simInput{"write", key, value})
	var answer *endpoint.Registered
	err := s.until(func(ctx context.Context, srv *Server) error {
		own := *b
		var err error
		answer, err = srv.RegisterBinding(ctx, &own, endpoint.RegisterOptions{Key: idempotency, ExplicitPriority: true, ExplicitPreemption: true})
		return err
	})
	switch {
	case err == nil:
		op.end("")
		s.seen = max(s.seen, answer.Index)
	case !isRetryable(err):
		s.c.t.Errorf("%s: failed to write binding %s: %v", s.id, key, err)
	}
}

func (s *simClient) stopBinding(key string) {
	s.keys++
	idempotency := fmt.Sprint(s.id, "/", s.keys)
	op := s.c.history.start(s.n, simInput{"stop", key, ""})
	err := s.until(func(ctx context.Context, srv *Server) error {
		_, err := srv.StopBinding(ctx, bindingKey(key), endpoint.StopOptions{Key: idempotency})
		return err
	})
	switch {
	case err == nil:
		op.end("")
	case apierror.CodeOf(err) == apierror.CodeNotFound:
		op.end(absentJob)
	case !isRetryable(err):
		s.c.t.Errorf("%s: failed to stop binding %s: %v", s.id, key, err)
	}
}

// bindings checks the rules for member clusters after an entry. k.mu is held.
func (k *simChecks) bindings(a *replication.Applied) {
	for x := range a.Snap.Assignments() {
		was := k.last.Assignment(x.ID)
		if was == nil && x.Live() {
			k.placed++
		}
		if x.Desired == model.DesiredEvict && (was == nil || was.Desired != model.DesiredEvict) {
			k.evicts++
			k.c.seen.evicted.Add(1)
			k.withdrawal(a, x)
		}
	}
	for c := range a.Snap.Clusters() {
		k.clusterCapacity(a, c)
		if c.Down {
			k.downs[c.ID] = a.Index
		}
	}
	for b := range a.Snap.Bindings() {
		k.replicas(a, b)
		if !b.Stopped && !b.Duplicated && k.lacks(a, b) > 0 && !hasActiveEval(a.Snap, b.Key(), a.Entry.Time) {
			k.c.t.Errorf("index %d: binding %s lacks replicas, and has no active evaluation", a.Index, b.ID)
		}
	}
	for c := range k.last.Claims() {
		if !c.IsForeign() && a.Snap.Claim(c.ID) == nil {
			k.claimEnds(a, c)
		}
	}
}

// withdrawal checks that the victim has a lower priority than the claim of the same entry.
func (k *simChecks) withdrawal(a *replication.Applied, victim *model.Assignment) {
	claim, b := a.Snap.Claim(victim.PreemptedBy), k.last.Binding(victim.Binding)
	switch {
	case claim == nil || claim.CreateIndex != a.Index:
		k.c.t.Errorf("index %d: %s is evicted for %q, which is not a claim of the same entry", a.Index, victim.ID, victim.PreemptedBy)
	case claim.ClusterID != victim.ClusterID || claim.Claimant == victim.Binding:
		k.c.t.Errorf("index %d: %s is evicted for claim %s of %s on %s", a.Index, victim.ID, claim.ID, claim.Claimant, claim.ClusterID)
	case b != nil && b.Priority >= claim.Priority:
		k.c.t.Errorf("index %d: %s of priority %d is evicted for %s of priority %d", a.Index, victim.ID, b.Priority, claim.Claimant, claim.Priority)
	}
}

// clusterCapacity checks that the assignments of a cluster fit, and that no binding was
// assigned capacity that another one claimed at its priority or above.
func (k *simChecks) clusterCapacity(a *replication.Applied, c *model.Cluster) {
	units := a.Snap.Dims().Index("units")
	if units < 0 {
		return
	}
	var held, claimed int64
	highest, got := int32(0), "" // of the bindings that the entry assigned
	for _, x := range a.Snap.ClusterAssignments(c.ID) {
		held += x.Vec[units]
		was := k.last.Assignment(x.ID)
		if b := a.Snap.Binding(x.Binding); x.Live() && b != nil && (was == nil || was.Vec[units] < x.Vec[units]) {
			k.recordRank(c.ID, b.Priority, a.Index)
			if got == "" || b.Priority > highest {
				highest, got = b.Priority, x.ID
			}
		}
	}
	if held > simUnits {
		k.c.t.Errorf("index %d: %d of %d units of cluster %s are assigned", a.Index, held, simUnits, c.ID)
	}
	for _, claim := range a.Snap.ClusterClaims(c.ID) {
		switch {
		case claim.IsForeign():
		case claim.CreateIndex == a.Index:
			k.c.seen.claims.Add(1)
			k.claimants[claim.ID] = liveReplicas(a.Snap, claim.Claimant)
			k.recordRank(c.ID, claim.Priority, a.Index)
		case claim.Priority >= highest && a.Entry.Time < claim.Expiry:
			claimed += claim.Vec[units]
		}
	}
	// The capacity that the other cluster reports may change while a plan is in flight.
	if got != "" && c.ID != "m1" && held+claimed > simUnits {
		k.c.t.Errorf("index %d: %s is assigned claimed capacity of cluster %s: %d units assigned, %d claimed, of %d", a.Index, got, c.ID, held, claimed, simUnits)
	}
}

func (k *simChecks) recordRank(cluster string, priority int32, index uint64) {
	if k.ranks[cluster] == nil {
		k.ranks[cluster] = map[int32]uint64{}
	}
	k.ranks[cluster][priority] = index
}

// replicas checks that a binding is assigned to each cluster at most once, and has at most
// the requested replicas.
func (k *simChecks) replicas(a *replication.Applied, b *model.Binding) {
	total, on := 0, map[string]bool{}
	for _, x := range a.Snap.BindingAssignments(b.Key()) {
		if !x.Live() {
			continue
		}
		if on[x.ClusterID] {
			k.c.t.Errorf("index %d: binding %s is on cluster %s twice", a.Index, b.ID, x.ClusterID)
		}
		on[x.ClusterID] = true
		total += x.Replicas
	}
	if !b.Duplicated && total > b.Replicas || b.Duplicated && len(on) > b.MaxClusters {
		k.c.t.Errorf("index %d: binding %s has %d replicas on %d clusters, want at most %d", a.Index, b.ID, total, len(on), b.Replicas)
	}
}

// claimEnds checks that a claim ends only if its binding is placed or changed, if it
// expires, or if a binding of a higher priority uses the capacity.
func (k *simChecks) claimEnds(a *replication.Applied, claim *model.Claim) {
	b, c := a.Snap.Binding(claim.Claimant), a.Snap.Cluster(claim.ClusterID)
	if b == nil || b.Stopped || b.ModifyIndex > claim.CreateIndex || a.Entry.Time >= claim.Expiry {
		return
	}
	if c == nil || c.Down || c.ID == "m1" {
		return // it offers less than before
	}
	for _, x := range a.Snap.BindingAssignments(b.Key()) {
		if x.ModifyIndex == a.Index && x.Live() {
			return
		}
	}
	if liveReplicas(a.Snap, b.Key()) != k.claimants[claim.ID] || !b.Duplicated && k.lacks(a, b) != k.claimed(b) {
		return // it lost replicas meanwhile, or while the plan was in flight, and lacks more than it claimed
	}
	for _, id := range a.Snap.ClaimIDs(b.Key()) {
		if a.Snap.Claim(id).CreateIndex == a.Index {
			return
		}
	}
	for priority, index := range k.ranks[claim.ClusterID] {
		if priority > claim.Priority && index >= claim.CreateIndex { // possibly by the entry that created the claim
			return
		}
	}
	if at := k.downs[claim.ClusterID]; at > claim.CreateIndex && a.Index-at < budgetWindow {
		return // it was down when the plan was made
	}
	k.c.t.Errorf("index %d: claim %s of %s ends early, and the binding is not placed", a.Index, claim.ID, claim.Claimant)
	k.c.t.Logf("%T at %d, claim %+v, ranks of others %v", a.Entry.Command, a.Entry.Time, claim, k.ranks[claim.ClusterID])
	for _, snap := range []*state.Snapshot{k.last, a.Snap} {
		for _, other := range snap.ClusterClaims(claim.ClusterID) {
			k.c.t.Logf("at %d, claim %+v", snap.Index(), other)
		}
		for _, x := range snap.ClusterAssignments(claim.ClusterID) {
			k.c.t.Logf("at %d, assignment %+v", snap.Index(), x)
		}
		for _, x := range snap.BindingAssignments(b.Key()) {
			k.c.t.Logf("at %d, assignment of the binding %+v", snap.Index(), x)
		}
	}
}

// lacks returns the number of units that a binding lacks.
func (k *simChecks) lacks(a *replication.Applied, b *model.Binding) int64 {
	missing := b.Replicas
	for _, x := range a.Snap.BindingAssignments(b.Key()) {
		if x.CountsAsPlaced() {
			missing -= x.Replicas
		}
	}
	return int64(missing) * b.Resources["units"]
}

// claimed returns the number of units that a binding claimed before the entry.
func (k *simChecks) claimed(b *model.Binding) (units int64) {
	for _, id := range k.last.ClaimIDs(b.Key()) {
		units += k.last.Claim(id).Vec[k.last.Dims().Index("units")]
	}
	return units
}

func liveReplicas(snap *state.Snapshot, key model.JobKey) (n int) {
	for _, x := range snap.BindingAssignments(key) {
		if x.Live() {
			n += x.Replicas
		}
	}
	return n
}

// waitBindingsIdle waits until no assignment is starting, stopping or limited in time:
// their ends free capacity for others.
func (c *simCluster) waitBindingsIdle(w *harness) {
	c.t.Helper()
	what := ""
	for range 1000 { // clocks were wrong by some minutes, and some assignments end by time
		if what = pendingChange(w.snap()); what == "" {
			if w.waitIdle(); pendingChange(w.snap()) == "" { // assignments that follow may end by time as well
				return
			}
		}
		time.Sleep(2 * time.Second)
	}
	c.t.Errorf("%s is still pending", what)
}

// pendingChange returns a description of something that will still change by itself, or "".
func pendingChange(snap *state.Snapshot) string {
	for x := range snap.Assignments() {
		cluster, b := snap.Cluster(x.ClusterID), snap.Binding(x.Binding)
		pending := cluster != nil && cluster.HasAgent() && x.Client == model.ClientPending
		ends := b != nil && b.Duration > 0 // agents report these after a while
		if !x.Done && (!x.Live() || pending || ends) {
			return "assignment " + x.ID
		}
	}
	for e := range snap.Evals() { // retries after failures, some minutes later
		if !e.Status.Final() && e.WaitUntil > 0 {
			return "evaluation " + e.ID
		}
	}
	return ""
}

// checkBindingsComplete checks that every binding has what it requests or is blocked, and
// that no claim is left without a claimant.
func (c *simCluster) checkBindingsComplete(w *harness) {
	snap := w.snap()
	for b := range snap.Bindings() {
		replicas, clusters := 0, 0
		for _, x := range snap.BindingAssignments(b.Key()) {
			if x.CountsAsPlaced() && (!b.Stopped || x.Live()) {
				replicas += x.Replicas
				clusters++
			}
		}
		full := replicas == b.Replicas
		if b.Duplicated {
			full = clusters == b.MaxClusters
		}
		if b.Stopped {
			full = replicas == 0
		}
		if !full && (b.Stopped || !hasActiveEval(snap, b.Key(), 0)) {
			c.t.Errorf("binding %s (stopped: %t) has %d replicas on %d clusters at index %d, and is not blocked", b.ID, b.Stopped, replicas, clusters, snap.Index())
			for _, x := range snap.BindingAssignments(b.Key()) {
				c.t.Logf("assignment %+v", x)
			}
		}
	}
	for claim := range snap.Claims() {
		if !claim.IsForeign() {
			c.t.Errorf("idle, but %s has a claim on %s: %+v at index %d", claim.Claimant, claim.ClusterID, claim, snap.Index())
			for _, e := range snap.EvalsOfJob(claim.Claimant) {
				c.t.Logf("evaluation %s (%s) of index %d is %s since %d until %d: %s %s %v", e.ID, e.TriggeredBy, e.CreateIndex, e.Status, e.ModifyIndex, e.WaitUntil, e.StatusText, e.SupersededBy, e.BlockedNodes)
			}
			for _, x := range snap.ClusterAssignments(claim.ClusterID) {
				c.t.Logf("assignment %+v", x)
			}
		}
	}
	for _, m := range c.members {
		m.checkAgreement(snap)
	}
}

// hasActiveEval reports whether an evaluation of a binding is pending, blocked, or delayed
// after a failure. The evaluation at the expiry of its claim does not count: it is ten
// minutes later, and free capacity would not unblock it until then.
func hasActiveEval(snap *state.Snapshot, key model.JobKey, now int64) bool {
	return slices.ContainsFunc(snap.EvalsOfJob(key), func(e *model.Evaluation) bool {
		return !e.Status.Final() && (e.TriggeredBy != model.TriggerRecheck || e.WaitUntil <= now)
	})
}

// useBinding registers, stops or reads a binding.
func (s *simClient) useBinding(key, value string) {
	switch s.rand.IntN(6) {
	case 0:
		s.read(key)
	case 1:
		s.stopBinding(key)
	default:
		s.writeBinding(key, value)
	}
}

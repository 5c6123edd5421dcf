package scheduler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/state"
)

// planBinding plans an evaluation of a binding. Where its room is there it is
// assigned at once. Where it is not, others are evicted and the room is claimed:
// the binding gets it by another evaluation, once it is free. Nothing on a member
// cluster counts as free before it is gone, since what runs there is not ours to
// hurry.
func (s *Scheduler) planBinding(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	r, err := s.newBindingRun(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	err = r.process()
	fault, faulty := errors.AsType[*policy.Error](err)
	if !faulty {
		if err == nil && r.asked {
			r.version.Breaker.RecordSuccess()
		}
		return r.finish(), err
	}
	at := r.version
	if r.asked {
		at.Breaker.RecordFault(now, fault)
	}
	if fallsBack(at, snap.Config()) {
		again, err := s.newBindingRun(policies, eval, snap, now)
		if err != nil {
			return nil, err
		}
		again.version, again.out.Fault = policies.Default(), fault
		err = again.process()
		if _, twice := errors.AsType[*policy.Error](err); !twice {
			at.RecordFallback()
			return again.finish(), err
		}
	}
	if r, err = s.newBindingRun(policies, eval, snap, now); err != nil {
		return nil, err
	}
	r.preempts, r.out.Fault = false, fault
	err = r.process()
	return r.finish(), err
}

// bindingRun is an evaluation of a binding being planned.
type bindingRun struct {
	s        *Scheduler
	eval     *model.Evaluation
	snap     *state.Snapshot
	now      int64
	binding  *model.Binding // nil: gone
	policies *policy.Set
	version  *policy.Version
	asked    bool
	preempts bool

	live     []*model.Assignment // that are wanted
	short    []*model.Assignment // of those, what is duplicated and was shrunk
	on       map[string]int      // replicas that are there, by cluster
	admitted []*model.Cluster    // that take it by what they are, and are up; ascending by id
	shares   bool                // a cluster keeps room for other pools that it might have
	revokes  bool                // it may have that room
	kept     []string            // claims that it goes on waiting with
	plan     model.CommitGroup
	out      Outcome
}

func (s *Scheduler) newBindingRun(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*bindingRun, error) {
	r := &bindingRun{
		s: s, eval: eval, snap: snap, now: now, binding: snap.Binding(eval.JobKey()), policies: policies, on: map[string]int{},
	}
	if r.binding == nil {
		return r, nil
	}
	version, err := policies.Select("", snap.Config().Policy)
	if err != nil {
		return nil, fmt.Errorf("binding %s: %w", r.binding.Key(), err)
	}
	r.version = version
	r.preempts = mayPreempt(snap.Config(), r.binding)
	return r, nil
}

func (r *bindingRun) process() error {
	assigned := r.snap.BindingAssignments(r.eval.JobKey())
	if r.binding == nil || r.binding.Stopped {
		for _, a := range assigned {
			if a.Live() {
				r.withdraw(a, "the binding was stopped")
			}
		}
		r.release()
		return nil
	}
	r.reconcile(assigned)
	for c := range r.snap.Clusters() {
		if !c.Down && r.binding.IsFeasible(c) {
			r.admitted = append(r.admitted, c)
		}
	}
	var err error
	if r.binding.Duplicated {
		err = r.duplicate()
	} else {
		err = r.spread()
	}
	r.release()
	return err
}

// reconcile withdraws what is not as the binding wants it now, and counts the
// rest.
func (r *bindingRun) reconcile(assigned []*model.Assignment) {
	b := r.binding
	for _, a := range assigned {
		cluster := r.snap.Cluster(a.ClusterID)
		switch {
		case !a.CountsAsPlaced():
		case a.Done:
			r.on[a.ClusterID] += a.Replicas
		case a.Vec != b.TotalAsk(a.Replicas):
			r.withdraw(a, "the binding was changed")
		case cluster != nil && !b.IsFeasible(cluster):
			r.withdraw(a, "the cluster is excluded by "+b.InfeasibleReason(cluster))
		case b.Duplicated && a.Replicas != b.Replicas:
			r.resize(a, cluster)
		default:
			r.live = append(r.live, a)
			r.on[a.ClusterID] += a.Replicas
		}
	}
}

// spread divides what is missing.
func (r *bindingRun) spread() error {
	missing := r.binding.Replicas
	for _, n := range r.on {
		missing -= n
	}
	if missing <= 0 {
		r.shrink(-missing)
		return nil
	}
	if h := r.heldFor(missing); h != nil && h.free {
		r.assignAll(h.slots)
		return nil
	}
	chosen, ok := r.divideOver(missing, r.free())
	if !ok && r.revoke() {
		chosen, ok = r.divideOver(missing, r.free())
	}
	if ok {
		r.assignAll(chosen)
		return nil
	}
	var whole []*model.Cluster
	for _, c := range r.admitted {
		if r.maySingle(c) {
			whole = append(whole, c)
		}
	}
	return r.makeRoom(whole, missing)
}

// maySingle is whether all that is missing may go to one cluster.
func (r *bindingRun) maySingle(c *model.Cluster) bool {
	return r.bounds().most([]slot{r.slot(c, 1)}, nil) >= 0
}

// shrink takes replicas away that are too many, from the last cluster on.
func (r *bindingRun) shrink(surplus int) {
	for i := len(r.live) - 1; i >= 0 && surplus > 0; i-- {
		a := r.live[i]
		if a.Replicas <= surplus {
			surplus -= a.Replicas
			r.withdraw(a, "the binding wants fewer replicas")
			continue
		}
		r.grow(a, -surplus)
		surplus = 0
	}
}

// room is what a cluster offers to the binding, now and soon. What it keeps for
// other pools is not part of that, until the binding may revoke it.
func (r *bindingRun) room(c *model.Cluster) (free, soon model.Vector) {
	free, soon = r.snap.ClusterFreeCapacity(c.ID, r.binding.Key(), r.binding.Priority, r.now)
	if !r.revokes {
		if kept := r.snap.ClusterLeasedBelow(c.ID, r.binding.Priority); kept != (model.Vector{}) {
			r.shares = true
			free.Sub(&kept)
			soon.Sub(&kept)
		}
	}
	return free, soon
}

// free is what the admitted clusters offer now.
func (r *bindingRun) free() []model.Vector {
	rooms := make([]model.Vector, len(r.admitted))
	for i, c := range r.admitted {
		rooms[i], _ = r.room(c)
	}
	return rooms
}

// revoke lets the binding have what clusters keep for other pools at lower
// priorities, where that is anything and it may evict at all.
func (r *bindingRun) revoke() bool {
	r.revokes = r.preempts && r.shares
	return r.revokes
}

// waits says why the binding waits. queued is how many replicas do.
func (r *bindingRun) waits(replicas, queued int) *model.Explanation {
	why := r.explain(replicas)
	r.out.Failed = map[string]*model.Explanation{r.binding.ID: why}
	r.out.Queued = map[string]int{r.binding.ID: queued}
	r.out.BlockedNodes = r.waitsFor()
	return why
}

// makeRoom has others evicted from one of the clusters where none is being left
// anyway, and says why the binding waits.
func (r *bindingRun) makeRoom(clusters []*model.Cluster, missing int) error {
	why := r.waits(missing, missing)
	h := r.heldFor(missing)
	switch {
	case h != nil && (h.valid || r.preempts):
		r.keep(h, why)
		return nil
	case !r.preempts:
		why.NoEviction = r.noEviction()
		return nil
	case len(clusters) == 0 && r.overSeveral():
		return r.makeRoomOnSeveral(missing, why)
	case len(clusters) == 0:
		why.NoEviction = onSeveral + "; karmada's multiCluster would make it on several"
		return nil
	}
	leaving, lacking := r.leaving(clusters, missing)
	if len(leaving) > 0 {
		r.claimAll([]slot{{cluster: r.claimedFirst(leaving)[0], add: missing}}, r.stopTime, why)
		return nil
	}
	return r.evict(lacking, missing, why, func(c *model.Cluster) []slot { return []slot{{cluster: c, add: missing}} })
}

// onSeveral is why nobody is evicted for what no single cluster could take.
const onSeveral = "it needs room on several clusters at once, and eviction makes room on one"

// leaving is the clusters that hold replicas once all is gone that stops there, and
// those that do not.
func (r *bindingRun) leaving(clusters []*model.Cluster, replicas int) (leaving, lacking []*model.Cluster) {
	needs := r.binding.TotalAsk(replicas)
	for _, c := range clusters {
		if _, soon := r.room(c); covers(&soon, &needs) {
			leaving = append(leaving, c)
		} else {
			lacking = append(lacking, c)
		}
	}
	return leaving, lacking
}

func covers(have, want *model.Vector) bool {
	for d := range want {
		if want[d] > max(0, have[d]) {
			return false
		}
	}
	return true
}

func (r *bindingRun) killTimeout(a *model.Assignment) int64 {
	if b := r.snap.Binding(a.Binding); b != nil {
		return b.KillTimeout
	}
	return 0
}

// evict asks who has to leave, and where. claims is what is then claimed.
func (r *bindingRun) evict(clusters []*model.Cluster, replicas int, why *model.Explanation, claims func(*model.Cluster) []slot) error {
	if open := r.version.Breaker.OpenError(r.now); open != nil {
		return open
	}
	r.asked = true
	found, err := binding.Find(r.snap, r.request(r.inOrder(clusters), replicas))
	if err != nil {
		return err
	}
	if found.Cluster == nil {
		r.out.RecheckAt = found.RecheckAt
		ceiling := binding.Ceiling(r.binding.Priority, r.version, r.snap.Config().PriorityDelta)
		for _, o := range found.Outcomes {
			model.CountReason(&why.Preempted, bindingObstacle(o, ceiling), 1)
		}
		if r.overSeveral() {
			return r.makeRoomOnSeveral(replicas, why)
		}
		return nil
	}
	r.displace(claims(found.Cluster), found.Victims, found.Version.ID, why)
	return nil
}

// displace evicts victims and claims the room for slots.
func (r *bindingRun) displace(slots []slot, victims []binding.Victim, version string, why *model.Explanation) {
	claims := r.claimAll(slots, func(cluster string) int64 {
		wait := r.stopTime(cluster)
		for _, v := range victims {
			if v.ClusterID == cluster {
				wait = max(wait, r.killTimeout(v.Assignment))
			}
		}
		return wait
	}, why)
	for _, v := range victims {
		if id := claims[v.ClusterID]; id != "" {
			r.plan.Withdrawals = append(r.plan.Withdrawals, model.Withdrawal{AssignmentID: v.ID, Remaining: v.Keep, By: id, Policy: version})
		}
	}
}

// request is a search for room for replicas on clusters.
func (r *bindingRun) request(clusters []*model.Cluster, replicas int) *binding.Request {
	return &binding.Request{
		Binding: r.binding, Replicas: replicas, Now: r.now, Delta: r.snap.Config().PriorityDelta,
		Waiting: max(0, r.now-r.binding.SubmitTime), Attempts: r.eval.Attempts,
		Policy: r.version, Default: r.policies.Default(), Clusters: clusters,
		TieOrder: r.s.config.Ties, OnCall: r.s.tell,
	}
}

// overSeveral is whether several clusters may be made room on together.
func (r *bindingRun) overSeveral() bool {
	return !r.binding.Duplicated && r.version.Info().MultiCluster
}

// inOrder is the clusters in tie order.
func (r *bindingRun) inOrder(clusters []*model.Cluster) []*model.Cluster {
	slices.SortFunc(clusters, func(x, y *model.Cluster) int { return r.s.config.Ties.Compare(x.ID, y.ID) })
	return clusters
}

func bindingObstacle(o preempt.Outcome, ceiling int64) string {
	switch o {
	case preempt.NoCandidates:
		return tooHigh.tell(ceiling)
	case preempt.Insufficient:
		return notEnough.tell(ceiling)
	}
	return declined.tell(ceiling)
}

// release gives up the claims that the binding does not go on waiting with.
func (r *bindingRun) release() {
	for _, id := range r.snap.ClaimIDs(r.eval.JobKey()) {
		if !slices.Contains(r.kept, id) {
			r.plan.ReleasedClaims = append(r.plan.ReleasedClaims, id)
		}
	}
}

func (r *bindingRun) withdraw(a *model.Assignment, reason string) {
	r.plan.Withdrawals = append(r.plan.Withdrawals, model.Withdrawal{AssignmentID: a.ID, Reason: reason})
}

func (r *bindingRun) assignAll(slots []slot) {
	for _, s := range slots {
		r.assign(s.cluster.ID, s.add)
	}
}

// assign puts more replicas on a cluster.
func (r *bindingRun) assign(cluster string, replicas int) {
	if at := slices.IndexFunc(r.live, func(a *model.Assignment) bool { return a.ClusterID == cluster }); at >= 0 {
		r.grow(r.live[at], replicas)
		return
	}
	key := r.binding.Key()
	r.plan.Assignments = append(r.plan.Assignments, &model.Assignment{
		ID: model.AssignmentID(key, cluster, r.eval.ID), Binding: key, ClusterID: cluster, Replicas: replicas,
		Vec: r.binding.TotalAsk(replicas), EvalID: r.eval.ID,
	})
}

// grow changes the number of replicas of an assignment.
func (r *bindingRun) grow(a *model.Assignment, by int) {
	next := *a
	next.Replicas += by
	next.Vec, next.EvalID = r.binding.TotalAsk(next.Replicas), r.eval.ID
	r.plan.Assignments = append(r.plan.Assignments, &next)
}

// waitsFor is the clusters on which room could help.
func (r *bindingRun) waitsFor() []string {
	places := []string{model.ClusterLocation("")} // none: it waits for clusters to come
	for c := range r.snap.Clusters() {
		if r.binding.IsFeasible(c) {
			places = append(places, model.ClusterLocation(c.ID))
		}
	}
	return places
}

func (r *bindingRun) noEviction() string {
	switch {
	case r.out.Fault != nil:
		return "the policy was at fault"
	case r.binding.ClusterScoped:
		return "the binding is cluster-scoped"
	case !r.binding.Preempts:
		return "the binding's preemptionPolicy is Never"
	case r.binding.IsBestEffort():
		return "the binding asks for nothing"
	}
	if !r.snap.Config().Preemption[model.JobBinding] {
		return "preemption is off for bindings"
	}
	return "the feature gates PriorityBasedScheduling and PriorityBasedPreemptiveScheduling are not both on"
}

// explain says why no cluster takes so many replicas.
func (r *bindingRun) explain(replicas int) *model.Explanation {
	why := &model.Explanation{Of: "clusters"}
	needs := r.binding.TotalAsk(replicas)
	for c := range r.snap.Clusters() {
		why.Nodes++
		refusal := r.binding.InfeasibleReason(c)
		switch {
		case refusal != "":
			why.CountFiltered(refusal)
			continue
		case c.Down:
			model.CountReason(&why.NotReady, "down", 1)
			continue
		}
		free, _ := r.room(c)
		switch d := lacks(&free, &needs); {
		case d >= 0:
			why.CountExhausted(r.snap.Dims().Name(d))
		case r.on[c.ID] == 0 && r.binding.SpreadText() != "" && !r.assigns(c.ID):
			why.CountFiltered("its spread: " + r.binding.SpreadText())
		}
	}
	return why
}

// assigns is whether the plan puts replicas on a cluster.
func (r *bindingRun) assigns(cluster string) bool {
	return slices.ContainsFunc(r.plan.Assignments, func(a *model.Assignment) bool { return a.ClusterID == cluster })
}

// lacks is the first dimension in which there is less than is wanted; -1: none.
func lacks(have, want *model.Vector) int {
	for d := range want {
		if want[d] > 0 && have[d] < want[d] {
			return d
		}
	}
	return -1
}

// finish makes the plan.
func (r *bindingRun) finish() *Outcome {
	plan := &model.Plan{
		EvalID: r.eval.ID, Job: r.eval.JobKey(), Priority: r.eval.Priority, SnapshotIndex: r.snap.Index(), Now: r.now,
	}
	if r.binding != nil {
		plan.Priority = r.binding.Priority
	}
	if g := r.plan; g.HasBindingChanges() || len(g.Claims) > 0 {
		plan.Groups = []model.CommitGroup{g}
	}
	r.out.Plan, r.out.Version = plan, r.version
	return &r.out
}

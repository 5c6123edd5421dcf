package extender

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// A query is one preemption or node check in terms of the scheduler.
type query struct {
	now   int64
	snap  *state.Snapshot // the pod is not placed
	job   *model.Job
	group string // of the job
	since int64  // creation time of the pod
	// excluded names the pod groups that could be evicted if they had no pods on other nodes
	// and belonged to no composite group.
	excluded []string
	// leaving holds the proposed victims on each node that earlier answers named. If
	// the pod fits once they are gone, no further eviction is necessary.
	leaving map[string]*kube.MetaVictims
}

// decide evaluates a proposal with the policy.
func (e *Extender) decide(args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	q, nodes, err := e.preemptionQuery(args, proposal, w.AcrossNodes)
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	q.leaving = e.cache.leavingVictims(proposal)
	answer, end := e.consult(q, nodes, w)
	end.excluded = q.excluded
	if end.result == resultVetoed && len(q.excluded) > 0 {
		end = consultAcrossNodes(e, args, proposal, nodes, end)
	}
	if end.failed() {
		return nil, end
	}
	return mergeUnknown(answer, end, proposedOnUnknown(proposal, nodes), w)
}

// consultAcrossNodes returns the outcome of a request for which the policy names no victims
// while pod groups are excluded: resultGroup if it would evict one.
func consultAcrossNodes(e *Extender, args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, nodes []string, vetoed outcome) outcome {
	q, _, err := e.preemptionQuery(args, proposal, true)
	if err != nil {
		return vetoed
	}
	if _, end := e.consult(q, nodes, PreemptOptions{AcrossNodes: true}); end.result == resultAnswered {
		vetoed.result = resultGroup
		vetoed.err = fmt.Errorf("the policy would evict a pod group that has pods on several nodes or belongs to a composite group, which an extender cannot evict as a whole: one of %s", strings.Join(vetoed.excluded, ", "))
	}
	return vetoed
}

// preemptionQuery returns the query for a proposal, and the nodes that the policy
// evaluates: the proposed nodes of which all pods are cached. If there are none,
// collectProposed applies.
func (e *Extender) preemptionQuery(args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, acrossNodes bool) (*query, []string, error) {
	if known := e.completeNodes(proposal); len(known) > 0 {
		q, err := e.state.query(asPending(args.Pod), proposal, acrossNodes)
		return q, known, err
	}
	d, pending, nodes, err := e.collectProposed(args, proposal)
	if err != nil {
		return nil, nil, err
	}
	s := &clusterState{cache: newCache(), cfg: &e.cfg}
	if err := s.load(d, []*kube.Pod{pending}); err != nil {
		return nil, nil, err
	}
	q, ok, err := s.forkWith(pending, proposal, acrossNodes)
	if !ok && err == nil {
		err = errUntranslatable(pending)
	}
	return q, nodes, err
}

// consult evaluates all nodes together, or one by one if AllNodes is set.
func (e *Extender) consult(q *query, nodes []string, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	s := e.state.acquireScheduler(e.cfg.Policies)
	defer e.state.releaseScheduler(s)
	if !w.AllNodes {
		return evaluate(s, q, nodes, w.AcrossNodes)
	}
	answer := map[string]*kube.MetaVictims{}
	for _, node := range nodes {
		one, end := evaluate(s, q, []string{node}, w.AcrossNodes)
		if end.failed() {
			return nil, end
		}
		maps.Copy(answer, one)
	}
	if len(answer) == 0 {
		return answer, outcome{result: resultVetoed}
	}
	return answer, outcome{result: resultAnswered}
}

// completeNodes returns the proposed nodes of which all pods are cached, sorted.
func (e *Extender) completeNodes(proposal map[string]*kube.MetaVictims) (nodes []string) {
	c := e.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, node := range slices.Sorted(maps.Keys(proposal)) {
		if proposal[node] != nil && c.isComplete(node, proposal[node]) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// nominatedPods returns pods that wait for their victims to terminate, as if they
// were on their nominated nodes. A pod of lower or equal priority must not use this
// capacity. If among is nil, all nodes are included. The caller must hold mu.
func (c *cache) nominatedPods(pending *kube.Pod, among map[string]*kube.MetaVictims) []*kube.Pod {
	var list []*kube.Pod
	add := func(p *kube.Pod, node string) {
		if node == "" || key(p) == key(pending) || p.PriorityValue() < pending.PriorityValue() || !isAmong(among, node) {
			return
		}
		nominated := *p
		nominated.Spec.NodeName = node
		list = append(list, &nominated)
	}
	for _, k := range slices.Sorted(maps.Keys(c.onNode[""])) {
		if c.answers.byPod[k] == nil {
			add(c.onNode[""][k], c.onNode[""][k].Status.NominatedNodeName)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.answers.byPod)) {
		if k == key(pending) {
			continue
		}
		for _, node := range c.answers.byPod[k].nodes() {
			p := *c.answers.byPod[k].pod
			p.Metadata.Name += "." + node // unique if there are several nodes
			p.Metadata.UID += "." + node
			add(&p, node)
		}
	}
	return list
}

// isAmong reports whether a node is in the proposal, or the proposal is nil.
func isAmong(proposal map[string]*kube.MetaVictims, node string) bool {
	_, ok := proposal[node]
	return ok || proposal == nil
}

// leavingVictims returns the proposed victims that earlier answers named, by node.
func (c *cache) leavingVictims(proposal map[string]*kube.MetaVictims) map[string]*kube.MetaVictims {
	c.mu.RLock()
	defer c.mu.RUnlock()
	leaving := map[string]*kube.MetaVictims{}
	for node, v := range proposal {
		if v == nil {
			continue
		}
		if pods := slices.DeleteFunc(slices.Clone(v.Pods), func(p kube.MetaPod) bool { return !c.answers.isLeaving(p.UID) }); len(pods) > 0 {
			leaving[node] = &kube.MetaVictims{Pods: pods}
		}
	}
	return leaving
}

// asPending returns a copy of the pod without a node. A DaemonSet owner is removed,
// because the job would otherwise be placed on every node.
func asPending(p *kube.Pod) *kube.Pod {
	pending := *p
	pending.Spec.NodeName, pending.Status.NominatedNodeName, pending.Status.Phase = "", "", "Pending"
	pending.Metadata.DeletionTimestamp, pending.Spec.SchedulingGates = "", nil
	if slices.ContainsFunc(p.Metadata.Owners, func(o kube.Owner) bool { return o.Kind == "DaemonSet" }) {
		pending.Metadata.Owners = nil
	}
	return &pending
}

// collectProposed returns nodes that contain only the proposed victims. The pod fits
// on such a node if all of them are evicted, and not before: kube-scheduler has found
// that each eviction is necessary. The policy can choose a node or reject all of
// them.
func (e *Extender) collectProposed(args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims) (d *kube.Dump, pending *kube.Pod, nodes []string, err error) {
	c := e.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	d = &kube.Dump{}
	for _, name := range slices.Sorted(maps.Keys(c.budgets)) {
		d.Budgets = append(d.Budgets, c.budgets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(proposal)) {
		victims, err := e.victims(args, name, proposal[name])
		if err != nil {
			return nil, nil, nil, err
		}
		if len(victims) == 0 {
			continue
		}
		var onNode []*kube.Pod
		for _, p := range victims {
			one := *p
			one.Metadata.Owners = nil
			one.Spec = p.Spec.ResourcesOnly()
			one.Spec.NodeName = name
			one.RequestProposed()
			onNode = append(onNode, &one)
		}
		nodes = append(nodes, name)
		d.Nodes = append(d.Nodes, &kube.Node{
			Metadata: kube.Metadata{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
			Status:   kube.NodeStatus{Allocatable: kube.CapacityFor(append(slices.Clone(onNode), args.Pod))},
		})
		d.Pods = append(d.Pods, onNode...)
	}
	if len(nodes) == 0 {
		return nil, nil, nil, errors.New("the proposed nodes are unknown: feed the extender, or remove nodeCacheCapable from the configuration of kube-scheduler")
	}
	pending = asPending(args.Pod)
	pending.Metadata.Owners = nil
	pending.Spec = args.Pod.Spec.ResourcesOnly()
	pending.Spec.NodeName = ""
	pending.RequestAllProposed()
	return d, pending, nodes, nil
}

// victims returns the proposed victims on a node, from the request or the cache. The
// caller must hold the lock of the cache.
func (e *Extender) victims(args *kube.ExtenderPreemptionArgs, node string, meta *kube.MetaVictims) ([]*kube.Pod, error) {
	if full := args.NodeNameToVictims[node]; full != nil && len(args.NodeNameToMetaVictims) == 0 {
		for _, p := range full.Pods {
			if p == nil || p.Metadata.UID == "" || p.Metadata.Name == "" {
				return nil, fmt.Errorf("invalid victim on node %s: name and UID are required", node)
			}
		}
		return full.Pods, nil
	}
	var list []*kube.Pod
	if meta == nil {
		return nil, nil
	}
	for _, v := range meta.Pods {
		p := e.cache.pods[v.UID]
		if p == nil {
			return nil, fmt.Errorf("unknown pod %s on node %s", v.UID, node)
		}
		list = append(list, p)
	}
	return list, nil
}

// requireExact returns an error if a note of the report affects placement.
func requireExact(notes *kube.Report) error {
	for _, n := range notes.AffectingPlacement() {
		if n.Subject != kube.VolumesNote { // kube-scheduler has checked the volumes
			return fmt.Errorf("the pod has requirements that cannot be translated: %s", n.Subject)
		}
	}
	return nil
}

// evaluate runs the scheduler for the pod on the given nodes.
func evaluate(s *scheduler.Scheduler, q *query, nodes []string, acrossNodes bool) (map[string]*kube.MetaVictims, outcome) {
	out, err := s.ProcessInstance(q.eval(), scheduler.Instance{Group: q.group, Nodes: q.snap.NodeSet(nodes...), Since: q.since}, q.snap, q.now)
	if err != nil {
		return nil, outcome{result: resultFault, err: err}
	}
	if out.Fault != nil {
		return nil, outcome{result: resultFault, err: out.Fault}
	}
	return q.readPlan(out, acrossNodes)
}

// eval returns the evaluation of the pod.
func (q *query) eval() *model.Evaluation {
	return &model.Evaluation{
		ID: "kube", Namespace: q.job.Namespace, JobID: q.job.ID, Type: q.job.Type, Priority: q.job.Priority, TriggeredBy: model.TriggerJobRegister,
	}
}

// readPlan converts a plan into a response. It returns resultUnknown if the plan is
// not possible in kube-scheduler: without evictions, or unless acrossNodes is set with
// evictions on other nodes.
func (q *query) readPlan(out *scheduler.Outcome, acrossNodes bool) (map[string]*kube.MetaVictims, outcome) {
	for i := range out.Plan.Groups {
		g := &out.Plan.Groups[i]
		if len(g.Placements) == 0 {
			continue
		}
		node := g.Placements[0].NodeID
		if leaving := q.leaving[node]; len(g.Evictions) == 0 && leaving != nil {
			return map[string]*kube.MetaVictims{node: leaving}, outcome{result: resultAnswered}
		}
		if len(g.Evictions) == 0 {
			return nil, outcome{result: resultUnknown, err: fmt.Errorf("the pod fits on node %s without evictions: the cache differs from that of kube-scheduler", node)}
		}
		var victims []*model.Allocation
		for _, v := range g.Evictions {
			a := q.snap.Alloc(v.AllocID)
			if a == nil || isReservation(a) {
				return nil, outcome{result: resultUnknown, err: fmt.Errorf("the policy evicts pods on node %s that are not running yet", node)}
			}
			if a.NodeID != node && (!acrossNodes || !a.InCohort()) {
				return nil, outcome{result: resultUnknown, err: fmt.Errorf("the policy evicts pods on other nodes than %s", node)}
			}
			victims = append(victims, a)
		}
		return map[string]*kube.MetaVictims{node: q.metaVictims(victims)}, outcome{result: resultAnswered, reasons: q.reasons(g.Choices), groups: countCohorts(victims)}
	}
	return map[string]*kube.MetaVictims{}, outcome{result: resultVetoed}
}

// countCohorts returns the number of pod groups that are evicted as a whole.
func countCohorts(victims []*model.Allocation) int {
	groups := map[model.JobKey]bool{}
	for _, v := range victims {
		if v.InCohort() {
			groups[v.Job.Key()] = true
		}
	}
	return len(groups)
}

// metaVictims returns the UIDs of victims, the highest priority first.
func (q *query) metaVictims(victims []*model.Allocation) *kube.MetaVictims {
	slices.SortFunc(victims, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(b.Job.Priority, a.Job.Priority), cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.ID, b.ID))
	})
	m := &kube.MetaVictims{}
	for _, v := range victims {
		m.Pods = append(m.Pods, kube.MetaPod{UID: v.ID})
	}
	protect.EachViolation(&q.snap.View, q.now, victims, func(int) { m.NumPDBViolations++ })
	return m
}

package extender

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// A query is one preemption or node check in terms of the scheduler.
type query struct {
	settings *model.SchedulerConfig
	now      int64
	cluster  *kube.Cluster
	snap     *state.Snapshot // the pod is feasible on no node
	job      *model.Job
	group    string               // of the job, for node checks
	podOf    map[string]*kube.Pod // by allocation ID
}

// decide evaluates a proposal with the policy.
func (e *Extender) decide(args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	dump, nodes, err := e.collect(args, proposal)
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	budgetsFromCounts(dump, proposal)
	q, err := e.newQuery(dump)
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	answer, end := e.consult(q, nodes, w)
	if end.failed() {
		return nil, end
	}
	return mergeUnknown(answer, end, proposedOnUnknown(proposal, nodes), w)
}

// consult evaluates all nodes together, or one by one if AllNodes is set.
func (e *Extender) consult(q *query, nodes []string, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	if !w.AllNodes {
		return e.evaluate(q, nodes)
	}
	answer := map[string]*kube.MetaVictims{}
	for _, node := range nodes {
		one, end := e.evaluate(q, []string{node})
		if end.failed() {
			return nil, end
		}
		maps.Copy(answer, one)
	}
	if len(answer) == 0 {
		return answer, outcome{result: resultVetoed}
	}
	return answer, outcome{result: resultChosen}
}

// collect returns the objects that the policy evaluates, and the names of the nodes.
// These are the proposed nodes of which all pods are cached. If there are none,
// collectProposed applies.
func (e *Extender) collect(args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims) (*kube.Dump, []string, error) {
	c := e.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	var known []string
	for _, node := range slices.Sorted(maps.Keys(proposal)) {
		if proposal[node] != nil && c.isComplete(node, proposal[node]) {
			known = append(known, node)
		}
	}
	d := &kube.Dump{}
	for _, name := range slices.Sorted(maps.Keys(c.budgets)) {
		d.Budgets = append(d.Budgets, c.budgets[name])
	}
	if len(known) == 0 {
		return e.collectProposed(d, args, proposal)
	}
	dump := c.neighborhood(args.Pod, known)
	dump.Budgets = d.Budgets
	return dump, known, nil
}

// neighborhood returns the nodes with all their pods, and the pending pod as the last
// one. If the pod depends on other nodes, all nodes are included. The caller must
// hold mu.
func (c *cache) neighborhood(pod *kube.Pod, nodes []string) *kube.Dump {
	d := &kube.Dump{}
	if pod.DependsOnOtherNodes() {
		nodes = slices.Sorted(maps.Keys(c.nodes)) // topology domains contain all nodes
	}
	for _, name := range nodes {
		d.Nodes = append(d.Nodes, c.nodes[name])
		for _, k := range slices.Sorted(maps.Keys(c.onNode[name])) {
			if p := c.onNode[name][k]; k != key(pod) {
				d.Pods = append(d.Pods, p)
			}
		}
	}
	d.Pods = append(d.Pods, c.nominatedPods(pod, nodes)...)
	d.Pods = append(d.Pods, asPending(pod))
	return d
}

// nominatedPods returns pods that wait for their victims to terminate, as if they
// were on their nominated nodes. A pod of lower or equal priority must not use this
// capacity. If nodes is nil, all nodes are included. The caller must hold mu.
func (c *cache) nominatedPods(pending *kube.Pod, nodes []string) []*kube.Pod {
	var list []*kube.Pod
	for _, k := range slices.Sorted(maps.Keys(c.onNode[""])) {
		p := c.onNode[""][k]
		node := p.Status.NominatedNodeName
		if node == "" || k == key(pending) || p.PriorityValue() < pending.PriorityValue() || nodes != nil && !slices.Contains(nodes, node) {
			continue
		}
		nominated := *p
		nominated.Spec.NodeName = node
		list = append(list, &nominated)
	}
	return list
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
// them. The caller must hold the lock of the cache.
func (e *Extender) collectProposed(d *kube.Dump, args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims) (*kube.Dump, []string, error) {
	var nodes []string
	for _, name := range slices.Sorted(maps.Keys(proposal)) {
		victims, err := e.victims(args, name, proposal[name])
		if err != nil {
			return nil, nil, err
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
		return nil, nil, errors.New("the proposed nodes are unknown: feed the extender, or remove nodeCacheCapable from the configuration of kube-scheduler")
	}
	pending := asPending(args.Pod)
	pending.Metadata.Owners = nil
	pending.Spec = args.Pod.Spec.ResourcesOnly()
	pending.Spec.NodeName = ""
	pending.RequestAllProposed()
	d.Pods = append(d.Pods, pending)
	return d, nodes, nil
}

// victims returns the proposed victims on a node, from the request or the cache.
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

// newQuery builds a state from the collected objects.
func (e *Extender) newQuery(d *kube.Dump) (*query, error) {
	pod := d.Pods[len(d.Pods)-1] // see neighborhood
	cluster, err := kube.Translate(d)
	if err != nil {
		return nil, err
	}
	cluster.UseBudgetStatus()
	if err := checkTranslatable(cluster, pod); err != nil {
		return nil, err
	}
	q := &query{
		settings: e.cfg.Settings(), now: e.cfg.Clock.Now().UnixNano(), cluster: cluster, podOf: map[string]*kube.Pod{},
	}
	txn := state.New().Begin(1)
	defer txn.Abort()
	for _, n := range cluster.Nodes {
		n.Ineligible = true
		if err := txn.UpsertNode(n); err != nil {
			return nil, err
		}
	}
	for _, j := range cluster.Jobs {
		if j.Pending > 0 {
			q.job = j.Job
		}
		if err := txn.UpsertJob(j.Job); err != nil {
			return nil, err
		}
	}
	if q.job == nil {
		return nil, fmt.Errorf("pod %s does not require a placement", pod.Metadata.Name)
	}
	for _, b := range cluster.Budgets {
		txn.UpsertBudget(b)
	}
	txn.UpsertAllocs(q.allocations()...)
	config := model.SchedulerConfig{Algorithm: model.SpreadRank}
	if q.settings != nil {
		config = *q.settings
	}
	for i := range config.Preemption {
		config.Preemption[i] = true // kube-scheduler decides whether to preempt
	}
	txn.SetConfig(&config)
	q.snap = txn.Commit()
	return q, nil
}

// checkTranslatable returns an error if the model cannot express a requirement of the pod.
func checkTranslatable(c *kube.Cluster, pod *kube.Pod) error {
	notes := &kube.Report{}
	kube.NewTranslator(c.Nodes, notes).Group(pod, false)
	return requireExact(notes)
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

// allocations returns the allocations of all pods on nodes.
func (q *query) allocations() []*model.Allocation {
	next := map[*model.Group]int{}
	var list []*model.Allocation
	for _, i := range q.cluster.Instances {
		a := &model.Allocation{
			ID: i.ID, Job: i.Job.Job, Group: i.Group, NodeID: i.Node, Index: next[i.Group],
			Desired: model.DesiredRun, Client: model.ClientRunning, Started: true,
		}
		if i.Job.Type.PerNode() {
			a.Index = 0
		}
		next[i.Group]++
		if at := i.Pod.Started(); !at.IsZero() {
			a.StartTime = at.UnixNano()
		} else {
			a.StartTime = q.now
		}
		a.CreateTime = a.StartTime
		q.podOf[a.ID] = i.Pod
		list = append(list, a)
	}
	return list
}

// evaluate runs the scheduler with the pod restricted to the given nodes.
func (e *Extender) evaluate(q *query, nodes []string) (map[string]*kube.MetaVictims, outcome) {
	snap, err := q.restrictedTo(nodes)
	if err != nil {
		return nil, outcome{result: resultInternal, err: err}
	}
	s := scheduler.New(scheduler.Config{Policies: e.cfg.Policies, Workers: 1, Forget: true})
	out, err := s.Process(q.eval(), snap, q.now)
	if err != nil {
		return nil, outcome{result: resultFault, err: err}
	}
	if out.Fault != nil {
		return nil, outcome{result: resultFault, err: out.Fault}
	}
	return q.readPlan(snap, out)
}

// eval returns the evaluation of the pod.
func (q *query) eval() *model.Evaluation {
	return &model.Evaluation{
		ID: "kube", Namespace: q.job.Namespace, JobID: q.job.ID, Type: q.job.Type, Priority: q.job.Priority, TriggeredBy: model.TriggerJobRegister,
	}
}

// restrictedTo returns the state in which the pod may be placed on the given nodes only.
func (q *query) restrictedTo(nodes []string) (*state.Snapshot, error) {
	txn := q.snap.Fork(q.snap.Index() + 1)
	defer txn.Abort()
	for _, name := range nodes {
		n := *q.snap.Node(name)
		n.Ineligible = false
		if err := txn.UpsertNode(&n); err != nil {
			return nil, err
		}
	}
	return txn.Snapshot(), nil
}

// readPlan converts a plan into a response. It returns resultUnknown if the plan is
// not possible in kube-scheduler: without evictions, or with evictions on other
// nodes.
func (q *query) readPlan(snap *state.Snapshot, out *scheduler.Outcome) (map[string]*kube.MetaVictims, outcome) {
	for i := range out.Plan.Groups {
		g := &out.Plan.Groups[i]
		if len(g.Placements) == 0 {
			continue
		}
		node := g.Placements[0].NodeID
		if len(g.Evictions) == 0 {
			return nil, outcome{result: resultUnknown, err: fmt.Errorf("the pod fits on node %s without evictions: the cache differs from that of kube-scheduler", node)}
		}
		var victims []*model.Allocation
		for _, v := range g.Evictions {
			a := snap.Alloc(v.AllocID)
			if a == nil || q.podOf[a.ID] == nil || a.NodeID != node {
				return nil, outcome{result: resultUnknown, err: fmt.Errorf("the policy evicts on nodes other than %s, which kube-scheduler does not support", node)}
			}
			victims = append(victims, a)
		}
		return map[string]*kube.MetaVictims{node: q.metaVictims(snap, victims)}, outcome{result: resultChosen}
	}
	return map[string]*kube.MetaVictims{}, outcome{result: resultVetoed}
}

// metaVictims returns the UIDs of victims, the highest priority first.
func (q *query) metaVictims(snap *state.Snapshot, victims []*model.Allocation) *kube.MetaVictims {
	slices.SortFunc(victims, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(b.Job.Priority, a.Job.Priority), cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.ID, b.ID))
	})
	m := &kube.MetaVictims{}
	for _, v := range victims {
		m.Pods = append(m.Pods, kube.MetaPod{UID: q.podOf[v.ID].Metadata.UID})
	}
	protect.EachViolation(&snap.View, q.now, victims, func(int) { m.NumPDBViolations++ })
	return m
}

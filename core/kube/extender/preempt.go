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

// query is one preemption as the engine is asked about it.
type query struct {
	settings *model.SchedulerConfig
	now      int64
	cluster  *kube.Cluster
	snap     *state.Snapshot // in which the pod may go to no node
	job      *model.Job
	group    string               // of the job, where it is the one that is asked about
	podOf    map[string]*kube.Pod // by allocation
}

// decide asks the policy.
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

// consult asks the policy about the nodes at once, or about one after the other.
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

// collect collects what the policy is to see: the proposed nodes of which
// everything is known, with all that is on them. Where nothing but the proposed
// victims is known it sees those, and may choose among nodes and refuse.
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
	around := c.neighborhood(args.Pod, known)
	around.Budgets = d.Budgets
	return around, known, nil
}

// neighborhood is nodes with everything on them, those around them that the pod looks at, and
// the pod itself, which comes last. mu is held.
func (c *cache) neighborhood(pod *kube.Pod, nodes []string) *kube.Dump {
	d := &kube.Dump{}
	if pod.DependsOnOtherNodes() {
		nodes = slices.Sorted(maps.Keys(c.nodes)) // zones are made of all nodes
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

// nominatedPods are pods that wait for victims to leave, and whose room a pod of lower
// or equal priority must respect; nodes nil: on any. mu is held.
func (c *cache) nominatedPods(asker *kube.Pod, nodes []string) []*kube.Pod {
	var list []*kube.Pod
	for _, k := range slices.Sorted(maps.Keys(c.onNode[""])) {
		p := c.onNode[""][k]
		node := p.Status.NominatedNodeName
		if node == "" || k == key(asker) || p.PriorityValue() < asker.PriorityValue() || nodes != nil && !slices.Contains(nodes, node) {
			continue
		}
		held := *p
		held.Spec.NodeName = node
		list = append(list, &held)
	}
	return list
}

// asPending is the pod without a node, and without an owner where that would make
// it one of every node.
func asPending(p *kube.Pod) *kube.Pod {
	pending := *p
	pending.Spec.NodeName, pending.Status.NominatedNodeName, pending.Status.Phase = "", "", "Pending"
	pending.Metadata.DeletionTimestamp, pending.Spec.SchedulingGates = "", nil
	if slices.ContainsFunc(p.Metadata.Owners, func(o kube.Owner) bool { return o.Kind == "DaemonSet" }) {
		pending.Metadata.Owners = nil
	}
	return &pending
}

// collectProposed makes nodes of which the proposed victims are all there is, and
// on which the pod fits when they are all gone, and not before: kube-scheduler has
// found that each of them must go. mu of the cache is held.
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
		return nil, nil, errors.New("nothing is known of the nodes: feed the extender, or leave nodeCacheCapable out")
	}
	asker := asPending(args.Pod)
	asker.Metadata.Owners = nil
	asker.Spec = args.Pod.Spec.ResourcesOnly()
	asker.Spec.NodeName = ""
	asker.RequestAllProposed()
	d.Pods = append(d.Pods, asker)
	return d, nodes, nil
}

// victims are the pods that are proposed on a node, from the request or the cache.
func (e *Extender) victims(args *kube.ExtenderPreemptionArgs, node string, meta *kube.MetaVictims) ([]*kube.Pod, error) {
	if whole := args.NodeNameToVictims[node]; whole != nil && len(args.NodeNameToMetaVictims) == 0 {
		for _, p := range whole.Pods {
			if p == nil || p.Metadata.UID == "" || p.Metadata.Name == "" {
				return nil, fmt.Errorf("a victim on node %s has no name or no UID", node)
			}
		}
		return whole.Pods, nil
	}
	var list []*kube.Pod
	if meta == nil {
		return nil, nil
	}
	for _, v := range meta.Pods {
		p := e.cache.pods[v.UID]
		if p == nil {
			return nil, fmt.Errorf("pod %s on node %s is not known", v.UID, node)
		}
		list = append(list, p)
	}
	return list, nil
}

// newQuery makes a state of what was gathered.
func (e *Extender) newQuery(d *kube.Dump) (*query, error) {
	pod := d.Pods[len(d.Pods)-1] // who asks comes last
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
		return nil, fmt.Errorf("pod %s cannot be placed as it is", pod.Metadata.Name)
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
		config.Preemption[i] = true // kube-scheduler has decided that
	}
	txn.SetConfig(&config)
	q.snap = txn.Commit()
	return q, nil
}

// checkTranslatable is whether what the pod asks for can be told.
func checkTranslatable(c *kube.Cluster, pod *kube.Pod) error {
	notes := &kube.Report{}
	kube.NewTranslator(c.Nodes, notes).Group(pod, false)
	return requireExact(notes)
}

// requireExact is whether notes of a pod say nothing that a placement may differ for.
func requireExact(notes *kube.Report) error {
	for _, n := range notes.AffectingPlacement() {
		if n.Subject != kube.VolumesNote { // kube-scheduler proposes nodes that the volumes reach
			return fmt.Errorf("the policy would not see all that the pod asks for: there are %s", n.Subject)
		}
	}
	return nil
}

// allocations are the pods that have nodes.
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

// evaluate asks the policy for the best of some nodes.
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

// eval is the evaluation of the pod.
func (q *query) eval() *model.Evaluation {
	return &model.Evaluation{
		ID: "kube", Namespace: q.job.Namespace, JobID: q.job.ID, Type: q.job.Type, Priority: q.job.Priority, TriggeredBy: model.TriggerJobRegister,
	}
}

// restrictedTo is the state in which the pod may go to some nodes.
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

// readPlan turns a plan into an answer.
func (q *query) readPlan(snap *state.Snapshot, out *scheduler.Outcome) (map[string]*kube.MetaVictims, outcome) {
	for i := range out.Plan.Groups {
		g := &out.Plan.Groups[i]
		if len(g.Placements) == 0 {
			continue
		}
		node := g.Placements[0].NodeID
		if len(g.Evictions) == 0 {
			return nil, outcome{result: resultUnknown, err: fmt.Errorf("the pod seems to fit on node %s without evicting anybody: what is known is not what kube-scheduler knows", node)}
		}
		var victims []*model.Allocation
		for _, v := range g.Evictions {
			a := snap.Alloc(v.AllocID)
			if a == nil || q.podOf[a.ID] == nil || a.NodeID != node {
				return nil, outcome{result: resultUnknown, err: fmt.Errorf("the policy evicts on other nodes than %s, which kube-scheduler cannot", node)}
			}
			victims = append(victims, a)
		}
		return map[string]*kube.MetaVictims{node: q.metaVictims(snap, victims)}, outcome{result: resultChosen}
	}
	return map[string]*kube.MetaVictims{}, outcome{result: resultVetoed}
}

// metaVictims names victims, the most important first, as kube-scheduler reads them.
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

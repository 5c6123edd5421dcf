package kubernetes

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// A dryRun takes the place of the dry run of DefaultPreemption, which runs all filters once
// for each pod of each node. The policy needs none of it: it chooses among all pods, and
// only its choice is checked by filters. So the dry run is deferred until it is needed:
// if the policy fails, or finds no node.
//
// The methods that kube-scheduler calls for nodes are safe for concurrent use.
type dryRun struct {
	*defaultpreemption.DefaultPreemption
	handle fwk.Handle

	mu    sync.Mutex
	nodes map[string]*deferredNode // of the current preemption
}

// A deferredNode holds the arguments of the dry run on a node. All are copies of its own.
type deferredNode struct {
	state     fwk.CycleState
	preemptor *corev1.Pod
	info      fwk.NodeInfo
	victims   []*preemption.DomainVictim
	budgets   []*policyv1.PodDisruptionBudget

	done     bool                // the dry run has changed the copies
	selected *extenderv1.Victims // its result; nil: evictions do not help
}

var _ preemption.Interface = (*dryRun)(nil)

// reset forgets the nodes of the previous preemption.
func (d *dryRun) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes = map[string]*deferredNode{}
}

// isDeferred reports whether the policy is the first to see the candidates. Other extenders
// expect those of kube-scheduler.
func (d *dryRun) isDeferred() bool {
	return !slices.ContainsFunc(d.handle.Extenders(), fwk.Extender.SupportsPreemption)
}

// SelectVictimsOnNode returns all pods that may be evicted, the most important first, and
// defers the selection.
func (d *dryRun) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *corev1.Pod, info fwk.NodeInfo, victims []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	if !d.isDeferred() {
		return d.DefaultPreemption.SelectVictimsOnNode(ctx, state, preemptor, info, victims, budgets)
	}
	var pods []*corev1.Pod
	for _, v := range victims {
		if v.Priority() >= corev1helpers.PodPriority(preemptor) {
			continue
		}
		for _, p := range v.Pods() {
			if p.GetPod().Spec.NodeName == info.Node().Name {
				pods = append(pods, p.GetPod())
			}
		}
	}
	if len(pods) == 0 {
		return nil, 0, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "No preemption victims found for incoming pod")
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Compare(corev1helpers.PodPriority(b), corev1helpers.PodPriority(a))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes[info.Node().Name] = &deferredNode{state: state, preemptor: preemptor, info: info, victims: victims, budgets: budgets}
	return pods, 0, nil
}

// units returns the pods of a node, and the groups with a pod on it of which kube-scheduler
// evicts all pods together, those on other nodes included.
func (d *dryRun) units(ctx context.Context, info fwk.NodeInfo) ([]*preemption.DomainVictim, error) {
	return d.Evaluator.GetVictimsOnNode(ctx, info)
}

// proposal runs the deferred dry run, and returns the victims that DefaultPreemption
// selects on each node on which evictions help. Candidates that were not deferred are
// returned as they are.
func (d *dryRun) proposal(ctx context.Context, candidates map[string]*extenderv1.Victims) map[string]*extenderv1.Victims {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*deferredNode
	for node := range candidates {
		if n := d.nodes[node]; n != nil && !n.done {
			list = append(list, n)
		}
	}
	d.handle.Parallelizer().Until(ctx, len(list), func(i int) { list[i].selectVictims(ctx, d.DefaultPreemption) }, Name)
	all := make(map[string]*extenderv1.Victims, len(candidates))
	for node, victims := range candidates {
		n := d.nodes[node]
		if n == nil {
			all[node] = victims
		} else if n.selected != nil {
			all[node] = n.selected
		}
	}
	return all
}

// selectVictims runs the dry run of a node.
func (n *deferredNode) selectVictims(ctx context.Context, by *defaultpreemption.DefaultPreemption) {
	n.done = true
	pods, violations, status := by.SelectVictimsOnNode(ctx, n.state, n.preemptor, n.info, n.victims, n.budgets)
	if status.IsSuccess() && len(pods) > 0 {
		n.selected = &extenderv1.Victims{Pods: pods, NumPDBViolations: int64(violations)}
	}
}

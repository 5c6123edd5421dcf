package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// A groupPreemption evicts pods for a pod group. kube-scheduler's own evaluator removes all
// pods of lower priority from a copy of the cluster, schedules the group, and puts back
// each pod without which the group still fits. Here it removes the victims of the policy
// only: what it would put back is not evicted either.
//
// kube-scheduler calls it in one goroutine.
type groupPreemption struct {
	consultant *consultant
	handle     *groupHandle
	evaluator  *preemption.PodGroupEvaluator
	composite  bool // CompositePodGroups are enabled
}

func newGroupPreemption(c *consultant, executor *preemption.Executor, features feature.Features) *groupPreemption {
	h := &groupHandle{Handle: c.handle, lister: groupLister{MutableSnapshotSharedLister: c.handle.MutableSnapshotSharedLister()}}
	return &groupPreemption{
		consultant: c, handle: h, evaluator: preemption.NewPodGroupEvaluator(h, executor, features), composite: features.EnableCompositePodGroup,
	}
}

// PodGroupPostFilter evicts pods so that a pod group fits on nodes.
func (p *Plugin) PodGroupPostFilter(ctx context.Context, _ fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (result *fwk.PodGroupPostFilterResult, status *fwk.Status) {
	defer func() { metrics.WorkloadPreemptionAttempts.WithLabelValues(status.Code().String()).Inc() }()
	result, status = p.groups.preempt(ctx, group, schedule)
	if text := status.Message(); text != "" {
		status = fwk.NewStatus(status.Code(), "pod group preemption: "+text)
	}
	return result, status
}

// preempt lets the policy choose. If it fails, or the group does not fit without its victims,
// the choice of kube-scheduler stands unless onFault is none.
func (g *groupPreemption) preempt(ctx context.Context, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	c := g.consultant
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.isNoPreemption(group) {
		result, _, status := g.evaluate(ctx, group, schedule, nil)
		return result, status
	}
	gang, err := g.gang(group)
	var choice *extender.GangChoice
	if err == nil {
		choice, err = extender.GangsOf(c.extender).Choose(ctx, gang)
	}
	if err == nil && len(choice.Victims) == 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the policy allows no eviction that helps")
	}
	if err == nil {
		chosen := make(map[types.UID]bool, len(choice.Victims))
		for _, uid := range choice.Victims {
			chosen[types.UID(uid)] = true
		}
		result, evicted, status := g.evaluate(ctx, group, schedule, chosen)
		if status.IsSuccess() {
			extender.GangsOf(c.extender).Record(gang, evicted)
			return result, status
		}
		err = fmt.Errorf("the pod group does not fit without the victims of the policy: %s", status.Message())
		extender.GangsOf(c.extender).Record(gang, nil)
	}
	c.log.WarnContext(ctx, "policy not used for the preemption of a pod group", "pod_group", klog.KObj(group).String(), "err", err)
	if c.onFault == extender.EvictNone {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	result, evicted, status := g.evaluate(ctx, group, schedule, nil)
	if gang != nil && status.IsSuccess() {
		extender.GangsOf(c.extender).RecordProposal(gang, evicted)
	}
	return result, status
}

// gang returns the group as a preemptor, after the cache of the extender was updated from
// the snapshot. The caller must hold the mutex of the consultant.
func (g *groupPreemption) gang(group fwk.PodGroupInfo) (*extender.Gang, error) {
	lister := g.consultant.handle.MutableSnapshotSharedLister()
	all, err := lister.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	if err := g.consultant.feed(all); err != nil {
		return nil, err
	}
	one := &extender.Gang{Namespace: group.GetNamespace(), Name: group.GetName()}
	for _, p := range group.GetUnscheduledPods() {
		value, err := watch.Convert(p)
		if err != nil {
			return nil, err
		}
		one.Pods = append(one.Pods, value.(*kube.Pod))
	}
	if composite := group.GetCompositePodGroup(); composite != nil {
		// How many pods of each of its groups suffice is not expressed: all of them are
		// placed, or kube-scheduler chooses.
		one.UID, one.Priority, one.AtLeast = string(composite.UID), util.CompositePodGroupPriority(composite), len(one.Pods)
		return one, nil
	}
	spec := group.GetPodGroup()
	one.UID, one.Priority, one.AtLeast = string(spec.UID), util.PodGroupPriority(spec), 1
	if policy := spec.Spec.SchedulingPolicy.Gang; policy != nil {
		state, err := lister.PodGroupStates().Get(one.Namespace, one.Name)
		if err != nil {
			return nil, err
		}
		one.AtLeast = int(policy.MinCount) - state.ScheduledPodsCount()
	}
	return one, nil
}

// isNoPreemption reports whether kube-scheduler evicts nothing for the group: it must not
// preempt, or it waits for pods that are terminating already.
func (g *groupPreemption) isNoPreemption(group fwk.PodGroupInfo) bool {
	var priority int32
	if composite := group.GetCompositePodGroup(); composite != nil {
		priority = util.CompositePodGroupPriority(composite)
		if policy := composite.Spec.PreemptionPolicy; policy != nil && *policy == schedulingv1alpha3.PreemptNever {
			return true
		}
	} else {
		priority = util.PodGroupPriority(group.GetPodGroup())
		if policy := group.GetPodGroup().Spec.PreemptionPolicy; policy != nil && *policy == schedulingv1beta1.PreemptNever {
			return true
		}
	}
	lister := g.consultant.handle.MutableSnapshotSharedLister()
	var composites fwk.CompositePodGroupLister
	if g.composite {
		composites = lister.CompositePodGroups()
	}
	for _, p := range group.GetUnscheduledPods() {
		if policy := p.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
			return true
		}
		if p.Status.NominatedNodeName == "" {
			continue
		}
		info, err := lister.NodeInfos().Get(p.Status.NominatedNodeName)
		if err != nil {
			continue // the node is gone
		}
		for _, other := range info.GetPods() {
			if preemption.PodTerminatingByPreemption(other.GetPod()) && preemption.GetPodPriority(other.GetPod(), lister.PodGroups(), composites) < priority {
				return true
			}
		}
	}
	return false
}

// evaluate runs kube-scheduler's evaluator, which evicts some of the chosen pods, or of all
// pods if chosen is nil. It returns the UIDs of the evicted ones.
func (g *groupPreemption) evaluate(ctx context.Context, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc, chosen map[types.UID]bool) (result *fwk.PodGroupPostFilterResult, evicted []string, status *fwk.Status) {
	l := &g.handle.lister
	l.chosen, l.removed = chosen, map[types.UID]bool{}
	if err := l.StartMutations(); err != nil {
		return nil, nil, fwk.AsStatus(fmt.Errorf("failed to start mutations: %w", err))
	}
	defer func() {
		if err := l.EndMutations(); err != nil {
			status = fwk.AsStatus(fmt.Errorf("failed to end mutations: %w", err))
		}
	}()
	result, status = g.evaluator.Preempt(ctx, group, schedule)
	for _, uid := range slices.Sorted(maps.Keys(l.removed)) {
		evicted = append(evicted, string(uid))
	}
	return result, evicted, status
}

// A groupHandle is the handle of the evaluator: it shows the chosen victims as the only pods
// that may be evicted. Filters see all pods.
type groupHandle struct {
	fwk.Handle
	lister groupLister
}

// MutableSnapshotSharedLister returns the snapshot that the evaluator changes.
func (h *groupHandle) MutableSnapshotSharedLister() fwk.MutableSnapshotSharedLister {
	return &h.lister
}

// RunFilterPluginsWithNominatedPods runs the filters for a pod on a node.
func (h *groupHandle) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	return h.Handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, wholeNode(info))
}

// RunPreFilterExtensionAddPod reports an added pod to plugins.
func (h *groupHandle) RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, added fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return h.Handle.RunPreFilterExtensionAddPod(ctx, state, pod, added, wholeNode(info))
}

// RunPreFilterExtensionRemovePod reports a removed pod to plugins.
func (h *groupHandle) RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, removed fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return h.Handle.RunPreFilterExtensionRemovePod(ctx, state, pod, removed, wholeNode(info))
}

// A groupLister is kube-scheduler's snapshot, of which List shows the chosen pods only.
type groupLister struct {
	fwk.MutableSnapshotSharedLister
	chosen  map[types.UID]bool // nil: all pods
	removed map[types.UID]bool // pods that are removed from their nodes
}

// NodeInfos returns the nodes.
func (l *groupLister) NodeInfos() fwk.NodeInfoLister {
	all := l.MutableSnapshotSharedLister.NodeInfos()
	if l.chosen == nil {
		return all
	}
	return &victimLister{all, l.chosen}
}

// RemovePod removes a pod.
func (l *groupLister) RemovePod(logger klog.Logger, pod *corev1.Pod, node string) error {
	if pod.Spec.NodeName != "" { // the pods of the group have none
		l.removed[pod.UID] = true
	}
	return l.MutableSnapshotSharedLister.RemovePod(logger, pod, node)
}

// AddPod adds a pod.
func (l *groupLister) AddPod(p fwk.PodInfo, node string) error {
	delete(l.removed, p.GetPod().UID)
	return l.MutableSnapshotSharedLister.AddPod(p, node)
}

// A victimLister lists nodes with the chosen pods only.
type victimLister struct {
	fwk.NodeInfoLister
	chosen map[types.UID]bool
}

// List returns all nodes. Get returns them with all their pods.
func (l *victimLister) List() ([]fwk.NodeInfo, error) {
	all, err := l.NodeInfoLister.List()
	list := make([]fwk.NodeInfo, len(all))
	for i, info := range all {
		one := &victimNode{NodeInfo: info}
		for _, p := range info.GetPods() {
			if l.chosen[p.GetPod().UID] {
				one.victims = append(one.victims, p)
			}
		}
		list[i] = one
	}
	return list, err
}

// A victimNode is a node of which GetPods returns the chosen pods only.
type victimNode struct {
	fwk.NodeInfo
	victims []fwk.PodInfo
}

// GetPods returns the chosen pods.
func (n *victimNode) GetPods() []fwk.PodInfo { return n.victims }

// wholeNode returns the node with all its pods.
func wholeNode(info fwk.NodeInfo) fwk.NodeInfo {
	if one, ok := info.(*victimNode); ok {
		return one.NodeInfo
	}
	return info
}

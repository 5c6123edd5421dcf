package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// A consultant is the step of a preemption in which extenders are called: it lets the
// policy choose. DefaultPreemption sees it as an extender; it has no other verbs.
type consultant struct {
	fwk.Extender // nil: none of the other methods is called
	handle       fwk.Handle
	budgets      policylisters.PodDisruptionBudgetLister
	extender     *extender.Extender
	mirror       *mirror
	related      *relatedObjects
	dryRun       *dryRun
	onFault      extender.OnFault
	log          *slog.Logger
	deadline     time.Duration // of a named victim
	fed          atomic.Bool   // the extender has received the whole cluster

	// mu protects the mirror, and is held while it is fed for the first time.
	mu sync.Mutex

	// cycle is the scheduling cycle of the pod in PostFilter.
	cycle struct {
		ctx   context.Context
		state fwk.CycleState
		// hopeless is set if there is no node on which evictions help.
		hopeless bool
	}
	// named holds the victims of earlier choices until they are gone or overdue: the pod
	// fits once they are gone.
	named map[types.UID]time.Time
}

var _ fwk.Extender = (*consultant)(nil)

func (c *consultant) Name() string                  { return Name }
func (c *consultant) SupportsPreemption() bool      { return true }
func (c *consultant) IsInterested(*corev1.Pod) bool { return true }
func (c *consultant) IsIgnorable() bool             { return false }

// ProcessPreemption returns the node and the victims that the policy chooses.
func (c *consultant) ProcessPreemption(pod *corev1.Pod, proposal map[string]*extenderv1.Victims, nodes fwk.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	all, err := nodes.List()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.feed(all); err != nil {
		return c.fault(pod, proposal, err)
	}
	value, err := watch.Convert(pod)
	if err != nil {
		return c.fault(pod, proposal, err)
	}
	preemptor, remaining := value.(*kube.Pod), maps.Clone(proposal)
	for range maxAttempts {
		answer, err := c.choose(preemptor, remaining, nodes)
		if err != nil {
			return c.fault(pod, proposal, err)
		}
		if len(answer) == 0 {
			c.cycle.hopeless = len(c.dryRun.proposal(c.cycle.ctx, remaining)) == 0
			return answer, nil
		}
		node, problem := c.verifyAll(pod, answer, nodes)
		if problem == nil {
			c.record(answer)
			return answer, nil
		}
		c.log.Info("choice of the policy not used", "pod", klog.KObj(pod).String(), "err", problem)
		if delete(remaining, node); len(remaining) == 0 {
			break
		}
	}
	return c.fault(pod, proposal, errNotFeasible)
}

// errNotFeasible means that filters of kube-scheduler, such as those of volumes, exclude the
// nodes that the policy chose.
var errNotFeasible = errors.New("the pod fits on no node that the policy chooses")

// choose returns the choice of the policy.
func (c *consultant) choose(pod *kube.Pod, proposal map[string]*extenderv1.Victims, nodes fwk.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	answer, err := c.extender.Choose(c.cycle.ctx, &kube.ExtenderPreemptionArgs{Pod: pod, NodeNameToMetaVictims: metaVictims(proposal)})
	if err != nil {
		return nil, err
	}
	return c.podsOf(answer, nodes)
}

// maxAttempts bounds the choices of the policy that are checked for one pod.
const maxAttempts = 3

// verifyAll verifies the choices, and returns the node of the first that is wrong.
func (c *consultant) verifyAll(pod *corev1.Pod, answer map[string]*extenderv1.Victims, nodes fwk.NodeInfoLister) (string, error) {
	for node, victims := range answer {
		if err := c.verify(pod, node, victims.Pods, nodes); err != nil {
			return node, err
		}
	}
	return "", nil
}

// feed updates the cache of the extender from the snapshot. The caller must hold mu.
func (c *consultant) feed(all []fwk.NodeInfo) error {
	budgets, err := c.budgets.List(labels.Everything())
	if err != nil {
		return err
	}
	d, whole, err := c.mirror.changes(all, c.handle.NominatedPodsForNode, budgets)
	if err != nil {
		return err
	}
	if !whole {
		c.extender.Feed(d, false)
		return nil
	}
	if err := c.related.feedAll(d); err != nil {
		c.mirror = newMirror(c.mirror.converted) // the next snapshot is fed as a whole again
		return err
	}
	c.fed.Store(true)
	return nil
}

// podChanged feeds a pod between the snapshots, so that the results of preemptions are
// counted without waiting for the next one.
func (c *consultant) podChanged(p *kube.Pod, deleted bool) {
	switch {
	case !c.fed.Load():
	case deleted:
		c.extender.Feed(&kube.Dump{Deleted: []any{p}}, false)
	default:
		c.extender.Feed(&kube.Dump{Pods: []*kube.Pod{p}}, false)
	}
}

// fault returns the result of a preemption that the policy cannot decide.
func (c *consultant) fault(pod *corev1.Pod, candidates map[string]*extenderv1.Victims, err error) (map[string]*extenderv1.Victims, error) {
	c.log.Warn("policy not used for a preemption", "pod", klog.KObj(pod).String(), "err", err)
	if c.onFault == extender.EvictNone {
		return map[string]*extenderv1.Victims{}, nil
	}
	proposal := c.dryRun.proposal(c.cycle.ctx, candidates)
	c.cycle.hopeless = len(proposal) == 0
	if value, err := watch.Convert(pod); err == nil {
		c.extender.Record(value.(*kube.Pod), metaVictims(proposal))
	}
	return proposal, nil
}

// verify checks with kube-scheduler's filters that the pod fits once the victims, and
// those of earlier choices, are gone, and that no pod group is evicted in part.
func (c *consultant) verify(pod *corev1.Pod, node string, victims []*corev1.Pod, nodes fwk.NodeInfoLister) error {
	info, err := nodes.Get(node)
	if err != nil {
		return err
	}
	leaving := make(map[types.UID]bool, len(victims))
	for _, v := range victims {
		leaving[v.UID] = true
	}
	if err := c.verifyGroups(info, leaving); err != nil {
		return err
	}
	copied, state := info.Snapshot(), c.cycle.state.Clone()
	logger := klog.FromContext(c.cycle.ctx)
	for _, v := range victims {
		if v.Spec.NodeName == node {
			continue
		}
		// As in DefaultPreemption, plugins that count pods of other nodes are notified.
		other, err := nodes.Get(v.Spec.NodeName)
		if err != nil {
			return err
		}
		for _, p := range other.GetPods() {
			if p.GetPod().UID != v.UID {
				continue
			}
			if status := c.handle.RunPreFilterExtensionRemovePod(c.cycle.ctx, state, pod, p, other); !status.IsSuccess() {
				return status.AsError()
			}
		}
	}
	for _, p := range info.GetPods() {
		v := p.GetPod()
		if _, named := c.named[v.UID]; !leaving[v.UID] && !named && v.DeletionTimestamp == nil {
			continue
		}
		if err := copied.RemovePod(logger, v); err != nil {
			return err
		}
		if status := c.handle.RunPreFilterExtensionRemovePod(c.cycle.ctx, state, pod, p, copied); !status.IsSuccess() {
			return status.AsError()
		}
	}
	if status := c.handle.RunFilterPluginsWithNominatedPods(c.cycle.ctx, state, pod, copied); !status.IsSuccess() {
		return fmt.Errorf("the pod does not fit on node %s without the victims of the policy: %s", node, status.Message())
	}
	return nil
}

// verifyGroups checks that the victims contain all pods of each group, composite ones
// included, that kube-scheduler evicts as a whole.
func (c *consultant) verifyGroups(info fwk.NodeInfo, leaving map[types.UID]bool) error {
	units, err := c.dryRun.units(c.cycle.ctx, info)
	if err != nil {
		return err
	}
	for _, u := range units {
		gone := 0
		for _, p := range u.Pods() {
			if leaving[p.GetPod().UID] {
				gone++
			}
		}
		if gone > 0 && gone < len(u.Pods()) {
			return fmt.Errorf("the policy evicts %d of the %d pods of the group of pod %s, which are evicted together", gone, len(u.Pods()), klog.KObj(u.Pods()[0].GetPod()))
		}
	}
	return nil
}

// record stores the victims of a choice, and forgets those that are overdue.
func (c *consultant) record(answer map[string]*extenderv1.Victims) {
	now := time.Now()
	for uid, until := range c.named {
		if c.mirror.pods[uid].pod == nil || now.After(until) {
			delete(c.named, uid)
		}
	}
	for _, victims := range answer {
		for _, v := range victims.Pods {
			c.named[v.UID] = now.Add(c.deadline)
		}
	}
}

// metaVictims returns a proposal by UID.
func metaVictims(proposal map[string]*extenderv1.Victims) map[string]*kube.MetaVictims {
	list := make(map[string]*kube.MetaVictims, len(proposal))
	for node, victims := range proposal {
		one := &kube.MetaVictims{NumPDBViolations: victims.NumPDBViolations, Pods: make([]kube.MetaPod, len(victims.Pods))}
		for i, p := range victims.Pods {
			one.Pods[i].UID = string(p.UID)
		}
		list[node] = one
	}
	return list
}

// podsOf returns the pods that an answer names. It returns an error if one is neither on
// the node nor, as a member of a pod group, on another one.
func (c *consultant) podsOf(answer *kube.ExtenderPreemptionResult, nodes fwk.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	list := make(map[string]*extenderv1.Victims, len(answer.NodeNameToMetaVictims))
	for node, victims := range answer.NodeNameToMetaVictims {
		byUID := map[types.UID]*corev1.Pod{}
		if err := addPodsOn(node, nodes, byUID); err != nil {
			return nil, err
		}
		one := &extenderv1.Victims{NumPDBViolations: victims.NumPDBViolations}
		for _, v := range victims.Pods {
			uid := types.UID(v.UID)
			if on := c.mirror.pods[uid].node; byUID[uid] == nil && on != "" && on != node {
				if err := addPodsOn(on, nodes, byUID); err != nil {
					return nil, err
				}
			}
			if byUID[uid] == nil {
				return nil, fmt.Errorf("victim %s is not on node %s", v.UID, node)
			}
			one.Pods = append(one.Pods, byUID[uid])
		}
		list[node] = one
	}
	return list, nil
}

// addPodsOn adds the pods on a node.
func addPodsOn(node string, nodes fwk.NodeInfoLister, byUID map[types.UID]*corev1.Pod) error {
	info, err := nodes.Get(node)
	if err != nil {
		return err
	}
	for _, p := range info.GetPods() {
		byUID[p.GetPod().UID] = p.GetPod()
	}
	return nil
}

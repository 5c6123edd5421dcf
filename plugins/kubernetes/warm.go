package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// warm feeds the extender with the objects of the informers as soon as they have all of
// them, so that the first preemption is as fast as later ones: kube-scheduler's snapshot then
// differs in few objects. A preemption that starts earlier waits.
func (c *consultant) warm(ctx context.Context, from informers.SharedInformerFactory) {
	nodes, pods, budgets := from.Core().V1().Nodes(), from.Core().V1().Pods(), from.Policy().V1().PodDisruptionBudgets()
	synced := append(c.related.hasSynced(), nodes.Informer().HasSynced, pods.Informer().HasSynced, budgets.Informer().HasSynced)
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fed.Load() {
		return
	}
	listed, err := nodes.Lister().List(labels.Everything())
	var all []*corev1.Pod
	if err == nil {
		all, err = pods.Lister().List(labels.Everything())
	}
	if err == nil {
		err = c.feed(nodeInfos(listed, all))
	}
	if err != nil {
		c.log.WarnContext(ctx, "cluster not read before the first preemption, which will take longer", "err", err)
		return
	}
	c.log.InfoContext(ctx, "cluster read for preemptions", "nodes", len(listed), "pods", len(all))
}

// nodeInfos returns the nodes with their pods, as in a snapshot of kube-scheduler. Their
// generations differ from those of any snapshot.
func nodeInfos(nodes []*corev1.Node, pods []*corev1.Pod) []fwk.NodeInfo {
	on := make(map[string][]*corev1.Pod, len(nodes))
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
	}
	list := make([]fwk.NodeInfo, len(nodes))
	for i, n := range nodes {
		info := framework.NewNodeInfo(on[n.Name]...)
		info.SetNode(n)
		list[i] = info
	}
	return list
}

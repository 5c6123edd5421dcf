package extender

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
)

// countedVictimLabel is set on the proposed victims of a node for which
// kube-scheduler counted budget violations. Its value is the node.
const countedVictimLabel = "cede.import/counted"

// budgetsFromCounts derives budgets from the violations that kube-scheduler counted,
// if the cache has no budgets. The proposed victims of a node get a budget that allows
// the eviction of all but as many as there are violations. Evicting all of them
// violates it as often as kube-scheduler counted; evicting fewer violates it at most
// that often, because the request does not identify the protected victims. The policy
// weighs these budgets like any others.
//
// A budget applies to one namespace. If the victims are in several, the first
// namespaces get as much of the count as they have victims.
func budgetsFromCounts(d *kube.Dump, proposal map[string]*kube.MetaVictims) {
	if len(d.Budgets) > 0 {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(proposal)) {
		remaining := int(min(proposal[node].NumPDBViolations, int64(len(proposal[node].Pods))))
		if remaining <= 0 {
			continue
		}
		labeled := labelVictims(d.Pods, node, proposal[node].Pods)
		for _, namespace := range slices.Sorted(maps.Keys(labeled)) {
			n := min(remaining, labeled[namespace])
			if remaining -= n; n > 0 {
				d.Budgets = append(d.Budgets, newCountedBudget(node, namespace, n))
			}
		}
	}
}

// labelVictims labels the proposed victims of a node and returns their number per
// namespace. It replaces pods in the list with copies, because the cache shares them.
func labelVictims(pods []*kube.Pod, node string, victims []kube.MetaPod) map[string]int {
	proposed := make(map[string]bool, len(victims))
	for _, v := range victims {
		proposed[v.UID] = true
	}
	in := map[string]int{}
	for i, p := range pods {
		if p.Spec.NodeName != node || !proposed[p.Metadata.UID] {
			continue
		}
		labeled := *p
		labeled.Metadata.Labels = maps.Clone(p.Metadata.Labels)
		if labeled.Metadata.Labels == nil {
			labeled.Metadata.Labels = map[string]string{}
		}
		labeled.Metadata.Labels[countedVictimLabel] = node
		pods[i] = &labeled
		in[cmp.Or(p.Metadata.Namespace, model.DefaultNamespace)]++
	}
	return in
}

func newCountedBudget(node, namespace string, minAvailable int) *kube.Budget {
	b := &kube.Budget{Metadata: kube.Metadata{Name: "counted-" + node, Namespace: namespace}}
	b.Spec.MinAvailable = &kube.Bound{Number: int32(minAvailable)} //nolint:gosec // G115: at most the pods of a request
	b.Spec.Selector = &kube.LabelSelector{Labels: map[string]string{countedVictimLabel: node}}
	return b
}

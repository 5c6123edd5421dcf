package extender

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
)

// countedVictimLabel marks the victims of whom kube-scheduler counted how many disruption
// budgets they violate; its value is their node.
const countedVictimLabel = "cede.import/counted"

// budgetsFromCounts makes budgets of what kube-scheduler counted, for who was told of none: those
// whom it proposes on a node are under one that lets all go but as many as it counted.
// Whoever evicts all of them violates it as often as kube-scheduler says, and whoever
// spares some at most so often; which of them are meant it does not say. The policy
// weighs these budgets as it weighs any. Budgets are of one namespace: where the victims
// are of several, the first ones take as much of the count as they can.
func budgetsFromCounts(d *kube.Dump, proposal map[string]*kube.MetaVictims) {
	if len(d.Budgets) > 0 {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(proposal)) {
		left := int(min(proposal[node].NumPDBViolations, int64(len(proposal[node].Pods))))
		if left <= 0 {
			continue
		}
		marked := labelVictims(d.Pods, node, proposal[node].Pods)
		for _, namespace := range slices.Sorted(maps.Keys(marked)) {
			n := min(left, marked[namespace])
			if left -= n; n > 0 {
				d.Budgets = append(d.Budgets, newCountedBudget(node, namespace, n))
			}
		}
	}
}

// labelVictims labels the victims of a node, and tells how many there are in each namespace. A
// pod that is known outside of the question stays as it is.
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
		marked := *p
		marked.Metadata.Labels = maps.Clone(p.Metadata.Labels)
		if marked.Metadata.Labels == nil {
			marked.Metadata.Labels = map[string]string{}
		}
		marked.Metadata.Labels[countedVictimLabel] = node
		pods[i] = &marked
		in[cmp.Or(p.Metadata.Namespace, model.DefaultNamespace)]++
	}
	return in
}

func newCountedBudget(node, namespace string, keep int) *kube.Budget {
	b := &kube.Budget{Metadata: kube.Metadata{Name: "counted-" + node, Namespace: namespace}}
	b.Spec.MinAvailable = &kube.Bound{Number: int32(keep)} //nolint:gosec // G115: at most the pods of a request
	b.Spec.Selector = &kube.LabelSelector{Labels: map[string]string{countedVictimLabel: node}}
	return b
}

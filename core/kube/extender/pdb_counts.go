package extender

import (
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// countedVictimLabel is set on the proposed victims of a node for which
// kube-scheduler counted budget violations. Its value is the node.
const countedVictimLabel = "cede.import/counted"

// budgetsFromCounts derives budgets from the violations that kube-scheduler counted,
// for a state without budgets. The proposed victims of a node get a budget that allows
// the eviction of all but as many as there are violations. Evicting all of them
// violates it as often as kube-scheduler counted; evicting fewer violates it at most
// that often, because the request does not identify the protected victims. The policy
// weighs these budgets like any others.
//
// A budget applies to one namespace. If the victims are in several, the first
// namespaces get as much of the count as they have victims.
func budgetsFromCounts(txn *state.Txn, proposal map[string]*kube.MetaVictims) error {
	for _, node := range slices.Sorted(maps.Keys(proposal)) {
		if proposal[node] == nil {
			continue
		}
		remaining := int(min(proposal[node].NumPDBViolations, int64(len(proposal[node].Pods))))
		if remaining <= 0 {
			continue
		}
		labeled, err := labelVictims(txn, node, proposal[node].Pods)
		if err != nil {
			return err
		}
		for _, namespace := range slices.Sorted(maps.Keys(labeled)) {
			n := min(remaining, labeled[namespace])
			if remaining -= n; n > 0 {
				txn.BudgetWriter().Upsert(newCountedBudget(node, namespace, labeled[namespace]-n))
			}
		}
	}
	return nil
}

// labelVictims labels the proposed victims of a node and returns their number per
// namespace. Each gets a version of its job with the label.
func labelVictims(txn *state.Txn, node string, victims []kube.MetaPod) (map[string]int, error) {
	in := map[string]int{}
	for _, v := range victims {
		a := txn.Alloc(v.UID)
		if a == nil || a.NodeID != node {
			continue
		}
		labeled := *a
		job, group := *a.Job, *a.Group
		if group.Labels = maps.Clone(group.Labels); group.Labels == nil {
			group.Labels = map[string]string{}
		}
		group.Labels[countedVictimLabel] = node
		job.Groups = []*model.Group{&group}
		if err := txn.JobWriter().Upsert(&job); err != nil {
			return nil, err
		}
		labeled.Job, labeled.Group = &job, job.Groups[0]
		txn.AllocWriter().Upsert(&labeled)
		in[job.Namespace]++
	}
	return in, nil
}

func newCountedBudget(node, namespace string, allowed int) *model.Budget {
	return &model.Budget{
		Namespace: namespace, Name: "counted-" + node, Labels: map[string]string{countedVictimLabel: node},
		MaxEvictions: &model.Rate{Number: int32(allowed), Window: time.Hour}, //nolint:gosec // G115: at most the pods of a request
	}
}

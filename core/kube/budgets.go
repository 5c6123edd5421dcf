package kube

import (
	"github.com/cede-scheduler/cede/core/model"
)

// translateBudgets translates disruption budgets. The groups that a budget covers are
// selected by labels; if equal labels do not suffice, by a selector label.
func (c *Cluster) translateBudgets(d *Dump, w *podTranslator) {
	names := map[string]int{}
	for _, b := range d.Budgets {
		names[b.Metadata.Name]++
	}
	used := map[string]bool{}
	for _, b := range d.Budgets {
		namespace := b.Metadata.Namespace
		if namespace == "" {
			namespace = model.DefaultNamespace
		}
		name := b.Metadata.Name
		if names[name] > 1 {
			name = namespace + "." + name
		}
		budget := &model.Budget{Namespace: namespace, Name: name}
		switch {
		case b.Spec.Selector == nil:
			c.Report.info("disruption budgets without a selector, which select nothing", "left out")
			continue
		case len(b.Spec.Selector.Labels)+len(b.Spec.Selector.Expressions) == 0:
			c.Report.info("disruption budgets with an empty selector", "left out: kube-scheduler ignores them in preemption, although drains apply them to every pod")
			continue
		case b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable == nil:
			budget.MinAvailable = (*model.Bound)(b.Spec.MinAvailable)
		case b.Spec.MaxUnavailable != nil && b.Spec.MinAvailable == nil:
			budget.MaxUnavailable = (*model.Bound)(b.Spec.MaxUnavailable)
		default:
			c.Report.info("disruption budgets without exactly one of minAvailable and maxUnavailable", "left out")
			continue
		}
		if used[name] {
			c.Report.info("disruption budgets with a duplicate name", "left out")
			continue
		}
		used[name] = true
		budget.Labels = c.labelFor(namespace, b.Spec.Selector)
		if b.Spec.Selector.Matches(nil) {
			c.Report.info("disruption budgets that also select pods without labels", "applied to these pods; kube-scheduler ignores the budget for them")
		}
		if len(b.Status.DisruptedPods) > 0 {
			c.Report.info("disruption budgets with pods that are being evicted (disruptedPods)", "these pods are counted until they are gone; kube-scheduler does not count them again")
		}
		if b.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow" {
			c.Report.info("disruption budgets that allow the eviction of unhealthy pods (AlwaysAllow)", "unhealthy pods count as healthy")
		}
		c.Budgets = append(c.Budgets, budget)
		if b.Status.DisruptionsAllowed != nil {
			if c.disruptionsAllowed == nil {
				c.disruptionsAllowed = map[*model.Budget]int32{}
			}
			c.disruptionsAllowed[budget] = *b.Status.DisruptionsAllowed
		}
		if allowed := b.Status.DisruptionsAllowed; allowed != nil && int(*allowed) != w.allowedDisruptions(b, budget) {
			c.Report.Add(Note{
				Count: 1, Subject: "disruption budgets with a status that differs from the count of their running pods",
				Handling: "running pods are counted; some pods may not be ready, or the status is outdated",
			})
		}
	}
}

// allowedDisruptions returns the number of disruptions that a budget allows if every
// running pod counts as available, as the model does.
func (w *podTranslator) allowedDisruptions(b *Budget, budget *model.Budget) int {
	available, desired := 0, 0
	for _, j := range w.Jobs {
		if j.Namespace != budget.Namespace || j.Terminating {
			continue
		}
		for _, g := range j.Groups {
			if b.Spec.Selector.Matches(g.Labels) {
				desired += w.instances(j, g)
				available += w.running(g)
			}
		}
	}
	return max(0, available-budget.RequiredAvailable(desired))
}

// instances returns the desired number of instances of a group.
func (w *podTranslator) instances(j *Job, g *model.Group) int {
	if j.Type.PerNode() {
		return w.running(g)
	}
	return g.Count
}

// running returns the number of running instances of a group.
func (w *podTranslator) running(g *model.Group) int {
	if w.runningCount == nil {
		w.runningCount = map[*model.Group]int{}
		for _, i := range w.Instances {
			w.runningCount[i.Group]++
		}
	}
	return w.runningCount[g]
}

// UseBudgetStatus makes each budget allow the number of disruptions in its status. It
// is for clusters of which only a part of the pods is present, so that counting them
// would be wrong.
func (c *Cluster) UseBudgetStatus() {
	available := map[*model.Group]int{}
	for _, i := range c.Instances {
		available[i.Group]++
	}
	for _, b := range c.Budgets {
		allowed, ok := c.disruptionsAllowed[b]
		if !ok {
			continue
		}
		term, n := model.LabelTerm{Labels: b.Labels}, 0
		for _, j := range c.Jobs {
			for _, g := range j.Groups {
				if j.Namespace == b.Namespace && term.Matches(g.Labels) {
					n += available[g]
				}
			}
		}
		b.MaxUnavailable = nil
		b.MinAvailable = &model.Bound{Number: int32(max(0, n-int(max(0, allowed))))}
	}
}

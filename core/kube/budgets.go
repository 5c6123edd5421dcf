package kube

import (
	"cmp"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// translateBudgets translates disruption budgets.
func (c *Cluster) translateBudgets(d *Dump, w *podTranslator) {
	names := map[string]int{}
	for _, b := range d.Budgets {
		names[b.Metadata.Name]++
	}
	used := map[string]bool{}
	for _, b := range d.Budgets {
		budget := c.budget(b)
		if budget == nil {
			continue
		}
		name := budget.Name
		if names[name] > 1 {
			name = budget.Namespace + "." + name
		}
		if used[name] {
			c.Report.info("disruption budgets with a duplicate name", "left out")
			continue
		}
		used[name] = true
		if !c.live {
			budget.Name = name
		}
		c.Budgets = append(c.Budgets, budget)
		allowed := b.Status.DisruptionsAllowed
		if allowed == nil {
			continue
		}
		if c.disruptionsAllowed == nil {
			c.disruptionsAllowed = map[*model.Budget]int32{}
		}
		c.disruptionsAllowed[budget] = *allowed
		if !c.live && int(*allowed) != w.allowedDisruptions(b, budget) {
			c.Report.Add(Note{
				Count: 1, Subject: "disruption budgets with a status that differs from the count of their running pods",
				Handling: "running pods are counted; some pods may not be ready, or the status is outdated",
			})
		}
	}
}

// budget translates one budget, or returns nil if the model cannot express it. The
// groups that it covers are selected by labels; if equal labels do not suffice, by a
// selector label.
func (t *Translator) budget(b *Budget) *model.Budget {
	budget := &model.Budget{Namespace: cmp.Or(b.Metadata.Namespace, model.DefaultNamespace), Name: b.Metadata.Name}
	switch {
	case b.Spec.Selector == nil:
		t.Report.info("disruption budgets without a selector, which select nothing", "left out")
		return nil
	case len(b.Spec.Selector.Labels)+len(b.Spec.Selector.Expressions) == 0:
		t.Report.info("disruption budgets with an empty selector", "left out: kube-scheduler ignores them in preemption, although drains apply them to every pod")
		return nil
	case b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable == nil:
		budget.MinAvailable = (*model.Bound)(b.Spec.MinAvailable)
	case b.Spec.MaxUnavailable != nil && b.Spec.MinAvailable == nil:
		budget.MaxUnavailable = (*model.Bound)(b.Spec.MaxUnavailable)
	default:
		t.Report.info("disruption budgets without exactly one of minAvailable and maxUnavailable", "left out")
		return nil
	}
	budget.Labels = t.labelFor(budget.Namespace, b.Spec.Selector)
	if b.Spec.Selector.Matches(nil) {
		t.Report.info("disruption budgets that also select pods without labels", "applied to these pods; kube-scheduler ignores the budget for them")
	}
	if len(b.Status.DisruptedPods) > 0 {
		t.Report.info("disruption budgets with pods that are being evicted (disruptedPods)", "these pods are counted until they are gone; kube-scheduler does not count them again")
	}
	if b.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow" {
		t.Report.info("disruption budgets that allow the eviction of unhealthy pods (AlwaysAllow)", "unhealthy pods count as healthy")
	}
	return budget
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

// UseBudgetStatus makes each budget allow the number of disruptions in its status, as
// kube-scheduler does, instead of counting the running pods.
func (c *Cluster) UseBudgetStatus() {
	for _, b := range c.Budgets {
		if allowed, ok := c.disruptionsAllowed[b]; ok {
			allowDisruptions(b, allowed)
		}
	}
}

// allowDisruptions makes a budget allow so many disruptions, whatever is running.
func allowDisruptions(b *model.Budget, n int32) {
	b.MinAvailable, b.MaxUnavailable = nil, nil
	b.MaxEvictions = &model.Rate{Number: max(0, n), Window: time.Hour}
}

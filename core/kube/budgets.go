package kube

import (
	"github.com/cede-scheduler/cede/core/model"
)

// translateBudgets translates disruption budgets. Which pods a budget is about is
// told by labels, if need be by one of its own.
func (c *Cluster) translateBudgets(d *Dump, w *podTranslator) {
	names := map[string]int{}
	for _, b := range d.Budgets {
		names[b.Metadata.Name]++
	}
	taken := map[string]bool{}
	for _, b := range d.Budgets {
		namespace := b.Metadata.Namespace
		if namespace == "" {
			namespace = model.DefaultNamespace
		}
		name := b.Metadata.Name
		if names[name] > 1 {
			name = namespace + "." + name
		}
		made := &model.Budget{Namespace: namespace, Name: name}
		switch {
		case b.Spec.Selector == nil:
			c.Report.info("disruption budgets without a selector, which select nothing", "left out")
			continue
		case len(b.Spec.Selector.Labels)+len(b.Spec.Selector.Expressions) == 0:
			c.Report.info("disruption budgets with an empty selector", "left out: kube-scheduler evicts as if they selected nothing, though drains heed them for every pod")
			continue
		case b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable == nil:
			made.MinAvailable = (*model.Bound)(b.Spec.MinAvailable)
		case b.Spec.MaxUnavailable != nil && b.Spec.MinAvailable == nil:
			made.MaxUnavailable = (*model.Bound)(b.Spec.MaxUnavailable)
		default:
			c.Report.info("disruption budgets that do not say one of minAvailable and maxUnavailable", "left out")
			continue
		}
		if taken[name] {
			c.Report.info("disruption budgets whose name another one has", "left out")
			continue
		}
		taken[name] = true
		made.Labels = c.labelFor(namespace, b.Spec.Selector)
		if b.Spec.Selector.Matches(nil) {
			c.Report.info("disruption budgets that select pods without labels, too", "told so, where kube-scheduler evicts those as if they had no budget")
		}
		if len(b.Status.DisruptedPods) > 0 {
			c.Report.info("disruption budgets with pods that are being evicted (disruptedPods)", "charged until they are gone, where kube-scheduler does not charge those again")
		}
		if b.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow" {
			c.Report.info("disruption budgets that let unhealthy pods go (AlwaysAllow)", "they count as healthy")
		}
		c.Budgets = append(c.Budgets, made)
		if b.Status.DisruptionsAllowed != nil {
			if c.disruptionsAllowed == nil {
				c.disruptionsAllowed = map[*model.Budget]int32{}
			}
			c.disruptionsAllowed[made] = *b.Status.DisruptionsAllowed
		}
		if allowed := b.Status.DisruptionsAllowed; allowed != nil && int(*allowed) != w.allowedDisruptions(b, made) {
			c.Report.Add(Note{
				Count: 1, Subject: "disruption budgets whose status allows another number of disruptions than their running pods leave",
				Handling: "counted by running pods: a dump of pods that are not ready, or an old status",
			})
		}
	}
}

// allowedDisruptions is how many disruptions a budget has left, counted as cede counts.
func (w *podTranslator) allowedDisruptions(b *Budget, made *model.Budget) int {
	available, desired := 0, 0
	for _, j := range w.Jobs {
		if j.Namespace != made.Namespace || j.Terminating {
			continue
		}
		for _, g := range j.Groups {
			if b.Spec.Selector.Matches(g.Labels) {
				desired += w.instances(j, g)
				available += w.running(g)
			}
		}
	}
	return max(0, available-made.RequiredAvailable(desired))
}

func (w *podTranslator) instances(j *Job, g *model.Group) int {
	if j.Type.PerNode() {
		return w.running(g)
	}
	return g.Count
}

// running is how many instances of a group run.
func (w *podTranslator) running(g *model.Group) int {
	if w.runningCount == nil {
		w.runningCount = map[*model.Group]int{}
		for _, i := range w.Instances {
			w.runningCount[i.Group]++
		}
	}
	return w.runningCount[g]
}

// UseBudgetStatus makes budgets leave as many disruptions as their status says, for a
// cluster of which only a part of the pods is known.
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

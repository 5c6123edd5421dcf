package audit

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// promisesMinimal reports whether the policy evicts no victim that is not necessary: all
// do whose operator did not grant keepRedundant, as nomad's does.
func (c *cluster) promisesMinimal() bool { return c.run.Policy != "nomad" }

// promisesEnough reports whether the policy finds victims if evicting every candidate of
// one node is sufficient.
func (c *cluster) promisesEnough() bool { return c.run.Policy != "nomad" }

// spared returns why a job may not evict an allocation, or "".
func (c *cluster) spared(v *alloc, by *job) string {
	o := v.group.job
	difference := by.priority - o.priority
	switch {
	case by.never:
		return "the job never preempts"
	case !c.enabled(by.Type):
		return "preemption is off for the type of the job"
	case o == by:
		return "it belongs to the same job"
	case difference <= 0:
		return "its priority is not lower"
	case o.Preemptible != nil && !*o.Preemptible:
		return "it is not preemptible"
	case c.run.Policy != "aging" && difference < c.gap():
		return "the priority gap is too small"
	}
	if t := o.Toleration; t != nil {
		if t.MinPreemptorPriority != nil && by.priority < int64(*t.MinPreemptorPriority) {
			return "the preemptor is below its minPreemptorPriority"
		}
		if v.started && v.age(c.now) < int64(t.MinRuntime) {
			return "it is younger than its minRuntime"
		}
	}
	if age := v.age(c.now); c.run.Policy == "protect" && age > 0 && age < int64(10*time.Minute) {
		return "the policy protects it"
	}
	return ""
}

// checkVictims checks each victim of a plan against the placement that it is evicted for.
func (c *checker) checkVictims(p *plan) {
	for _, v := range p.evicted {
		by := p.removed[v].By
		at := slices.IndexFunc(p.placed, func(a *alloc) bool { return a.id == by })
		if at < 0 {
			c.report("victims", "%s is evicted by %q, which is not placed", v.id, by)
			continue
		}
		a := p.placed[at]
		if why := c.spared(v, a.group.job); why != "" {
			c.report("victims", "%s must not be evicted by %s: %s", v.id, a.id, why)
		}
		if v.node.down && v.lostAt() <= c.now {
			c.report("victims", "%s is evicted and was lost with its node", v.id)
		}
		if !concerns(v, a) && !slices.ContainsFunc(p.evicted, func(w *alloc) bool {
			return v.group.job.DisruptionMode == "all" && w.group.job == v.group.job && p.removed[w].By == by && concerns(w, a)
		}) {
			c.report("victims", "%s on %s is evicted by %s on %s", v.id, v.node.id, a.id, a.node.id)
		}
	}
}

// concerns reports whether an eviction frees capacity on the node of a placement or
// removes a conflict with it.
func concerns(v, a *alloc) bool { return v.node == a.node || exclusive(a.group, a.node, v) }

// checkCohorts checks that a job with disruptionMode all is evicted whole, or down to the
// minimum of each group. The victims have been removed.
func (c *checker) checkCohorts(p *plan) {
	for _, v := range p.evicted {
		j := v.group.job
		if j.DisruptionMode != "all" {
			continue
		}
		stay, ofGroup := 0, 0
		for _, o := range c.order {
			if o.live && o.group.job == j && o.lostAt() > c.now {
				stay++
				if o.group == v.group {
					ofGroup++
				}
			}
		}
		if stay > 0 && (v.group.MinCount == 0 || ofGroup < v.group.MinCount) {
			c.report("cohorts", "%s is evicted, and %d of its job stay, %d of them of its group", v.id, stay, ofGroup)
		}
	}
}

// covers reports whether a budget applies to a group.
func covers(b *scenario.Budget, g *group) bool {
	namespace := b.Namespace
	if namespace == "" {
		namespace = "default"
	}
	if namespace != g.job.namespace || len(b.Labels) == 0 && b.MaxEvictions == nil {
		return false
	}
	return matches(&labelTerm{Labels: b.Labels}, g)
}

// isStrict reports whether a budget must hold. Limits on evictions are strict by default.
func isStrict(b *scenario.Budget) bool {
	return b.Enforcement == "strict" || b.Enforcement == "" && b.MaxEvictions != nil
}

// checkBudgets checks that a plan overruns no strict budget, before it is applied.
func (c *checker) checkBudgets(p *plan) {
	for i := range c.run.File.Budgets {
		b := &c.run.File.Budgets[i]
		if !isStrict(b) {
			continue
		}
		disrupted := 0
		for _, v := range p.evicted {
			if v.started && !v.node.down && covers(b, v.group) {
				disrupted++
			}
		}
		if allowed := c.allowed(b); disrupted > max(0, allowed) {
			c.report("budgets", "budget %s allows %d disruptions, and the plan has %d", b.Name, allowed, disrupted)
		}
	}
}

// allowed returns how many disruptions a budget allows at this time.
func (c *cluster) allowed(b *scenario.Budget) int {
	if b.MaxEvictions != nil {
		n := int(*b.MaxEvictions)
		for _, e := range c.evicted {
			if covers(b, e.group) && e.at > c.now-int64(b.Window) {
				n--
			}
		}
		return n
	}
	available, desired := 0, 0
	for _, a := range c.order {
		if a.live && a.started && !a.node.down && covers(b, a.group) {
			available++
		}
	}
	for _, j := range c.jobList {
		for _, g := range j.groups {
			if j.registered && !j.stopped && covers(b, g) {
				desired += c.desired(g)
			}
		}
	}
	if b.MinAvailable != nil {
		return available - of(b.MinAvailable, desired)
	}
	return available - max(0, desired-of(b.MaxUnavailable, desired))
}

// desired returns how many instances of a group should run.
func (c *cluster) desired(g *group) int {
	if !g.job.perNode {
		return g.count - len(g.done)
	}
	n := 0
	for _, o := range c.nodeList {
		if _, serves := candidate(o, g, nil); serves && g.count > 0 && infeasible(o, g) == "" {
			n++
		}
	}
	return n
}

// of returns a bound in instances; a percentage is rounded up.
func of(b *scenario.Bound, desired int) int {
	if !b.Percent {
		return int(b.Number)
	}
	return (desired*int(b.Number) + 99) / 100
}

// checkMinimal checks that no victim of a placement could have stayed. The state contains
// the placements of the plan up to this one.
func (c *checker) checkMinimal(p *plan, a *alloc) {
	if p.stops[a.node] {
		return // the plan's own stops free capacity in an order that is not known
	}
	for _, v := range a.victims {
		if v.group.job.DisruptionMode == "all" {
			continue
		}
		v.live = true
		necessary := overfull(a.node, c.here(a.node)) != "" || exclusive(a.group, a.node, v) || c.conflict(a.node, a.group, a) != ""
		v.live = false
		if !necessary {
			c.report("minimal", "%s is evicted by %s and could have stayed", v.id, a.id)
		}
	}
}

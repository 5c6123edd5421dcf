package scenario

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

const (
	// maxCount bounds the instances of one group: five times the largest known
	// cluster.
	maxCount = 10_000_000
	// maxDuration ensures that sums of times fit into an int64 of nanoseconds
	// (292 years).
	maxDuration = Duration(50 * 365 * 24 * 3600 * 1e9)
	// maxRequests bounds the combinations of device groups that can satisfy a group.
	maxRequests = 16
	// defaultWeight is the default weight of affinities and spreads, as in Nomad.
	defaultWeight = 50
)

// checkJobs checks the jobs and their groups.
func (c *checker) checkJobs() {
	var root *path
	for i := range c.f.Jobs {
		j, p := &c.f.Jobs[i], root.field("jobs").item(i)
		c.unique(p.field("id"), "jobs", "id", j.ID, i, c.jobs)
		c.checkJob(p, j)
		seen := map[string]int{}
		for k := range j.Groups {
			g, gp := &j.Groups[k], p.field("groups").item(k)
			if !c.name(gp.field("name"), "name", g.Name) && g.Name == "" {
				c.incomplete["jobs"] = true
			} else if first, ok := seen[g.Name]; ok {
				c.add(gp.field("name"), fmt.Sprintf("%.100q is already the name of groups[%d]", g.Name, first), "use a unique name for each group of a job")
			} else {
				seen[g.Name] = k
			}
			if c.f.Expect != nil {
				c.groups[j.ID+"."+g.Name] = true
				c.anyGroup[g.Name] = k
			}
			c.checkGroup(gp, j, g)
		}
	}
}

func (c *checker) checkJob(p *path, j *Job) {
	c.optionalName(p.field("namespace"), j.Namespace)
	c.oneOf(p.field("type"), j.Type, "service", "batch", "system", "sysbatch")
	c.oneOf(p.field("preemptionPolicy"), j.PreemptionPolicy, preemptionPolicies...)
	if j.PriorityClass != "" {
		class := p.field("priorityClass")
		if j.Priority != nil {
			c.add(class, "priority and priorityClass are mutually exclusive", "remove one of the two")
		}
		if _, ok := c.classes[j.PriorityClass]; !ok {
			c.unknown(class, "priorityClasses", "priority class", j.PriorityClass, c.classes)
		}
	}
	if t := j.Toleration; t != nil {
		c.checkDuration(p.field("toleration").field("minRuntime"), t.MinRuntime)
	}
	c.oneOf(p.field("disruptionMode"), j.DisruptionMode, disruptionModes...)
	for i, dc := range j.Datacenters {
		c.name(p.field("datacenters").item(i), "datacenter", dc)
	}
	if len(j.Groups) == 0 {
		c.add(p.field("groups"), "a job needs at least one group", "add `groups: [{name: main, count: 1, resources: {cpu: 500}}]`")
	}
}

func (c *checker) checkGroup(p *path, j *Job, g *Group) {
	if g.Count != nil {
		perNode := j.Type == "system" || j.Type == "sysbatch"
		switch n := *g.Count; {
		case n < 0:
			c.add(p.field("count"), fmt.Sprintf("%d is negative: expected 0 or more", n), "remove the sign")
		case perNode && n > 1:
			c.add(p.field("count"), fmt.Sprintf("%d instances of a group of a %s job, which runs on every node: expected 0 or 1", n, j.Type), "omit count")
		case n > maxCount:
			c.add(p.field("count"), fmt.Sprintf("%d is too large: expected at most %d", n, maxCount), "check the number")
		}
	}
	c.checkMinCount(p.field("minCount"), j, g)
	c.checkAmounts(p.field("resources"), g.Resources)
	c.checkPorts(p.field("ports"), g.Ports)
	if n := len(g.Devices); n > maxRequests {
		c.add(p.field("devices"), fmt.Sprintf("%d device requests: expected at most %d", n, maxRequests), "request several devices of a kind with count")
	}
	for i := range g.Devices {
		c.checkRequest(p.field("devices").item(i), &g.Devices[i])
	}
	c.noEmptyKey(p.field("labels"), g.Labels)
	c.checkPlacement(p, g)
	if n := g.MaxParallelEvictions; n != nil && *n < 0 {
		c.add(p.field("maxParallelEvictions"), fmt.Sprintf("%d is negative: expected 0 (unlimited) or more", *n), "remove the sign")
	}
	c.checkDuration(p.field("killTimeout"), g.KillTimeout)
	c.checkDuration(p.field("duration"), g.Duration)
	c.checkDuration(p.field("checkpoint"), g.Checkpoint)
	if d := g.Disconnect; d != nil && d.LostAfter != nil {
		at := p.field("disconnect").field("lostAfter")
		if c.checkDuration(at, *d.LostAfter); *d.LostAfter == 0 {
			c.add(at, "0s is the same as no disconnect", "remove disconnect, or omit lostAfter to retain instances until the node returns")
		}
	}
	for _, name := range keys(g.Annotations) {
		if v := g.Annotations[name]; math.IsNaN(v) || math.IsInf(v, 0) {
			c.add(p.field("annotations").field(name), fmt.Sprintf("%v is not a finite number", v), "write a finite number")
		}
	}
}

// checkMinCount checks the number of instances down to which a group is evicted one by one.
func (c *checker) checkMinCount(p *path, j *Job, g *Group) {
	count := 1
	if g.Count != nil {
		count = *g.Count
	}
	switch {
	case g.MinCount < 0:
		c.add(p, fmt.Sprintf("%d is negative: expected 0 or more", g.MinCount), "remove the sign")
	case g.MinCount > max(0, count):
		c.add(p, fmt.Sprintf("%d is more than the group's count, %d", g.MinCount, count), "write a smaller number, or raise count")
	case g.MinCount > 0 && j.DisruptionMode != disruptAll:
		c.warnings = append(c.warnings, fmt.Sprintf("%v has no effect: without `disruptionMode: all` job %s is evicted one by one", p, j.ID))
	}
}

// checkDuration checks a duration that must not be negative.
func (c *checker) checkDuration(p *path, d Duration) {
	switch {
	case d < 0:
		c.add(p, fmt.Sprintf("%v is negative: expected a duration of 0 or more", d), "remove the sign")
	case d > maxDuration:
		c.add(p, fmt.Sprintf("%v is too long: expected at most %v (50 years)", d, maxDuration), "omit it for an unlimited duration")
	}
}

// checkPlacement checks the constraints, affinities, spreads and label terms of a group.
func (c *checker) checkPlacement(p *path, g *Group) {
	for i := range g.Tolerations {
		c.checkToleration(p.field("tolerations").item(i), &g.Tolerations[i])
	}
	for i := range g.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &g.Constraints[i], true)
	}
	for i := range g.Affinities {
		a, ap := &g.Affinities[i], p.field("affinities").item(i)
		c.checkConstraint(ap, &a.Constraint, false)
		if a.Weight < -100 || a.Weight > 100 {
			c.add(ap.field("weight"), fmt.Sprintf("%d is not a valid weight: expected -100 to 100", a.Weight), "a negative weight repels")
		}
	}
	for i := range g.Spread {
		c.checkSpread(p.field("spread").item(i), &g.Spread[i])
	}
	for i := range g.Colocate {
		c.checkLabelTerm(p.field("colocate").item(i), &g.Colocate[i])
	}
	for i := range g.Separate {
		c.checkLabelTerm(p.field("separate").item(i), &g.Separate[i])
	}
}

// checkSpread checks the bounds of a spread. The shares of its targets are per cent.
func (c *checker) checkSpread(p *path, s *Spread) {
	if s.Attribute == "" {
		c.add(p.field("attribute"), "attribute is missing", "name an attribute of the nodes, such as zone")
	}
	if w := s.Weight; w != nil && (*w < 1 || *w > 100) {
		c.add(p.field("weight"), fmt.Sprintf("%d is not a valid weight: expected 1 to 100", *w), "omit it for 50")
	}
	if m := s.MaxSkew; m != nil && *m < 1 {
		c.add(p.field("maxSkew"), fmt.Sprintf("%d is not a valid skew: expected 1 or more", *m), "omit it for a soft spread")
	}
	sum := 0
	for _, value := range keys(s.Targets) {
		percent := s.Targets[value]
		if percent < 0 || percent > 100 {
			c.add(p.field("targets").field(value), fmt.Sprintf("%d is not a valid share: expected 0 to 100 per cent", percent), "write the share of the count in per cent")
			continue
		}
		sum += percent
	}
	if sum > 100 {
		c.add(p.field("targets"), fmt.Sprintf("the shares add up to %d: expected at most 100 per cent", sum), "lower them")
	}
}

func (c *checker) checkLabelTerm(p *path, t *LabelTerm) {
	if len(t.Labels) == 0 {
		c.add(p.field("labels"), "labels are missing", "write the labels of the allocations to select, such as {app: web}")
	}
	if t.TopologyKey == "" {
		c.add(p.field("topologyKey"), "topologyKey is missing", fmt.Sprintf("write %s, or an attribute of the nodes such as zone", model.TopologyNode))
	}
}

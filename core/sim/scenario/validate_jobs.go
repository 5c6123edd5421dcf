package scenario

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

const (
	// maxCount bounds the instances of one group: five times what the largest
	// cluster that we know of runs.
	maxCount = 10_000_000
	// maxDuration keeps sums of times away from what an int64 of nanoseconds
	// holds (292 years).
	maxDuration = Duration(50 * 365 * 24 * 3600 * 1e9)
	// maxRequests bounds the ways in which device groups may serve a group.
	maxRequests = 16
	// defaultWeight is the weight of an affinity or a spread that names none,
	// as in Nomad.
	defaultWeight = 50
)

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
				c.add(gp.field("name"), fmt.Sprintf("%.100q is already the name of groups[%d]", g.Name, first), "give each group of a job its own name")
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
			c.add(class, "priority and priorityClass exclude each other", "remove one of the two")
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
			c.add(p.field("count"), fmt.Sprintf("%d instances of a group of a %s job, which runs on every node: expected 0 or 1", n, j.Type), "leave count out")
		case n > maxCount:
			c.add(p.field("count"), fmt.Sprintf("%d is too large: expected at most %d", n, maxCount), "check the number")
		}
	}
	c.checkMinCount(p.field("minCount"), j, g)
	c.checkAmounts(p.field("resources"), g.Resources)
	c.checkPorts(p.field("ports"), g.Ports)
	if n := len(g.Devices); n > maxRequests {
		c.add(p.field("devices"), fmt.Sprintf("%d device requests: expected at most %d", n, maxRequests), "ask for several devices of a kind with count")
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
			c.add(at, "0s would have instances lost at once", "remove disconnect, which says the same; without a time in it they are kept until the node returns")
		}
	}
	for _, name := range keys(g.Annotations) {
		if v := g.Annotations[name]; math.IsNaN(v) || math.IsInf(v, 0) {
			c.add(p.field("annotations").field(name), fmt.Sprintf("%v is not a finite number", v), "write a finite number")
		}
	}
}

// checkMinCount checks down to how many instances are evicted one by one.
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
		c.warnings = append(c.warnings, fmt.Sprintf("%v changes nothing: without `disruptionMode: all` job %s is evicted one by one", p, j.ID))
	}
}

// checkDuration checks a duration that may not be negative.
func (c *checker) checkDuration(p *path, d Duration) {
	switch {
	case d < 0:
		c.add(p, fmt.Sprintf("%v is negative: expected a duration of 0 or more", d), "remove the sign")
	case d > maxDuration:
		c.add(p, fmt.Sprintf("%v is too long: expected at most %v (50 years)", d, maxDuration), "leave it out where it means for ever")
	}
}

// checkPlacement checks what says where a group's instances may run.
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
			c.add(ap.field("weight"), fmt.Sprintf("%d is not a weight: expected -100 to 100", a.Weight), "a negative weight repels")
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

func (c *checker) checkSpread(p *path, s *Spread) {
	if s.Attribute == "" {
		c.add(p.field("attribute"), "attribute is missing", "name an attribute of the nodes, such as zone")
	}
	if w := s.Weight; w != nil && (*w < 1 || *w > 100) {
		c.add(p.field("weight"), fmt.Sprintf("%d is not a weight: expected 1 to 100", *w), "leave it out for 50")
	}
	if m := s.MaxSkew; m != nil && *m < 1 {
		c.add(p.field("maxSkew"), fmt.Sprintf("%d is not a skew: expected 1 or more", *m), "leave it out where the spread is only wished for")
	}
	sum := 0
	for _, value := range keys(s.Targets) {
		percent := s.Targets[value]
		if percent < 0 || percent > 100 {
			c.add(p.field("targets").field(value), fmt.Sprintf("%d is not a share: expected 0 to 100 per cent", percent), "write the share of the count in per cent")
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
		c.add(p.field("labels"), "labels are missing", "name the labels of the allocations that are meant, such as {app: web}")
	}
	if t.TopologyKey == "" {
		c.add(p.field("topologyKey"), "topologyKey is missing", fmt.Sprintf("write %s, or an attribute of the nodes such as zone", model.TopologyNode))
	}
}

package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

const (
	// maxDuration ensures that sums of times fit into an int64 of nanoseconds
	// (292 years).
	maxDuration = Duration(fieldcheck.MaxDuration)
	// defaultWeight is the default weight of affinities and spreads, as in Nomad.
	defaultWeight = 50
)

// checkJobs checks the jobs and their groups.
func (c *checker) checkJobs() {
	var root *path
	total := 0
	for i := range c.f.Jobs {
		j, p := &c.f.Jobs[i], root.field("jobs").item(i)
		c.unique(p.field("id"), "jobs", "id", j.ID, i, c.jobs)
		c.checkJob(p, j)
		switch n := j.instances(); {
		case n > maxJobInstances:
			c.add(p.field("groups"), fmt.Sprintf("more than %d instances of one job", maxJobInstances), "use smaller counts")
		case total+n > maxInstances:
			c.add(p.field("groups"), fmt.Sprintf("more than %d instances of all jobs", maxInstances), "use smaller counts or fewer jobs")
		default:
			total += n
		}
		seen := map[string]int{}
		for k := range j.Groups {
			g, gp := &j.Groups[k], p.field("groups").item(k)
			if !c.name(gp.field("name"), "name", g.Name) && g.Name == "" {
				c.incomplete["jobs"] = true
			} else if first, ok := seen[g.Name]; ok {
				c.add(gp.field("name"), fmt.Sprintf("duplicate name %.100q: already used by groups[%d]", g.Name, first), "give each group of a job a unique name")
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

// The maximum number of instances after expansion of count. An instance that waits costs
// about 160 bytes, and a placed one several times that. The Google trace of 2011 has 25
// million, most of which end before others start.
const (
	maxJobInstances = 1_000_000
	maxInstances    = 30_000_000
)

// instances returns the number of instances of a job, or more than maxJobInstances. Counts
// that are invalid by themselves are omitted.
func (j *Job) instances() (n int) {
	for i := range j.Groups {
		if count := j.Groups[i].Count; count != nil && *count <= fieldcheck.MaxCount {
			n += min(max(*count, 0), maxJobInstances+1)
		}
	}
	return n
}

func (c *checker) checkJob(p *path, j *Job) {
	c.optionalName(p.field("namespace"), j.Namespace)
	c.oneOf(p.field("type"), j.Type, valuesOf[Job]("type")...)
	c.oneOf(p.field("preemptionPolicy"), j.PreemptionPolicy, valuesOf[Job]("preemptionPolicy")...)
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
	c.oneOf(p.field("disruptionMode"), j.DisruptionMode, valuesOf[Job]("disruptionMode")...)
	for i, dc := range j.Datacenters {
		c.name(p.field("datacenters").item(i), "datacenter", dc)
	}
	if len(j.Groups) == 0 {
		c.add(p.field("groups"), "a job requires at least one group", "add `groups: [{name: main, count: 1, resources: {cpu: 500}}]`")
	}
}

func (c *checker) checkGroup(p *path, j *Job, g *Group) {
	if g.Count != nil {
		perNode := j.Type == "system" || j.Type == "sysbatch"
		c.report(p.field("count"), fieldcheck.Count(*g.Count, j.Type, perNode))
	}
	c.checkMinCount(p.field("minCount"), j, g)
	c.checkAmounts(p.field("resources"), g.Resources)
	c.checkPorts(p.field("ports"), g.Ports)
	c.report(p.field("devices"), fieldcheck.DeviceRequests(len(g.Devices)))
	for i := range g.Devices {
		c.checkRequest(p.field("devices").item(i), &g.Devices[i])
	}
	c.noEmptyKey(p.field("labels"), g.Labels)
	c.checkPlacement(p, g)
	if n := g.MaxParallelEvictions; n != nil {
		c.report(p.field("maxParallelEvictions"), fieldcheck.MaxParallelEvictions(*n))
	}
	c.checkDuration(p.field("killTimeout"), g.KillTimeout)
	c.checkDuration(p.field("duration"), g.Duration)
	c.checkDuration(p.field("checkpoint"), g.Checkpoint)
	if d := g.Disconnect; d != nil && d.LostAfter != nil {
		at := p.field("disconnect").field("lostAfter")
		c.checkDuration(at, *d.LostAfter)
		c.report(at, fieldcheck.LostAfter(time.Duration(*d.LostAfter)))
	}
	for _, name := range keys(g.Annotations) {
		c.report(p.field("annotations").field(name), fieldcheck.Annotation(g.Annotations[name]))
	}
}

// checkMinCount checks the number of instances down to which a group is evicted one by one.
func (c *checker) checkMinCount(p *path, j *Job, g *Group) {
	count := 1
	if g.Count != nil {
		count = *g.Count
	}
	switch invalid := fieldcheck.MinCount(g.MinCount, count); {
	case invalid.Found():
		c.report(p, invalid)
	case g.MinCount > 0 && j.DisruptionMode != disruptAll:
		c.warnings = append(c.warnings, fmt.Sprintf("%v has no effect: without `disruptionMode: all` job %s is evicted one by one", p, j.ID))
	}
}

// checkDuration checks a duration that must not be negative.
func (c *valueChecker) checkDuration(p *path, d Duration) {
	c.report(p, fieldcheck.Duration(time.Duration(d), fmt.Sprint(d)))
}

// checkPlacement checks the constraints, affinities, spreads and label terms of a group.
func (c *valueChecker) checkPlacement(p *path, g *Group) {
	for i := range g.Tolerations {
		c.checkToleration(p.field("tolerations").item(i), &g.Tolerations[i])
	}
	for i := range g.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &g.Constraints[i], true)
	}
	for i := range g.Affinities {
		a, ap := &g.Affinities[i], p.field("affinities").item(i)
		c.checkConstraint(ap, &a.Constraint, false)
		c.report(ap.field("weight"), fieldcheck.AffinityWeight(a.Weight))
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
func (c *valueChecker) checkSpread(p *path, s *Spread) {
	c.report(p.field("attribute"), fieldcheck.SpreadAttribute(s.Attribute))
	if s.Weight != nil {
		c.report(p.field("weight"), fieldcheck.SpreadWeight(*s.Weight))
	}
	if s.MaxSkew != nil {
		c.report(p.field("maxSkew"), fieldcheck.MaxSkew(*s.MaxSkew))
	}
	sum := 0
	for _, value := range keys(s.Targets) {
		percent := s.Targets[value]
		if invalid := fieldcheck.TargetPercent(percent); invalid.Found() {
			c.report(p.field("targets").field(value), invalid)
			continue
		}
		sum += percent
	}
	c.report(p.field("targets"), fieldcheck.TargetSum(sum))
}

func (c *valueChecker) checkLabelTerm(p *path, t *LabelTerm) {
	c.report(p.field("labels"), fieldcheck.TermLabels(t.Labels))
	if t.TopologyKey == "" {
		c.add(p.field("topologyKey"), "topologyKey is missing", fmt.Sprintf("write %s, or an attribute of the nodes such as zone", model.TopologyNode))
	}
}

// checkDurations checks the durations of instances. Those of jobs that run once per node have
// no index that is known before they are placed.
func (c *checker) checkDurations() {
	if len(c.f.Durations) == 0 {
		return
	}
	counts := map[string]int{}
	for i := range c.f.Jobs {
		j := &c.f.Jobs[i]
		for k := range j.Groups {
			n := 1
			if g := &j.Groups[k]; g.Count != nil {
				n = *g.Count
			}
			if !j.jobType().PerNode() {
				counts[j.ID+"."+j.Groups[k].Name] = n
			}
		}
	}
	var root *path
	for _, name := range keys(c.f.Durations) {
		p := root.field("durations").field(name)
		group, index, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		n, known := counts[group]
		at, err := strconv.Atoi(index)
		switch {
		case !known || err != nil || name != fmt.Sprintf("%s[%d]", group, at):
			c.add(p, "unknown instance", "write job.group[0], of a service or batch job of this file")
		case at < 0 || at >= n:
			c.add(p, fmt.Sprintf("unknown instance: the group has %d", n), "write an index below the count of the group")
		case c.f.Durations[name] == 0:
			c.add(p, "must be positive", "remove it: the duration of the group applies")
		default:
			c.checkDuration(p, c.f.Durations[name])
		}
	}
}

package audit

import "slices"

// rest checks the state at a time at which no evaluation is ready: every instance that is
// missing has no place, and no policy that promises to find victims has left some.
func (c *checker) rest() {
	for _, j := range c.jobList {
		for _, g := range j.groups {
			c.checkCount(g)
		}
		if !j.evaluated || j.stopped || j.resubmit {
			continue
		}
		switch {
		case j.perNode:
			c.restPerNode(j)
		case j.AllAtOnce:
			c.restGang(j)
		default:
			for _, g := range j.groups {
				c.restGroup(g)
			}
		}
	}
	for _, a := range c.order {
		c.restAlloc(a)
	}
	c.bound.rest()
}

// restAlloc checks that an allocation which must leave its node has left.
func (c *checker) restAlloc(a *alloc) {
	if !a.live {
		return
	}
	switch {
	case a.lostAt() <= c.now:
		c.report("lost", "%s is live, and was lost with node %s", a.id, a.node.id)
	case a.group.job.stopped:
		c.report("stops", "%s is live, and its job has stopped", a.id)
	case !a.node.down && c.repelled(a):
		c.report("taints", "%s is live, and a NoExecute taint of %s repels it", a.id, a.node.id)
	}
}

// checkCount checks that no instance runs twice. A disconnected instance and its
// replacement are an exception.
func (c *checker) checkCount(g *group) {
	seen, n := map[int]string{}, 0
	nodes := map[*node]string{}
	for _, a := range c.order {
		if !a.live || a.group != g || a.node.down {
			continue
		}
		if g.job.perNode {
			if other := nodes[a.node]; other != "" {
				c.report("count", "%s and %s run on one node", other, a.id)
			}
			nodes[a.node] = a.id
			continue
		}
		if other := seen[a.index]; other != "" {
			c.report("count", "%s and %s are the same instance", other, a.id)
		}
		seen[a.index] = a.id
		if n++; n > g.count {
			c.report("count", "%s has %d instances, and %d are desired", g, n, g.count)
		}
	}
}

// missing returns how many instances of a group are not placed, and those that should
// move to another node because theirs drains.
func (c *cluster) missing(g *group) (missing int, moving []*alloc) {
	satisfied := map[int]bool{}
	for i := range g.done {
		satisfied[i] = true
	}
	for _, a := range c.order {
		if !a.live || a.group != g {
			continue
		}
		switch d := g.Disconnect; {
		case a.node.down && (d == nil || d.Replace == nil || *d.Replace):
			continue
		case a.node.draining && !a.node.down:
			moving = append(moving, a)
		}
		satisfied[a.index] = true
	}
	for i := range g.count {
		if !satisfied[i] {
			missing++
		}
	}
	return missing, moving
}

// restGroup checks the missing and the moving instances of a group.
func (c *checker) restGroup(g *group) {
	missing, moving := c.missing(g)
	if missing == 0 && len(moving) == 0 {
		return
	}
	for _, n := range c.nodeList {
		for _, a := range moving {
			a.live = false
			why := c.fits(n, g, c.here(n))
			a.live = true
			if why == "" {
				c.report("waits", "%s stays on draining node %s, and fits on %s", a.id, a.node.id, n.id)
				return
			}
		}
		if missing == 0 {
			continue
		}
		if c.fits(n, g, c.here(n)) == "" {
			c.report("waits", "%s lacks %d instances, and one fits on %s", g, missing, n.id)
			return
		}
		if c.promisesEnough() && c.fitsWithEvictions(n, g) {
			c.report("evicts", "%s lacks %d instances, and evictions on %s are allowed and sufficient", g, missing, n.id)
			return
		}
	}
}

// fitsWithEvictions reports whether a group fits on a node if every allocation there is
// evicted that certainly may be: members of all-or-none jobs, whatever a strict budget
// covers, and matches of co-location terms of the job stay.
func (c *cluster) fitsWithEvictions(n *node, g *group) bool {
	if len(g.Colocate) > 0 || excludedFrom(n, g) != "" {
		return false
	}
	var victims []*alloc
	for _, a := range c.here(n) {
		if c.spared(a, g.job) == "" && a.group.job.DisruptionMode != "all" && !c.coveredStrictly(a.group) && !attracts(a, g.job) && c.certain(a, g) {
			victims = append(victims, a)
		}
	}
	for _, v := range victims {
		v.live = false
	}
	why := c.fits(n, g, c.here(n))
	for _, v := range victims {
		v.live = true
	}
	return why == "" && len(victims) > 0
}

// attracts reports whether an allocation matches a co-location term of a job. The last
// match near an instance of the job stays.
func attracts(a *alloc, j *job) bool {
	return a.group.job.namespace == j.namespace && slices.ContainsFunc(j.groups, func(g *group) bool {
		return slices.ContainsFunc(g.Colocate, func(t labelTerm) bool { return matches(&t, a.group) })
	})
}

// certain reports whether the policy has no reason of its own to spare an allocation.
func (c *cluster) certain(a *alloc, g *group) bool {
	return c.run.Policy != "aging" || g.job.priority-a.group.job.priority >= c.gap()
}

func (c *cluster) coveredStrictly(g *group) bool {
	for i := range c.run.File.Budgets {
		if b := &c.run.File.Budgets[i]; isStrict(b) && covers(b, g) {
			return true
		}
	}
	return false
}

// restPerNode checks that a system job runs on every node on which it fits.
func (c *checker) restPerNode(j *job) {
	for _, g := range j.groups {
		for _, n := range c.nodeList {
			if g.ended[n.id] || g.count == 0 || c.runsOn(g, n) {
				continue
			}
			if c.fits(n, g, c.here(n)) == "" {
				c.report("waits", "%s does not run on %s, and fits there", g, n.id)
			} else if c.promisesEnough() && c.fitsWithEvictions(n, g) {
				c.report("evicts", "%s does not run on %s, and evictions there are allowed and sufficient", g, n.id)
			}
		}
	}
}

func (c *cluster) runsOn(g *group, n *node) bool {
	for _, a := range c.order {
		if a.live && a.group == g && a.node == n {
			return true
		}
	}
	return false
}

// restGang checks that a gang which lacks instances does not fit without evictions, by
// search over all nodes.
func (c *checker) restGang(j *job) {
	var wanted []*group
	for _, g := range j.groups {
		missing, _ := c.missing(g)
		if g.Disconnect != nil || len(g.Spread) > 0 {
			return
		}
		for range missing {
			wanted = append(wanted, g)
		}
	}
	if len(wanted) == 0 || len(wanted) > maxGang {
		return
	}
	placed := len(c.order)
	if c.placeAll(wanted) {
		c.report("waits", "gang %s lacks %d instances, and all of them fit", j.ID, len(wanted))
	}
	c.order = c.order[:placed]
}

// maxGang bounds the search for a gang: it tries every node for every instance.
const maxGang = 4

// placeAll places the groups in order, by search. It leaves its placements in c.order.
func (c *cluster) placeAll(wanted []*group) bool {
	if len(wanted) == 0 {
		return true
	}
	g := wanted[0]
	for _, n := range c.nodeList {
		present := c.here(n)
		if c.fits(n, g, present) != "" {
			continue
		}
		a, _ := candidate(n, g, present)
		before := len(c.order)
		c.order = append(c.order, a)
		if c.placeAll(wanted[1:]) {
			return true
		}
		c.order = c.order[:before]
	}
	return false
}

package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// conflict returns which rule between allocations a placement of a group on a node
// violates, or "". self is the allocation itself if it is placed already.
func (c *cluster) conflict(n *node, g *group, self *alloc) string {
	return cmp.Or(c.exclusion(n, g, self), c.skewed(n, g, self))
}

// exclusion is conflict without hard spreads.
func (c *cluster) exclusion(n *node, g *group, self *alloc) string {
	if why := c.sharesProperty(n, g, self); why != "" {
		return why
	}
	for _, o := range c.order {
		if o.live && o != self && exclusive(g, n, o) {
			return "separate from " + o.id
		}
	}
	for i := range g.Colocate {
		if why := c.apart(n, g, &g.Colocate[i], self); why != "" {
			return why
		}
	}
	return ""
}

// sharesProperty checks distinct_hosts and distinct_property.
func (c *cluster) sharesProperty(n *node, g *group, self *alloc) string {
	for i := range g.Constraints {
		k := &g.Constraints[i]
		key, limit := k.Attribute, 1
		switch k.Operator {
		case "distinct_hosts":
			key = "node.id"
		case "distinct_property":
			if l, err := strconv.Atoi(k.Value); err == nil && l > 0 {
				limit = l
			}
		default:
			continue
		}
		value, ok := n.attribute(key)
		if !ok {
			return "no attribute " + key
		}
		count := 0
		for _, o := range c.order {
			if o.live && o != self && o.group == g {
				if v, has := o.node.attribute(key); has && v == value {
					count++
				}
			}
		}
		if count >= limit {
			return fmt.Sprintf("%s %s: %d on %s", k.Operator, key, count, value)
		}
	}
	return ""
}

// matches reports whether a label term selects a group.
func matches(t *labelTerm, g *group) bool {
	for key, value := range t.Labels {
		if g.Labels[key] != value {
			return false
		}
	}
	return true
}

// exclusive reports whether a group on a node and another allocation exclude each other.
func exclusive(g *group, n *node, o *alloc) bool {
	if g.job.namespace != o.group.job.namespace {
		return false
	}
	excludes := func(a, b *group) bool {
		for i := range a.Separate {
			t := &a.Separate[i]
			x, okX := n.domain(t.TopologyKey)
			y, okY := o.node.domain(t.TopologyKey)
			if okX && okY && x == y && matches(t, b) {
				return true
			}
		}
		return false
	}
	return excludes(g, o.group) || excludes(o.group, g)
}

// apart checks a co-location term: a match must run in the domain, except for the first
// instance of a group that matches its own term.
func (c *cluster) apart(n *node, g *group, t *labelTerm, self *alloc) string {
	domain, ok := n.domain(t.TopologyKey)
	if !ok {
		return "no topology key " + t.TopologyKey
	}
	for _, o := range c.order {
		if d, has := o.node.domain(t.TopologyKey); has && d == domain && o != self && isTarget(t, g, o) {
			return ""
		}
	}
	if c.isFirst(g, t, self) {
		return ""
	}
	return fmt.Sprintf("no allocation with %v in %s %s", t.Labels, t.TopologyKey, domain)
}

// isTarget reports whether an allocation is a match of a co-location term of a group.
func isTarget(t *labelTerm, g *group, o *alloc) bool {
	return o.live && o.group.job.namespace == g.job.namespace && matches(t, o.group)
}

// isFirst reports whether a group matches its own co-location term, and no allocation does.
func (c *cluster) isFirst(g *group, t *labelTerm, self *alloc) bool {
	return matches(t, g) && !slices.ContainsFunc(c.order, func(o *alloc) bool { return o != self && isTarget(t, g, o) })
}

// skewed checks hard spreads.
func (c *cluster) skewed(n *node, g *group, self *alloc) string {
	for i := range g.Spread {
		s := &g.Spread[i]
		if s.MaxSkew == nil || *s.MaxSkew <= 0 {
			continue
		}
		value, ok := n.attribute(s.Attribute)
		if !ok {
			return "no attribute " + s.Attribute
		}
		counts := map[string]int{}
		for _, o := range c.order {
			if v, has := o.node.attribute(s.Attribute); o.live && o != self && o.group == g && has {
				counts[v]++
			}
		}
		lowest := counts[value]
		for _, o := range c.nodeList {
			_, serves := candidate(o, g, nil) // its devices, if nothing uses them
			if v, has := o.attribute(s.Attribute); has && serves && excludedFrom(o, g) == "" {
				lowest = min(lowest, counts[v])
			}
		}
		if counts[value]+1-lowest > *s.MaxSkew {
			return fmt.Sprintf("maxSkew %d of %s", *s.MaxSkew, s.Attribute)
		}
	}
	return ""
}

// candidate returns an allocation of the group on the node that is not placed yet, with
// devices that are free once those of present are subtracted; ok is false if none are.
func candidate(n *node, g *group, present []*alloc) (*alloc, bool) {
	a := &alloc{id: "?", group: g, node: n, live: true}
	free := map[string]int32{}
	for _, d := range n.Devices {
		free[d.ID] = d.Count
	}
	for _, p := range present {
		for _, d := range p.devices {
			free[d.ID] -= d.Count
		}
	}
	return a, a.assign(free, 0)
}

// assign chooses a device group for each request, by search.
func (a *alloc) assign(free map[string]int32, request int) bool {
	if request == len(a.group.Devices) {
		return true
	}
	r := &a.group.Devices[request]
	for i := range a.node.Devices {
		d := &a.node.Devices[i]
		if free[d.ID] < requested(r) || !serves(d, r) {
			continue
		}
		free[d.ID] -= requested(r)
		a.devices = append(a.devices, deviceUse(d.ID, requested(r)))
		if a.assign(free, request+1) {
			return true
		}
		a.devices = a.devices[:len(a.devices)-1]
		free[d.ID] += requested(r)
	}
	return false
}

// fits returns why a group does not fit on a node beside the present allocations, or "".
func (c *cluster) fits(n *node, g *group, present []*alloc) string {
	if why := excludedFrom(n, g); why != "" {
		return why
	}
	a, ok := candidate(n, g, present)
	if !ok {
		return "devices"
	}
	if why := overfull(n, append(slices.Clip(present), a)); why != "" {
		return why
	}
	return c.conflict(n, g, nil)
}

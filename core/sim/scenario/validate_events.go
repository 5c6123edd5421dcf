package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// checkEvents checks the events, which must be in ascending order of time.
func (c *checker) checkEvents() {
	var root *path
	var last Duration
	for i := range c.f.Events {
		e, p := &c.f.Events[i], root.field("events").item(i)
		c.checkDuration(p.field("at"), e.At)
		if e.At >= 0 && e.At < last {
			c.add(p.field("at"), fmt.Sprintf("%v comes after %v: expected events in order of time", e.At, last), "move the event, or correct its time")
		}
		last = max(last, e.At)
		c.checkAction(p, e)
	}
	c.warnUselessStops()
	if u := c.f.Until; u != nil {
		c.checkDuration(root.field("until"), *u)
		if last > *u && *u >= 0 {
			c.warnings = append(c.warnings, fmt.Sprintf("events after until (%v) have no effect; the last is at %v", *u, last))
		}
	}
}

// warnUselessStops adds a warning for each job that is stopped before it can run.
func (c *checker) warnUselessStops() {
	active := map[string]bool{}
	for i := range c.f.Running {
		active[cmp.Or(c.f.Running[i].Binding, c.f.Running[i].Job)] = true
	}
	for i := range c.f.Events {
		e := &c.f.Events[i]
		if e.Stop != "" && !active[e.Stop] {
			c.warnings = append(c.warnings, fmt.Sprintf("events[%d] stops %s, which neither runs nor was submitted", i, e.Stop))
		}
		active[e.Submit] = true
	}
}

// checkAction checks that an event has exactly one action.
func (c *checker) checkAction(p *path, e *Event) {
	actions := []struct{ field, value string }{
		{"submit", e.Submit}, {"stop", e.Stop}, {"nodeDown", e.NodeDown}, {"nodeUp", e.NodeUp}, {"drain", e.Drain},
	}
	action := ""
	for i, a := range actions {
		switch {
		case a.value == "":
			continue
		case action != "":
			c.add(p.field(a.field), fmt.Sprintf("%s and %s in one event: expected one of submit, stop, nodeDown, nodeUp and drain", action, a.field), "write two events; those of the same time run in file order")
		case i < 2:
			c.needJobOrBinding(p.field(a.field), a.value)
		default:
			c.needNode(p.field(a.field), a.value)
		}
		action = a.field
	}
	if action == "" {
		c.add(p, "the event has no action: expected one of submit, stop, nodeDown, nodeUp and drain", "write it as {at: 0s, submit: JOB}")
	}
}

// needJob checks a reference to a job and reports whether it exists.
func (c *referenceChecker) needJob(p *path, id string) bool {
	if id == "" {
		c.add(p, "job is missing", "name one of `jobs`")
		return false
	}
	_, ok := c.jobs[id]
	if !ok {
		c.unknown(p, "jobs", "job", id, c.jobs)
	}
	return ok
}

// needGroup checks a reference to a group of an existing job.
func (c *referenceChecker) needGroup(p *path, job, group string) bool {
	if group == "" {
		c.add(p, "group is missing", "name one of the job's groups")
		return false
	}
	known := c.groupsOf(c.jobs[job])
	_, ok := known[group]
	if !ok {
		c.unknown(p, "jobs", "group", group, known)
	}
	return ok
}

// groupsOf returns the positions of a job's groups by name.
func (c *referenceChecker) groupsOf(job int) map[string]int {
	known, ok := c.groupAt[job]
	if !ok {
		known = map[string]int{}
		for i, g := range c.f.Jobs[job].Groups {
			known[g.Name] = i
		}
		c.groupAt[job] = known
	}
	return known
}

func (c *expectChecker) checkExpect() {
	x := c.f.Expect
	if x == nil {
		return
	}
	var root *path
	expect := root.field("expect")
	for i := range deref(x.Placements) {
		c.checkExpectedPlacement(expect.field("placements").item(i), &(*x.Placements)[i])
	}
	for i := range deref(x.Bindings) {
		b, p := &(*x.Bindings)[i], expect.field("bindings").item(i)
		c.checkExpectedBinding(p, b)
	}
	for i := range deref(x.Unplaced) {
		u, p := &(*x.Unplaced)[i], expect.field("unplaced").item(i)
		c.checkExpectedGroup(p, u.Job, u.Group)
		if u.Binding != nil {
			c.needBinding(p.field("binding"), *u.Binding)
		}
		if u.Count != nil && *u.Count < 1 {
			c.add(p.field("count"), fmt.Sprintf("%d instances: expected 1 or more", *u.Count), "omit groups that are placed; `unplaced: []` requires that all groups are placed")
		}
	}
	c.allocs(expect.field("running"), deref(x.Running))
}

// deref returns the list, or nil if the pointer is nil.
func deref[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}

func (c *expectChecker) checkExpectedPlacement(p *path, x *ExpectPlacement) {
	if x.At != nil {
		c.checkDuration(p.field("at"), *x.At)
	}
	c.checkExpectedGroup(p, x.Job, x.Group)
	if x.Node != nil {
		c.needNode(p.field("node"), *x.Node)
	}
	if x.Alloc != nil {
		c.alloc(p.field("alloc"), *x.Alloc)
	}
	c.allocs(p.field("preempted"), deref(x.Preempted))
	for _, node := range keys(x.PreemptedElsewhere) {
		at := p.field("preemptedElsewhere").field(node)
		c.needNode(at, node)
		c.allocs(at, x.PreemptedElsewhere[node])
	}
}

func (c *expectChecker) checkExpectedGroup(p *path, job, group *string) {
	switch {
	case job != nil:
		if c.needJob(p.field("job"), *job) && group != nil {
			c.needGroup(p.field("group"), *job, *group)
		}
	case group != nil:
		if _, ok := c.anyGroup[*group]; !ok {
			c.unknown(p.field("group"), "jobs", "group", *group, c.anyGroup)
		}
	}
}

// allocs checks a set of allocation ids.
func (c *expectChecker) allocs(p *path, ids []string) {
	seen := map[string]bool{}
	for i, id := range ids {
		c.alloc(p.item(i), id)
		if seen[id] {
			c.add(p.item(i), fmt.Sprintf("%.100q is listed twice", id), "list it once: it is a set")
		}
		seen[id] = true
	}
}

// alloc checks a reference to an allocation: the id of a running entry, or an id that
// the engine generates (<job>.<group>[i], <job>.<group>[i]#n, or that of a binding).
func (c *expectChecker) alloc(p *path, id string) {
	if _, ok := c.running[id]; ok || c.isGeneratedID(id) {
		return
	}
	if _, ok := c.bindings[id]; ok {
		return
	}
	c.unknown(p, "running", "allocation", id, c.running)
}

// isGeneratedID reports whether the engine can generate an allocation id.
func (c *expectChecker) isGeneratedID(id string) bool {
	group, rest, ok := strings.Cut(id, "[")
	if !ok || !c.groups[group] {
		return c.incomplete["jobs"] && ok
	}
	index, again, ok := strings.Cut(rest, "]")
	if !ok || !isIndex(index) {
		return false
	}
	return again == "" || again[0] == '#' && isIndex(again[1:])
}

// isIndex reports whether s is a whole number in canonical decimal notation.
func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

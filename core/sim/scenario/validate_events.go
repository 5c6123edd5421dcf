package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

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
			c.warnings = append(c.warnings, fmt.Sprintf("events after until (%v) do not happen; the last is at %v", *u, last))
		}
	}
}

// warnUselessStops notices jobs that are stopped before anything of them can run.
func (c *checker) warnUselessStops() {
	there := map[string]bool{}
	for i := range c.f.Running {
		there[cmp.Or(c.f.Running[i].Binding, c.f.Running[i].Job)] = true
	}
	for i := range c.f.Events {
		e := &c.f.Events[i]
		if e.Stop != "" && !there[e.Stop] {
			c.warnings = append(c.warnings, fmt.Sprintf("events[%d] stops %s, which neither runs nor was submitted", i, e.Stop))
		}
		there[e.Submit] = true
	}
}

// checkAction checks that an event says one thing that can happen.
func (c *checker) checkAction(p *path, e *Event) {
	actions := []struct{ field, value string }{
		{"submit", e.Submit}, {"stop", e.Stop}, {"nodeDown", e.NodeDown}, {"nodeUp", e.NodeUp}, {"drain", e.Drain},
	}
	said := ""
	for i, a := range actions {
		switch {
		case a.value == "":
			continue
		case said != "":
			c.add(p.field(a.field), fmt.Sprintf("%s and %s in one event: expected one of submit, stop, nodeDown, nodeUp and drain", said, a.field), "write two events; those of the same time happen in file order")
		case i < 2:
			c.needJobOrBinding(p.field(a.field), a.value)
		default:
			c.needNode(p.field(a.field), a.value)
		}
		said = a.field
	}
	if said == "" {
		c.add(p, "the event says nothing: expected one of submit, stop, nodeDown, nodeUp and drain", "write it as {at: 0s, submit: JOB}")
	}
}

// needJob checks a reference to a job.
func (c *checker) needJob(p *path, id string) bool {
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

// needGroup checks a reference to a group of a job that exists.
func (c *checker) needGroup(p *path, job, group string) bool {
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

// groupsOf is the positions of a job's groups by name.
func (c *checker) groupsOf(job int) map[string]int {
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

func (c *checker) checkExpect() {
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
			c.add(p.field("count"), fmt.Sprintf("%d instances: expected 1 or more", *u.Count), "leave out what is placed; `unplaced: []` means that nothing is unplaced")
		}
	}
	c.allocs(expect.field("running"), deref(x.Running))
}

func deref[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}

func (c *checker) checkExpectedPlacement(p *path, x *ExpectPlacement) {
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

func (c *checker) checkExpectedGroup(p *path, job, group *string) {
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

func (c *checker) allocs(p *path, ids []string) {
	seen := map[string]bool{}
	for i, id := range ids {
		c.alloc(p.item(i), id)
		if seen[id] {
			c.add(p.item(i), fmt.Sprintf("%.100q is listed twice", id), "list it once: it is a set")
		}
		seen[id] = true
	}
}

// alloc checks a reference to an allocation: the id of a running entry, or one
// that the engine makes, <job>.<group>[i] or <job>.<group>[i]#n, or a binding's.
func (c *checker) alloc(p *path, id string) {
	if _, ok := c.running[id]; ok || c.isGeneratedID(id) {
		return
	}
	if _, ok := c.bindings[id]; ok {
		return
	}
	c.unknown(p, "running", "allocation", id, c.running)
}

func (c *checker) isGeneratedID(id string) bool {
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

// isIndex is whether s is a whole number in its one notation.
func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

package audit

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// Check returns every violation in the timeline of a run, in order of time.
func Check(run Run) []Finding {
	c := newChecker(run)
	for at := 0; at < len(run.Events); {
		ev := &run.Events[at]
		if ev.At < c.now {
			c.report("order", "event %d at %d comes after %d", at, ev.At, c.now)
		}
		c.now = ev.At
		switch ev.Kind {
		case timeline.Step:
			c.step(&run.File.Events[ev.Step])
			at++
		case timeline.Rest:
			c.rest()
			at++
		default:
			next := at + 1
			for next < len(run.Events) && isEntryOf(&run.Events[next], ev) {
				next++
			}
			c.entry(run.Events[at:next])
			at = next
		}
	}
	c.end()
	return c.findings
}

// isEntryOf reports whether an event belongs to the same log entry as another one.
func isEntryOf(ev, first *timeline.Event) bool {
	return ev.Entry == first.Entry && ev.At == first.At && ev.Kind != timeline.Step && ev.Kind != timeline.Rest
}

// step applies an event of the file.
func (c *checker) step(ev *scenario.Event) {
	switch {
	case ev.Submit != "":
		if j := c.jobs[ev.Submit]; j != nil {
			j.resubmit = j.resubmit || j.stopped
			j.registered, j.evaluated, j.stopped = true, true, false
		}
		c.bound.submit(ev.Submit)
	case ev.Stop != "":
		if j := c.jobs[ev.Stop]; j != nil && j.registered {
			j.stopped = true
		}
		c.bound.stop(ev.Stop)
	case ev.NodeDown != "":
		n := c.nodes[ev.NodeDown]
		if !n.down {
			n.down, n.downSince = true, c.now
		}
		for _, a := range c.order {
			a.interrupt = a.interrupt || a.node == n
		}
	case ev.NodeUp != "":
		n := c.nodes[ev.NodeUp]
		n.down, n.draining = false, false
		if n.Ready != nil {
			n.Node = readyCopy(n.Node)
		}
	case ev.Drain != "":
		c.nodes[ev.Drain].draining = true
	}
}

// readyCopy returns the node in status ready.
func readyCopy(n *scenario.Node) *scenario.Node {
	copied := *n
	copied.Ready = nil
	return &copied
}

// entry applies and checks the events of one log entry.
func (c *checker) entry(events []timeline.Event) {
	p := plan{removed: map[*alloc]*timeline.Event{}}
	for i := range events {
		ev := &events[i]
		switch ev.Kind {
		case timeline.Placed, timeline.Evicted, timeline.Stopped, timeline.Lost:
			c.addToPlan(&p, ev)
		case timeline.Started:
			c.started(ev)
		case timeline.Finished:
			c.finished(ev)
		case timeline.Gone:
			c.gone(ev)
		default:
			c.bound.event(ev)
		}
	}
	c.plan(&p)
	c.bound.check()
}

// started checks that a placement waits for its victims.
func (c *checker) started(ev *timeline.Event) {
	a := c.allocs[ev.Alloc]
	if a == nil {
		return // placed in the same entry: see plan
	}
	if a.started {
		c.report("starts", "%s starts twice", a.id)
	}
	for _, v := range a.victims {
		if v.endedAt+int64(v.group.KillTimeout) > c.now && !v.interrupt {
			c.report("starts", "%s starts before its victim %s has stopped", a.id, v.id)
		}
	}
	a.started, a.startedAt = true, c.now
}

// finished checks the time at which an allocation ends by itself.
func (c *checker) finished(ev *timeline.Event) {
	a := c.allocs[ev.Alloc]
	if a == nil || !a.live {
		c.report("times", "%s finishes and is not live", ev.Alloc)
		return
	}
	duration := a.group.Duration
	if own, ok := c.run.File.Durations[fmt.Sprintf("%s[%d]", a.group, a.index)]; ok {
		duration = own
	}
	due := max(a.startedAt+int64(duration)-a.saved, 0)
	if !a.interrupt && due != c.now && due >= a.startedAt {
		c.report("times", "%s finishes, and is due at %d", a.id, due)
	}
	c.remove(a)
	if a.group.job.perNode {
		a.group.ended[a.node.id] = true
		return
	}
	a.group.done[a.index] = true
}

// gone checks the time at which an allocation has stopped.
func (c *checker) gone(ev *timeline.Event) {
	a := c.allocs[ev.Alloc]
	if a == nil || a.live {
		c.report("times", "%s is gone without an order to stop", ev.Alloc)
		return
	}
	if due := a.endedAt + int64(a.group.KillTimeout); !a.interrupt && due != c.now {
		c.report("times", "%s is gone at %d, and is due at %d", a.id, c.now, due)
	}
}

func (c *cluster) remove(a *alloc) { a.live, a.endedAt = false, c.now }

// end compares the missing instances at the end with the result.
func (c *checker) end() {
	want := map[[2]string]int{}
	for _, j := range c.jobList {
		if !j.registered || j.stopped || j.perNode || j.resubmit {
			continue
		}
		for _, g := range j.groups {
			if g.Disconnect != nil {
				continue
			}
			missing := g.count - c.countLive(g)
			if j.Type == "batch" { // completed instances of a service are reported as missing
				missing -= len(g.done)
			}
			want[[2]string{j.ID, g.Name}] = missing
		}
	}
	for key, n := range want {
		if got := c.run.Unplaced[key]; got != n {
			c.report("unplaced", "%s.%s lacks %d instances, and the result reports %d", key[0], key[1], n, got)
		}
	}
	if c.losses != len(c.run.LostWork) {
		c.report("lost work", "%d evictions, and the result reports %d", c.losses, len(c.run.LostWork))
	}
}

func (c *cluster) countLive(g *group) (n int) {
	for _, a := range c.order {
		if a.live && a.group == g {
			n++
		}
	}
	return n
}

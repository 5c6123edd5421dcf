package metrics

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// demand tracks pending instances: how long they wait, at which priority, and whether
// lower priorities run meanwhile.
type demand struct {
	levels  []*level // by priority, ascending
	waiting int

	inverted  int // instances that wait while preemptible allocations of lower priority run
	stale     bool
	inversion integral // instances × nanoseconds
}

// level aggregates one priority.
type level struct {
	priority int32
	waiting  int
	running  int     // preemptible allocations
	delays   []int64 // of waits that ended, in nanoseconds
	victims  map[int32]int
	wasted   []integral
}

// wait represents n instances that have been pending since a time.
type wait struct {
	since int64
	n     int
}

func (d *demand) init() { *d = demand{} }

// level returns the level of a priority and creates it if necessary.
func (d *demand) level(priority int32) *level {
	at, found := slices.BinarySearchFunc(d.levels, priority, func(l *level, p int32) int {
		return cmp.Compare(l.priority, p)
	})
	if !found {
		d.levels = slices.Insert(d.levels, at, &level{priority: priority, victims: map[int32]int{}})
	}
	return d.levels[at]
}

// move updates a group if the priority of its job changed.
func (d *demand) move(g *groupRow, j *model.Job) {
	g.preemptible = !j.NonPreemptible
	if to := d.level(j.Priority); to != g.level {
		g.level.waiting -= g.waiting
		to.waiting += g.waiting
		g.level = to
		d.stale = true
	}
}

func (d *demand) wait(g *groupRow, n int) {
	g.waiting += n
	g.level.waiting += n
	d.waiting += n
	d.stale = true
}

// queued sets the number of pending instances of a group.
func (d *demand) queued(g *groupRow, at int64, count int) {
	for more := count - g.waiting; more > 0; {
		since, n := at, more
		if len(g.resumed) > 0 {
			since, n = g.resumed[0], 1
			g.resumed = g.resumed[1:]
		}
		g.push(since, n)
		d.wait(g, n)
		more -= n
	}
	g.resumed = g.resumed[:0]
	// Instances that are no longer desired have waited in vain. The most recent waits
	// are removed first, like the highest indexes.
	for less := g.waiting - count; less > 0; {
		last := &g.waits[len(g.waits)-1]
		n := min(less, last.n)
		for range n {
			if at > last.since {
				g.level.delays = append(g.level.delays, at-last.since)
			}
		}
		if last.n -= n; last.n == 0 {
			g.waits = g.waits[:len(g.waits)-1]
		}
		d.wait(g, -n)
		less -= n
	}
}

// push inserts n waits, ordered by their start.
func (g *groupRow) push(since int64, n int) {
	at := len(g.waits)
	for at > 0 && g.waits[at-1].since > since {
		at--
	}
	if at > 0 && g.waits[at-1].since == since {
		g.waits[at-1].n += n
		return
	}
	g.waits = slices.Insert(g.waits, at, wait{since, n})
}

// placed removes the longest wait of a group and returns its start. If the group has
// no recorded wait, it returns now.
func (d *demand) placed(g *groupRow, now int64) int64 {
	if len(g.resumed) > 0 && (len(g.waits) == 0 || g.resumed[0] <= g.waits[0].since) {
		since := g.resumed[0]
		g.resumed = g.resumed[1:]
		return since
	}
	if len(g.waits) == 0 {
		return now
	}
	first := &g.waits[0]
	since := first.since
	if first.n--; first.n == 0 {
		g.waits = slices.Delete(g.waits, 0, 1)
	}
	d.wait(g, -1)
	return since
}

// started records the delay of a wait that ended.
func (d *demand) started(g *groupRow, delay int64) {
	g.level.delays = append(g.level.delays, delay)
}

// resume restores the wait of an allocation that ended before it started.
func (d *demand) resume(r *allocRow) {
	if !r.started {
		r.group.resumed = append(r.group.resumed, r.since)
		slices.Sort(r.group.resumed)
	}
}

// hold counts a preemptible allocation at its priority.
func (d *demand) hold(r *allocRow, sign int64) {
	if r.victim {
		r.level.running += int(sign)
		d.stale = true
	}
}

// advance integrates priority inversion. The number of inverted instances is
// recomputed only if it changed since, over priorities alone.
func (d *demand) advance(dt int64) {
	if d.stale {
		d.inverted, d.stale = 0, false
		lower := false
		for _, l := range d.levels {
			if lower {
				d.inverted += l.waiting
			}
			lower = lower || l.running > 0
		}
	}
	d.inversion.add(int64(d.inverted), dt)
}

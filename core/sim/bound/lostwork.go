package bound

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// instants limits the instants that LostWorkBound examines.
const instants = 16

// started is an instance that a run started.
type started struct {
	use       []int64
	from, end int64 // end: latest time at which it may not hold its request any more
	cost      int64 // the least cost of its eviction
}

// LostWorkBound returns a lower bound on the lost work of every schedule with the service
// of this run, in nanoseconds of the whole cluster. Such a schedule starts the same
// instances for the first time in the same instants, and evicts only in the instants in
// which the run evicts, and no instance in the instant of its start. It may choose other nodes and victims, move
// instances in the instants in which the run moves, and anticipate the future. Work that
// moves lose is lost work.
func LostWorkBound(f *scenario.Resolved, r *sim.Result) int64 {
	c := newCapacity(f)
	evictions := evictionTimes(r)
	if len(evictions) == 0 || hasNoExecute(f) {
		return 0
	}
	list := startedInstances(f, r, c, evictions)
	times := evictions
	if step := (len(times)-1)/instants + 1; step > 1 {
		times = nil
		for i := len(evictions) - 1; i >= 0; i -= step {
			times = append(times, evictions[i])
		}
		slices.Reverse(times)
	}
	// best[k] is the bound on evictions up to times[k], whose last term is that instant.
	best, most := make([]int64, len(times)), int64(0)
	for k, t := range times {
		best[k] = coverAt(list, c, t, -unlimited)
		for i := range k {
			if best[i] > 0 {
				best[k] = max(best[k], best[i]+coverAt(list, c, t, times[i]))
			}
		}
		most = max(most, best[k])
	}
	return most
}

// coverAt returns a lower bound on the cost of the evictions up to t of instances that start
// at paid or later. Instances that started earlier may be charged to an earlier instant
// already, and cost nothing here. Those that start at t cannot have been evicted.
func coverAt(list []started, c *capacity, t, paid int64) int64 {
	load := make([]int64, len(c.names))
	var items []coverItem
	for i := range list {
		x := &list[i]
		if x.from > t || x.end <= t {
			continue
		}
		for d, amount := range x.use {
			load[d] += amount
		}
		cost := x.cost
		if x.from < paid {
			cost = 0
		}
		if x.from < t {
			items = append(items, coverItem{i, cost, x.use})
		}
	}
	for d := range load {
		load[d] -= c.total[d]
	}
	var steps int64
	lower := newCover(load, items, &steps, Infinite).relaxed()
	if lower == Infinite {
		return 0 // the run itself is an answer, so that this does not happen
	}
	return lower
}

// evictionTimes returns the instants in which allocations are evicted, ascending.
func evictionTimes(r *sim.Result) (times []int64) {
	for i := range r.Evicted {
		if r.Evicted[i].Alloc != "" {
			times = append(times, int64(r.Evicted[i].At))
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

func hasNoExecute(f *scenario.Resolved) bool {
	return slices.ContainsFunc(f.Nodes, func(n *model.Node) bool {
		return slices.ContainsFunc(n.Taints, func(t model.Taint) bool { return t.Effect == model.NoExecute })
	})
}

// startedInstances lists the first starts of a run, without instances that it evicted in
// the instant of their start.
func startedInstances(f *scenario.Resolved, r *sim.Result, c *capacity, evictions []int64) (list []started) {
	at := firstEvictions(r)
	groups, jobs := map[[2]string]*model.Group{}, map[*model.Group]*model.Job{}
	delay := int64(0) // an instance may start this much later than it is placed
	for _, j := range f.Jobs {
		for _, g := range j.Groups {
			groups[[2]string{j.ID, g.Name}], jobs[g] = g, j
			delay = max(delay, g.KillTimeout)
		}
	}
	// An instance that is moved starts again, as late as any other.
	delay *= 1 + int64(moveTimes(r))
	start := func(id string, g *model.Group, from int64) {
		if t, evicted := at[id]; evicted && t <= from {
			return
		}
		use, _ := c.use(g)
		x := started{use: use, from: from, end: latestEnd(f, jobs[g], from)}
		if d := f.ShortestDuration(jobs[g], g); d > 0 {
			x.end = min(x.end, from+d)
		}
		x.cost = leastCost(c, g, use, from, delay, evictions)
		list = append(list, x)
	}
	for _, a := range f.Running {
		start(a.ID, a.Group, a.StartTime)
	}
	for i := range r.Placements {
		p := &r.Placements[i]
		if !strings.Contains(p.Alloc, "#") {
			start(p.Alloc, groups[[2]string{p.Job, p.Group}], int64(p.At))
		}
	}
	return list
}

// firstEvictions returns the first eviction by allocation. That of an instance that was
// moved before counts for the allocation with which it started.
func firstEvictions(r *sim.Result) map[string]int64 {
	first, from := map[string]int64{}, map[string]string{}
	for i := range r.Moved {
		from[r.Moved[i].To] = r.Moved[i].Alloc
	}
	for i := range r.Evicted {
		id := r.Evicted[i].Alloc
		for from[id] != "" {
			id = from[id]
		}
		if _, seen := first[id]; !seen {
			first[id] = int64(r.Evicted[i].At)
		}
	}
	return first
}

// moveTimes returns the number of instants in which instances are moved.
func moveTimes(r *sim.Result) int {
	times := map[sim.At]bool{}
	for i := range r.Moved {
		times[r.Moved[i].At] = true
	}
	return len(times)
}

// latestEnd returns the earliest time at which an instance that runs may end because its job is stopped,
// or a node fails or drains.
func latestEnd(f *scenario.Resolved, job *model.Job, from int64) int64 {
	for i := range f.Steps {
		s := &f.Steps[i]
		ends := s.Do == scenario.NodeDown || s.Do == scenario.Drain || s.Do == scenario.Stop && s.Job != nil && s.Job.Key() == job.Key()
		if ends && s.At >= from {
			return s.At
		}
	}
	return unlimited
}

// leastCost returns the least cost of evicting an instance in one of the instants after
// its start. Its age is uncertain by the time in which its own victims stop.
func leastCost(c *capacity, g *model.Group, use []int64, from, delay int64, evictions []int64) int64 {
	least := unlimited
	after, _ := slices.BinarySearch(evictions, from+1)
	for _, t := range evictions[after:] {
		low, high := max(0, t-from-delay), t-from
		lost := g.LostWork(low)
		if g.Checkpoint > 0 && low/g.Checkpoint != high/g.Checkpoint {
			lost = 0
		}
		least = min(least, lost)
		if g.Checkpoint <= 0 {
			break // later evictions lose more
		}
	}
	if least == unlimited {
		return 0 // it cannot be evicted
	}
	return c.cost(use, least)
}

package bound

import (
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// windows limits the periods that UnplacedBound examines.
const windows = 32

const second = int64(1e9)

// instance is an instance that is desired at the end of a scenario.
type instance struct {
	use      []int64
	from     int64 // earliest start
	duration int64 // 0: for ever
	finishes bool  // it may have finished by the end
}

// UnplacedBound returns a lower bound on the metric unplaced of every schedule, with any
// evictions, and with knowledge of the future. It relaxes the cluster to one node with the total capacity
// and considers one resource at a time.
func UnplacedBound(f *scenario.Resolved) int {
	c := newCapacity(f)
	list, never := instances(f, c)
	best := 0
	for d := range c.names {
		best = max(best, missing(list, d, c.total[d]))
		for _, from := range starts(list) {
			best = max(best, missingSince(list, d, c.total[d], from, endOf(f)))
		}
	}
	return never + best
}

// instances lists the instances that are desired at the end, and counts those that fit on
// no node.
func instances(f *scenario.Resolved, c *capacity) (list []instance, never int) {
	end := endOf(f)
	lives := lifetimes(f, end)
	desired := func(j *model.Job, g *model.Group, n int, from int64) {
		use, fits := c.use(g)
		if !fits {
			never += n
			return
		}
		d := f.ShortestDuration(j, g)
		i := instance{use: use, from: from, duration: d, finishes: d > 0 && (end == unlimited || from+d <= end)}
		for range n {
			list = append(list, i)
		}
	}
	for _, j := range f.Jobs {
		life, seen := lives[j.Key()]
		if j.Type.PerNode() || seen && life.stopped != unlimited {
			continue
		}
		for _, g := range j.Groups {
			running, from := 0, life.submitted
			for _, a := range f.Running {
				if a.Job.Key() == j.Key() && a.Group.Name == g.Name {
					running, from = running+1, min(from, a.StartTime)
				}
			}
			switch {
			case seen && life.submitted != unlimited:
				desired(j, g, g.Count, from)
			case running > 0:
				desired(j, g, running, min(from, 0))
			}
		}
	}
	return list, never
}

// missing returns how many of the instances that cannot have finished exceed the capacity.
func missing(list []instance, d int, capacity int64) int {
	var asks []int64
	for i := range list {
		if !list[i].finishes {
			asks = append(asks, list[i].use[d])
		}
	}
	return len(asks) - fitting(asks, capacity)
}

// fitting returns the largest number of requests that fit: the smallest ones first.
func fitting(asks []int64, capacity int64) (n int) {
	slices.Sort(asks)
	for _, ask := range asks {
		if ask > capacity {
			break
		}
		capacity -= ask
		n++
	}
	return n
}

// starts returns some of the earliest starts, ascending.
func starts(list []instance) (times []int64) {
	for i := range list {
		times = append(times, list[i].from)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	for step := len(times)/windows + 1; step > 1; step = 1 {
		var some []int64
		for i := 0; i < len(times); i += step {
			some = append(some, times[i])
		}
		times = some
	}
	return times
}

// missingSince returns how many of the instances that start at or after a time are
// missing at the end. Each of them either finished, and used its request for its duration
// within the period, or holds its request at the end. The two capacities are added with
// a weight, which is a surrogate constraint and valid for every weight.
func missingSince(list []instance, d int, capacity, from, end int64) int {
	if end == unlimited || end <= from {
		return 0
	}
	period := (end - from + second - 1) / second // rounded up: a bound
	best := 0
	for _, weight := range []int64{period, period / 4, period / 16, 1} {
		high, total := bits.Mul64(uint64(capacity), uint64(period+weight))
		if high > 0 || weight == 0 || total > 1<<62 {
			continue // out of range
		}
		var asks []int64
		for i := range list {
			x := &list[i]
			if x.from < from || x.use[d] > 1<<30 {
				continue
			}
			seconds := weight
			if x.finishes {
				seconds = min(seconds, x.duration/second) // rounded down: a bound
			}
			asks = append(asks, x.use[d]*seconds)
		}
		best = max(best, len(asks)-fitting(asks, int64(total)))
	}
	return best
}

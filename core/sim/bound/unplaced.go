package bound

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
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
	weight   int64 // positive
}

// UnplacedBound returns a lower bound on the metric unplaced of every schedule, with any
// evictions, and with knowledge of the future. It relaxes the cluster to one node with the total capacity
// and considers one resource at a time.
func UnplacedBound(f *scenario.Resolved) int {
	return int(unplacedBound(f, func(*model.Job) int64 { return 1 }))
}

// UnplacedWeightBound is UnplacedBound for the metric unplacedWeight.
func UnplacedWeightBound(f *scenario.Resolved) int { return int(unplacedBound(f, weightOf)) }

// weightOf returns the weight of an instance in the metric unplacedWeight.
func weightOf(j *model.Job) int64 { return max(0, int64(j.Priority)) + 1 }

// unplacedWeight returns the weight of the instances that are unplaced at the end of a run.
func unplacedWeight(f *scenario.Resolved, list []sim.Unplaced) (sum int) {
	weights := map[string]int64{} // by job
	for _, j := range f.Jobs {
		weights[j.ID] = weightOf(j)
	}
	for i := range list {
		if list[i].Binding == "" {
			sum += list[i].Count * int(weights[list[i].Job])
		}
	}
	return sum
}

func unplacedBound(f *scenario.Resolved, weigh func(*model.Job) int64) int64 {
	c := newCapacity(f)
	list, never := instances(f, c, weigh)
	best := int64(0)
	for d := range c.names {
		best = max(best, missing(list, d, c.total[d]))
		for _, from := range starts(list) {
			best = max(best, missingSince(list, d, c.total[d], from, endOf(f)))
		}
	}
	return never + best
}

// instances lists the instances that are desired at the end, and returns the weight of those that
// fit on no node.
func instances(f *scenario.Resolved, c *capacity, weigh func(*model.Job) int64) (list []instance, never int64) {
	end := endOf(f)
	lives := lifetimes(f, end)
	desired := func(j *model.Job, g *model.Group, n int, from int64) {
		use, fits := c.use(g)
		if !fits {
			never += int64(n) * weigh(j)
			return
		}
		d := f.ShortestDuration(j, g)
		i := instance{use: use, from: from, duration: d, finishes: d > 0 && (end == unlimited || from+d <= end), weight: weigh(j)}
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

// An item is the amount that an instance needs, and its weight.
type item struct{ ask, weight int64 }

// missing returns the least weight that is missing of the instances that cannot have finished.
func missing(list []instance, d int, capacity int64) int64 {
	var items []item
	for i := range list {
		if x := &list[i]; !x.finishes {
			items = append(items, item{x.use[d], x.weight})
		}
	}
	return exceeding(items, capacity)
}

// exceeding returns a lower bound on the weight of items for which a capacity does not suffice. The
// largest weight by amount goes first, and a part of the first item that does not fit counts as
// placed, which is the best that any choice could reach.
func exceeding(items []item, capacity int64) (weight int64) {
	slices.SortFunc(items, func(a, b item) int {
		high, low := bits.Mul64(uint64(a.weight), uint64(b.ask))
		high2, low2 := bits.Mul64(uint64(b.weight), uint64(a.ask))
		return cmp.Or(cmp.Compare(high2, high), cmp.Compare(low2, low))
	})
	at := 0
	for at < len(items) && items[at].ask <= capacity {
		capacity -= items[at].ask
		at++
	}
	for _, x := range items[at:] {
		weight += x.weight
	}
	if at < len(items) {
		high, low := bits.Mul64(uint64(items[at].weight), uint64(capacity))
		part, _ := bits.Div64(high, low, uint64(items[at].ask)) // less than the weight
		weight -= int64(part)
	}
	return weight
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

// missingSince returns the least weight of the instances that start at or after a time and are
// missing at the end. Each of them either finished, and used its request for its duration
// within the period, or holds its request at the end. The two capacities are added with
// a weight, which is a surrogate constraint and valid for every weight.
func missingSince(list []instance, d int, capacity, from, end int64) int64 {
	if end == unlimited || end <= from {
		return 0
	}
	period := (end - from + second - 1) / second // rounded up: a bound
	best := int64(0)
	for _, weight := range []int64{period, period / 4, period / 16, 1} {
		high, total := bits.Mul64(uint64(capacity), uint64(period+weight))
		if high > 0 || weight == 0 || total > 1<<62 {
			continue // out of range
		}
		var items []item
		for i := range list {
			x := &list[i]
			if x.from < from || x.use[d] > 1<<30 {
				continue
			}
			seconds := weight
			if x.finishes {
				seconds = min(seconds, x.duration/second) // rounded down: a bound
			}
			items = append(items, item{x.use[d] * seconds, x.weight})
		}
		best = max(best, exceeding(items, int64(total)))
	}
	return best
}

package bound

import (
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// capacity is the capacity of the cluster of a scenario by amounts that every placement
// has in common: resources by name, and devices by type, because a request for a type may
// be served by any vendor and model.
type capacity struct {
	names []string
	total []int64
	nodes [][]int64
	// kinds holds the largest number of devices of one kind (vendor/type), by type.
	kinds map[string]int64
}

func newCapacity(f *scenario.Resolved) *capacity {
	c := &capacity{kinds: map[string]int64{}}
	for _, n := range f.Nodes {
		for name := range n.Capacity {
			c.names = add(c.names, name)
		}
		for i := range n.Devices {
			c.names = add(c.names, deviceType(n.Devices[i].ID))
		}
	}
	slices.Sort(c.names)
	c.total = make([]int64, len(c.names))
	byKind := map[string]int64{}
	for _, n := range f.Nodes {
		own := make([]int64, len(c.names))
		for name, amount := range n.Capacity {
			own[slices.Index(c.names, name)] += max(0, amount-n.Reserved[name])
		}
		for i := range n.Devices {
			d := &n.Devices[i]
			own[slices.Index(c.names, deviceType(d.ID))] += int64(d.Count)
			byKind[deviceKind(d.ID)] += int64(d.Count)
		}
		for i, amount := range own {
			c.total[i] += amount
		}
		c.nodes = append(c.nodes, own)
	}
	for kind, n := range byKind {
		kind = deviceType(kind)
		c.kinds[kind] = max(c.kinds[kind], n)
	}
	return c
}

// deviceType returns the type of a device ID or request, with a prefix that no resource has.
func deviceType(id string) string {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) > 1 {
		return "device/" + parts[1]
	}
	return "device/" + parts[0]
}

// use returns the amounts that an instance of a group holds, and whether a node offers
// them.
func (c *capacity) use(g *model.Group) (amounts []int64, fits bool) {
	amounts, fits = make([]int64, len(c.names)), true
	request := func(name string, amount int64) {
		if at := slices.Index(c.names, name); at >= 0 {
			amounts[at] += amount
		} else if amount > 0 {
			fits = false
		}
	}
	for name, amount := range g.Resources {
		request(name, amount)
	}
	for i := range g.Devices {
		request(deviceType(g.Devices[i].ID), int64(g.Devices[i].Count))
	}
	return amounts, fits && slices.ContainsFunc(c.nodes, func(n []int64) bool { return !exceeds(amounts, n) })
}

// cost returns a lower bound on the cost of losing nanoseconds of an instance's work.
func (c *capacity) cost(amounts []int64, lost int64) (cost int64) {
	for i, name := range c.names {
		whole := c.total[i]
		if strings.HasPrefix(name, "device/") {
			whole = c.kinds[name]
			amounts := min(amounts[i], whole)
			cost += share(amounts, whole, lost)
			continue
		}
		cost += share(amounts[i], whole, lost)
	}
	return cost
}

// unlimited is the time of an event that never happens.
const unlimited = int64(math.MaxInt64)

// lifetime is the period in which a job is desired.
type lifetime struct {
	submitted int64 // first time; unlimited: never
	stopped   int64 // last time; unlimited: never, or it was submitted again
}

// lifetimes returns the lifetimes of all jobs that are submitted or stopped up to a time.
func lifetimes(f *scenario.Resolved, end int64) map[model.JobKey]lifetime {
	all := map[model.JobKey]lifetime{}
	for i := range f.Steps {
		s := &f.Steps[i]
		if s.Job == nil || s.At > end {
			continue
		}
		life, seen := all[s.Job.Key()]
		if !seen {
			life = lifetime{unlimited, unlimited}
		}
		switch s.Do {
		case scenario.Submit:
			life.submitted, life.stopped = min(life.submitted, s.At), unlimited
		case scenario.Stop:
			life.stopped = s.At
		}
		all[s.Job.Key()] = life
	}
	return all
}

// endOf returns the end of a scenario; unlimited if it has none.
func endOf(f *scenario.Resolved) int64 {
	if f.Until != nil {
		return *f.Until
	}
	return unlimited
}

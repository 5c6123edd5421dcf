package nomad_test

import (
	"math"
	"slices"
	"sort"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// reference computes the victims of one option. It is an independent, slow
// implementation of reference/nomad.md 1.3 to 1.6, step by step.
type reference struct {
	c *policytest.Case
	o *policytest.Option
	// evicted holds the victims of completed steps, in order.
	evicted []int
	// deviceVictims holds the victims of the device step by request. An entry is nil
	// if enough instances were free.
	deviceVictims [][]int
}

// referenceVictims returns nil if a step fails.
func referenceVictims(c *policytest.Case, o *policytest.Option) *reference {
	x := &reference{c: c, o: o}
	if x.network() && x.devices() && x.rest() {
		return x
	}
	return nil
}

func (x *reference) bandwidth() int { return slices.Index(x.c.Dims, "network") }

// remaining returns the rows that are not yet evicted, by priority and then in row
// order.
func (x *reference) remaining() []int {
	var list []int
	for k := range x.o.Rows {
		if !slices.Contains(x.evicted, k) {
			list = append(list, k)
		}
	}
	return list
}

func (x *reference) byPriority(rows []int) [][]int {
	groups := map[int32][]int{}
	for _, k := range rows {
		p := x.o.Rows[k].Priority
		groups[p] = append(groups[p], k)
	}
	var priorities []int
	for p := range groups {
		priorities = append(priorities, int(p))
	}
	sort.Ints(priorities)
	var list [][]int
	for _, p := range priorities {
		list = append(list, groups[int32(p)])
	}
	return list
}

func (x *reference) penalty(k int) float64 {
	evictions, maxParallel := x.o.Rows[k].Evictions, x.o.Rows[k].EvictionLimit
	if maxParallel > 0 && evictions >= maxParallel {
		return float64(50 * (evictions + 1 - maxParallel))
	}
	return 0
}

// network implements 1.5. It reports whether the step succeeds.
func (x *reference) network() bool {
	for _, r := range x.o.Rows {
		if r.MustLeave&policy.MustLeaveSeparation != 0 {
			return false // distinct hosts and similar constraints: preemption does not resolve them
		}
	}
	net := x.bandwidth()
	ask, free := 0.0, 0.0
	if net >= 0 {
		ask, free = x.c.Preemptor.Ask[net], x.o.Free[net]
	}
	used := func(k int) float64 {
		if net < 0 {
			return 0
		}
		return x.o.Rows[k].Use[net]
	}
	holdsPort := func(k int) bool { return x.o.Rows[k].MustLeave&policy.MustLeavePort != 0 }
	distance := func(k int) float64 {
		if ask <= 0 {
			return 0
		}
		return math.Abs((ask - used(k)) / ask)
	}

	var victims []int
	freed := 0.0
	for k := range x.o.Rows {
		if holdsPort(k) {
			victims = append(victims, k)
			freed += used(k)
		}
	}
	if len(victims) == 0 && free >= ask {
		return true // the offer succeeds
	}
	var others []int
	for _, k := range x.remaining() {
		if used(k) > 0 && !holdsPort(k) {
			others = append(others, k)
		}
	}
	for _, group := range x.byPriority(others) {
		sort.SliceStable(group, func(a, b int) bool {
			return distance(group[a])+x.penalty(group[a]) < distance(group[b])+x.penalty(group[b])
		})
		for _, k := range group {
			if freed+free >= ask {
				break
			}
			victims = append(victims, k)
			freed += used(k)
		}
	}
	if freed+free < ask {
		return false
	}
	if ask > 0 { // the filter never ends early without
		sort.Slice(victims, func(a, b int) bool {
			da, db := distance(victims[a]), distance(victims[b])
			return da > db || da == db && victims[a] < victims[b]
		})
		available := free
		for n, k := range victims {
			available += used(k)
			if available > 0 && available >= ask {
				if slices.ContainsFunc(victims[n+1:], holdsPort) {
					return false // the offer fails again
				}
				victims = victims[:n+1]
				break
			}
		}
	}
	x.evicted = append(x.evicted, victims...)
	return true
}

// devices implements 1.6 on the group of the option.
func (x *reference) devices() bool {
	for q, request := range x.c.Preemptor.Devices {
		count := float64(request.Count)
		held := func(k int) float64 { return x.o.Rows[k].Devices[q] }
		free := x.o.DeviceFree[q]
		for _, k := range x.evicted {
			free += held(k)
		}
		if free >= count {
			x.deviceVictims = append(x.deviceVictims, nil)
			continue
		}
		var picked []int
		sum := 0.0
	walk:
		for _, group := range x.byPriority(x.remaining()) {
			for _, k := range group {
				if held(k) > 0 {
					picked = append(picked, k)
					sum += held(k)
					if sum+free >= count {
						break walk
					}
				}
			}
		}
		if sum+free < count {
			return false
		}
		sort.Slice(picked, func(a, b int) bool {
			ha, hb := held(picked[a]), held(picked[b])
			return ha > hb || ha == hb && picked[a] < picked[b]
		})
		kept := []int{}
		instances := 0.0
		for _, k := range picked {
			if instances >= count {
				break
			}
			kept = append(kept, k)
			instances += held(k)
		}
		x.deviceVictims = append(x.deviceVictims, kept)
		x.evicted = append(x.evicted, kept...)
	}
	return true
}

// rest implements 1.4 over every dimension except the network.
func (x *reference) rest() bool {
	var dims []int
	for d, name := range x.c.Dims {
		if name != "network" {
			dims = append(dims, d)
		}
	}
	base := map[int]float64{} // free capacity after the evictions of earlier steps
	for _, d := range dims {
		base[d] = x.o.Free[d]
		for _, k := range x.evicted {
			base[d] += x.o.Rows[k].Use[d]
		}
	}
	met := func(victims []int) bool {
		for _, d := range dims {
			available := base[d]
			for _, k := range victims {
				available += x.o.Rows[k].Use[d]
			}
			if available < x.c.Preemptor.Ask[d] {
				return false
			}
		}
		return true
	}
	if met(nil) {
		return true
	}
	distance := func(need map[int]float64, k int) float64 {
		sum := 0.0
		for _, d := range dims {
			if need[d] > 0 {
				q := (need[d] - x.o.Rows[k].Use[d]) / need[d]
				sum += float64(q * q)
			}
		}
		return math.Sqrt(sum)
	}
	ask, need := map[int]float64{}, map[int]float64{}
	for _, d := range dims {
		ask[d], need[d] = x.c.Preemptor.Ask[d], x.c.Preemptor.Ask[d]
	}

	var victims []int
	for _, group := range x.byPriority(x.remaining()) {
		for len(group) > 0 && !met(victims) {
			best, bestScore := -1, math.Inf(1)
			for at, k := range group {
				if score := distance(need, k) + x.penalty(k); score < bestScore {
					best, bestScore = at, score
				}
			}
			k := group[best]
			group = slices.Delete(group, best, best+1)
			victims = append(victims, k)
			for _, d := range dims {
				need[d] -= x.o.Rows[k].Use[d]
			}
		}
	}
	if !met(victims) {
		return false
	}
	sort.Slice(victims, func(a, b int) bool {
		da, db := distance(ask, victims[a]), distance(ask, victims[b])
		return da > db || da == db && victims[a] < victims[b]
	})
	for n := range victims {
		if met(victims[:n+1]) {
			victims = victims[:n+1]
			break
		}
	}
	x.evicted = append(x.evicted, victims...)
	return true
}

// netPriority returns the value by which the device step compares groups, or nil if
// no victim is needed.
func (x *reference) netPriority(q int) *int64 {
	if x.deviceVictims[q] == nil {
		return nil
	}
	distinct := map[int32]bool{}
	sum := int64(0)
	for _, k := range x.deviceVictims[q] {
		if p := x.o.Rows[k].Priority; !distinct[p] {
			distinct[p] = true
			sum += int64(p)
		}
	}
	return &sum
}

package binding

import (
	"cmp"
	"slices"
)

// A binding may limit on how many clusters it is, and on how many values of one of
// their attributes, such as regions: at least and at most. Taking the best clusters
// first then fails: the region with the most capacity may have too few clusters,
// and one cluster too many leaves none for a region that is required. So every
// choice is checked for whether the rest can still complete it. That is exact, and
// cheap because of the clusters of one value those with the most capacity always
// suffice: O(values × clusters²) per check.

const unlimited = int(^uint(0) >> 1)

// spreadLimits are the clusters, and values of the spread attribute, that a binding may
// and must use besides those that it is on. It is immutable: with returns a changed
// copy.
type spreadLimits struct {
	used                       map[string]bool // values that it is on
	maxNew, minNew             int             // further clusters
	maxNewGroups, minNewGroups int             // further values
}

// newBetween returns the limits on further items for limits on all of them, of
// which there are have. most == 0 means unlimited.
func newBetween(least, most, have int) (maxNew, minNew int) {
	maxNew = unlimited
	if most > 0 {
		maxNew = max(0, most-have)
	}
	return maxNew, max(0, least-have)
}

// with returns the limits once the binding is on further clusters.
func (x *spreadLimits) with(slots []slot) *spreadLimits {
	next := *x
	next.used = map[string]bool{}
	for group := range x.used {
		next.used[group] = true
	}
	decrement := func(n *int) {
		if *n != unlimited {
			*n = max(0, *n-1)
		}
	}
	for _, s := range slots {
		decrement(&next.maxNew)
		decrement(&next.minNew)
		if !next.used[s.group] {
			next.used[s.group] = true
			decrement(&next.maxNewGroups)
			decrement(&next.minNewGroups)
		}
	}
	return &next
}

// minClusters returns the minimum number of further clusters.
func (x *spreadLimits) minClusters() int { return max(x.minNew, x.minNewGroups) }

// A valueGroup is the clusters with one value that may be chosen.
type valueGroup struct {
	used       bool  // the binding is on other clusters with the value
	must       int   // clusters that are chosen already
	fixed      int   // capacity of those
	capacities []int // of the others, descending
}

// maxCapacity returns how many replicas the best choice of clusters holds that includes
// all of must and any of may. It returns a negative number if no choice is within the
// limits. The order of the slots does not matter, so that all callers get the same
// answer.
func (x *spreadLimits) maxCapacity(must, may []slot) int {
	list, base, total := x.byValue(must, may)
	clusters, ok := newAxis(x.maxNew, x.minNew, total)
	if !ok {
		return -1
	}
	groups, ok := newAxis(x.maxNewGroups, x.minNewGroups, len(list))
	if !ok {
		return -1
	}
	// Dynamic programming over the values: best[v][k] is the largest capacity with v
	// values and k clusters so far.
	best := newTable(groups.size, clusters.size)
	best[0][0] = base
	for _, g := range list {
		best = g.extend(best, groups, clusters)
	}
	most := -1
	for _, row := range best[groups.min:] {
		most = max(most, slices.Max(row[clusters.min:]))
	}
	return most
}

// byValue sorts clusters by value. base is the capacity of clusters that the
// binding is on, which every choice includes, and total the number of the others.
func (x *spreadLimits) byValue(must, may []slot) (list []*valueGroup, base, total int) {
	byGroup := map[string]*valueGroup{}
	at := func(s slot) *valueGroup {
		total++
		if byGroup[s.group] == nil {
			byGroup[s.group] = &valueGroup{used: x.used[s.group]}
			list = append(list, byGroup[s.group])
		}
		return byGroup[s.group]
	}
	for _, s := range must {
		if s.has {
			base += s.capacity
			continue
		}
		g := at(s)
		g.must, g.fixed = g.must+1, g.fixed+s.capacity
	}
	for _, s := range may {
		if s.has {
			base += s.capacity
		} else if s.capacity > 0 {
			g := at(s)
			g.capacities = append(g.capacities, s.capacity)
		}
	}
	for _, g := range list {
		slices.SortFunc(g.capacities, func(a, b int) int { return cmp.Compare(b, a) })
	}
	return list, base, total
}

// An axis counts clusters or values as far as their number matters.
type axis struct {
	size, min int
	unlimited bool // numbers above min count as min
}

func newAxis(most, least, total int) (axis, bool) {
	if least > min(most, total) {
		return axis{}, false
	}
	if most >= total {
		return axis{least + 1, least, true}, true
	}
	return axis{most + 1, least, false}, true
}

// add returns n plus more, or false if that exceeds the maximum.
func (s axis) add(n, more int) (int, bool) {
	n += more
	if s.unlimited {
		return min(n, s.min), true
	}
	return n, n < s.size
}

// newTable returns a table of the largest capacity by numbers of values (rows) and
// of clusters (columns) that are used; -1: not reachable.
func newTable(rows, columns int) [][]int {
	table := make([][]int, rows)
	for i := range table {
		table[i] = slices.Repeat([]int{-1}, columns)
	}
	return table
}

// extend returns the table after any number of the group's clusters is chosen.
func (v *valueGroup) extend(before [][]int, groups, clusters axis) [][]int {
	after := newTable(groups.size, clusters.size)
	value := 1
	if v.used {
		value = 0
	}
	for g, row := range before {
		for c, have := range row {
			if have < 0 {
				continue
			}
			if v.must == 0 {
				after[g][c] = max(after[g][c], have)
			}
			toGroup, ok := groups.add(g, value)
			if !ok {
				continue
			}
			have += v.fixed
			// Capacities are descending, so the first k are the best choice of k.
			for k := 0; k <= len(v.capacities); k++ {
				if k > 0 {
					have += v.capacities[k-1]
				}
				to, ok := clusters.add(c, v.must+k)
				if !ok {
					break
				}
				if v.must+k > 0 {
					after[toGroup][to] = max(after[toGroup][to], have)
				}
			}
		}
	}
	return after
}

// pick chooses slots in order. A slot is chosen if the slots behind it can complete the
// choice to a capacity of so many replicas within the limits. Clusters that the binding
// is on are always chosen. It costs one maxCapacity for each slot.
func (x *spreadLimits) pick(replicas int, slots []slot) ([]slot, bool) {
	if x.minClusters() > replicas || x.maxCapacity(nil, slots) < replicas {
		return nil, false
	}
	var chosen []slot
	for i, s := range slots {
		if with := append(slices.Clip(chosen), s); s.has || s.capacity > 0 && x.maxCapacity(with, slots[i+1:]) >= replicas {
			chosen = with
		}
	}
	return chosen, true
}

// divide divides replicas over slots within the limits, or returns false if there
// is no such division.
func (x *spreadLimits) divide(replicas int, slots []slot) ([]slot, bool) {
	chosen, ok := x.pick(replicas, slices.SortedFunc(slices.Values(slots), byWeight))
	if !ok {
		return nil, false
	}
	distribute(replicas-x.seed(chosen), chosen)
	return nonEmpty(chosen), true
}

// seed adds one replica to as many clusters as the limits require, and returns how
// many. Values come before clusters, since a cluster with a new value counts for both.
func (x *spreadLimits) seed(chosen []slot) (seeded int) {
	groups, done := x.minNewGroups, map[string]bool{}
	for i := range chosen {
		if s := &chosen[i]; groups > 0 && !s.has && !x.used[s.group] && !done[s.group] {
			done[s.group], s.add = true, 1
			groups, seeded = groups-1, seeded+1
		}
	}
	for i := range chosen {
		if s := &chosen[i]; seeded < x.minNew && !s.has && s.add == 0 {
			s.add = 1
			seeded++
		}
	}
	return seeded
}

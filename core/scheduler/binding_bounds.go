package scheduler

import (
	"cmp"
	"slices"
)

// A binding may say on how many clusters it is, and on how many values of one of
// their attributes, such as regions: at least, and at most. Which clusters to take
// is then no matter of the best ones alone: the roomiest region may have too few
// clusters, and one cluster too many leaves no room for the region that is lacking.
// So whatever is taken, it is looked at whether the rest can still make it whole.
// That is exact, and cheap, since of the clusters of one value the roomiest always
// do.

const unbounded = int(^uint(0) >> 1)

// bounds is on how many clusters, and values, a binding may and must be beside
// those that it is on.
type bounds struct {
	used                      map[string]bool // values that it is on
	fresh, needed             int             // clusters: at most, at least
	freshGroups, neededGroups int             // values: the same
}

// bounds of the binding, where it is now.
func (r *bindingRun) bounds() *bounds {
	b := r.binding
	x := &bounds{used: map[string]bool{}, freshGroups: unbounded}
	for id := range r.on {
		x.used[b.SpreadGroup(r.snap.Cluster(id))] = true
	}
	x.fresh, x.needed = between(b.MinClusters, b.MaxClusters, len(r.on))
	if b.SpreadBy != "" {
		x.freshGroups, x.neededGroups = between(b.MinGroups, b.MaxGroups, len(x.used))
	}
	return x
}

func between(least, most, have int) (fresh, needed int) {
	fresh = unbounded
	if most > 0 {
		fresh = max(0, most-have)
	}
	return fresh, max(0, least-have)
}

// beside is the bounds once the binding is on more clusters.
func (x *bounds) beside(slots []slot) *bounds {
	next := *x
	next.used = map[string]bool{}
	for group := range x.used {
		next.used[group] = true
	}
	less := func(n *int) {
		if *n != unbounded {
			*n = max(0, *n-1)
		}
	}
	for _, s := range slots {
		less(&next.fresh)
		less(&next.needed)
		if !next.used[s.group] {
			next.used[s.group] = true
			less(&next.freshGroups)
			less(&next.neededGroups)
		}
	}
	return &next
}

// least is how many more clusters it must be on, for their number and their values.
func (x *bounds) least() int { return max(x.needed, x.neededGroups) }

// shelf is the clusters of one value that may be taken.
type shelf struct {
	used  bool  // the binding is on others of them
	must  int   // clusters that are taken already
	sure  int   // replicas that they hold
	rooms []int // what the others hold
}

// most is how many replicas the best choice of clusters holds that has all of must
// and others of may; below 0: no choice is within the bounds.
func (x *bounds) most(must, may []slot) int {
	shelves, base, total := x.shelves(must, may)
	clusters, ok := newScale(x.fresh, x.needed, total)
	if !ok {
		return -1
	}
	groups, ok := newScale(x.freshGroups, x.neededGroups, len(shelves))
	if !ok {
		return -1
	}
	best := newBoard(groups.size, clusters.size)
	best[0][0] = base
	for _, s := range shelves {
		best = s.put(best, groups, clusters)
	}
	most := -1
	for _, row := range best[groups.needed:] {
		most = max(most, slices.Max(row[clusters.needed:]))
	}
	return most
}

// shelves sorts clusters by value, the most room first. What the binding is on
// already holds base whatever is chosen, and total is how many others there are.
func (x *bounds) shelves(must, may []slot) (list []*shelf, base, total int) {
	byGroup := map[string]*shelf{}
	at := func(s slot) *shelf {
		total++
		if byGroup[s.group] == nil {
			byGroup[s.group] = &shelf{used: x.used[s.group]}
			list = append(list, byGroup[s.group])
		}
		return byGroup[s.group]
	}
	for _, s := range must {
		if s.has {
			base += s.room
			continue
		}
		to := at(s)
		to.must, to.sure = to.must+1, to.sure+s.room
	}
	for _, s := range may {
		if s.has {
			base += s.room
		} else if s.room > 0 {
			to := at(s)
			to.rooms = append(to.rooms, s.room)
		}
	}
	for _, s := range list {
		slices.SortFunc(s.rooms, func(a, b int) int { return cmp.Compare(b, a) })
	}
	return list, base, total
}

// scale counts clusters, or values: as far as it matters how many there are.
type scale struct {
	size, needed int
	open         bool // there is no most: more than are needed count as needed
}

func newScale(most, needed, total int) (scale, bool) {
	if needed > min(most, total) {
		return scale{}, false
	}
	if most >= total {
		return scale{needed + 1, needed, true}, true
	}
	return scale{most + 1, needed, false}, true
}

// add is n with more; false: that is too many.
func (s scale) add(n, more int) (int, bool) {
	n += more
	if s.open {
		return min(n, s.needed), true
	}
	return n, n < s.size
}

// board is the most replicas by how many values and clusters were taken; -1: none.
func newBoard(rows, columns int) [][]int {
	board := make([][]int, rows)
	for i := range board {
		board[i] = slices.Repeat([]int{-1}, columns)
	}
	return board
}

// put is the board with each number of clusters taken off the shelf.
func (s *shelf) put(before [][]int, groups, clusters scale) [][]int {
	after := newBoard(groups.size, clusters.size)
	value := 1
	if s.used {
		value = 0
	}
	for g, row := range before {
		for c, have := range row {
			if have < 0 {
				continue
			}
			if s.must == 0 {
				after[g][c] = max(after[g][c], have)
			}
			toGroup, ok := groups.add(g, value)
			if !ok {
				continue
			}
			have += s.sure
			for k := 0; k <= len(s.rooms); k++ {
				if k > 0 {
					have += s.rooms[k-1]
				}
				to, ok := clusters.add(c, s.must+k)
				if !ok {
					break
				}
				if s.must+k > 0 {
					after[toGroup][to] = max(after[toGroup][to], have)
				}
			}
		}
	}
	return after
}

// pick takes the first of slots on, each as long as those behind it can make up a
// choice with what is taken that holds so many replicas. What the binding is on is
// always taken.
func (x *bounds) pick(replicas int, slots []slot) ([]slot, bool) {
	if x.least() > replicas || x.most(nil, slots) < replicas {
		return nil, false
	}
	var taken []slot
	for i, s := range slots {
		if with := append(slices.Clip(taken), s); s.has || s.room > 0 && x.most(with, slots[i+1:]) >= replicas {
			taken = with
		}
	}
	return taken, true
}

// divide is the division of replicas over slots within the bounds; false: there is
// none.
func (x *bounds) divide(replicas int, slots []slot) ([]slot, bool) {
	chosen, ok := x.pick(replicas, slices.SortedFunc(slices.Values(slots), preferHeavy))
	if !ok {
		return nil, false
	}
	share(replicas-x.force(chosen), chosen)
	return dealt(chosen), true
}

// force gives a replica to as many clusters as must have one, and says how many.
func (x *bounds) force(chosen []slot) (forced int) {
	groups, met := x.neededGroups, map[string]bool{}
	for i := range chosen {
		if s := &chosen[i]; groups > 0 && !s.has && !x.used[s.group] && !met[s.group] {
			met[s.group], s.add = true, 1
			groups, forced = groups-1, forced+1
		}
	}
	for i := range chosen {
		if s := &chosen[i]; forced < x.needed && !s.has && s.add == 0 {
			s.add = 1
			forced++
		}
	}
	return forced
}

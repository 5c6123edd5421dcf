package binding

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
)

// drawLimits draws a few clusters with a few values, and the limits of a binding.
func drawLimits(t *rapid.T) (x *spreadLimits, slots []slot, replicas int) {
	n := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	x = &spreadLimits{used: map[string]bool{}, maxNew: unlimited, maxNewGroups: unlimited, minNew: n("needed", 0, 3), minNewGroups: n("needed values", 0, 3)}
	if n("most", 0, 1) == 0 {
		x.maxNew = n("fresh", 0, 4)
	}
	if n("most values", 0, 1) == 0 {
		x.maxNewGroups = n("fresh values", 0, 3)
	}
	for i := range n("clusters", 1, 6) {
		s := slot{
			cluster: &model.Cluster{ID: fmt.Sprint("m", i)}, group: fmt.Sprint("g", n("value", 0, 3)), capacity: n("room", 0, 3),
			weight: int64(n("weight", 0, 2)), has: n("has", 0, 4) == 0,
		}
		x.used[s.group] = x.used[s.group] || s.has
		slots = append(slots, s)
	}
	return x, slots, n("replicas", 1, 7)
}

// within reports whether a choice of further clusters is within the limits.
func (x *spreadLimits) within(taken []slot) bool {
	fresh, groups := 0, map[string]bool{}
	for _, s := range taken {
		if s.has {
			continue
		}
		fresh++
		if !x.used[s.group] {
			groups[s.group] = true
		}
	}
	return x.minNew <= fresh && fresh <= x.maxNew && x.minNewGroups <= len(groups) && len(groups) <= x.maxNewGroups
}

// subsets calls with for every choice of slots with capacity. Clusters that the binding
// is on are in each choice. The choice with the first slots comes first.
func subsets(slots []slot, with func([]slot)) {
	if len(slots) == 0 {
		with(nil)
		return
	}
	s := slots[0]
	if s.has || s.capacity > 0 {
		subsets(slots[1:], func(rest []slot) { with(append([]slot{s}, rest...)) })
	}
	if !s.has {
		subsets(slots[1:], with)
	}
}

func capacityOf(slots []slot) (n int) {
	for _, s := range slots {
		n += s.capacity
	}
	return n
}

// divisions calls with every division of replicas over slots.
func divisions(slots []slot, replicas int, with func([]slot)) {
	if len(slots) == 0 {
		if replicas == 0 {
			with(nil)
		}
		return
	}
	for n := range min(slots[0].capacity, replicas) + 1 {
		divisions(slots[1:], replicas-n, func(rest []slot) {
			if s := slots[0]; n > 0 {
				s.add = n
				rest = append([]slot{s}, rest...)
			}
			with(rest)
		})
	}
}

// The result equals that of an exhaustive search: the maximum capacity, the first choice
// in the order of preference, and a division if there is one.
func TestSpreadLimits_MatchReference(t *testing.T) {
	t.Parallel()
	rounds, met := 20, 0
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			x, slots, replicas := drawLimits(t)
			most := -1
			var first []slot
			subsets(slots, func(taken []slot) {
				if !x.within(taken) {
					return
				}
				most = max(most, capacityOf(taken))
				if first == nil && capacityOf(taken) >= replicas && x.minClusters() <= replicas {
					first = taken
				}
			})
			if got := x.maxCapacity(nil, slots); got != most {
				t.Fatalf("maximum capacity %d, want %d", got, most)
			}
			if got, ok := x.pick(replicas, slots); ok != (first != nil) || !slices.Equal(got, first) {
				t.Fatalf("picked %v, want %v", got, first)
			}
			possible := false
			divisions(slots, replicas, func(d []slot) { possible = possible || x.within(d) })
			got, ok := x.divide(replicas, slots)
			if ok != possible {
				t.Fatalf("divided: %t, want %t", ok, possible)
			}
			sum := 0
			for _, s := range got {
				if sum += s.add; s.add <= 0 || s.add > s.capacity {
					t.Fatalf("%d replicas on %s, which has capacity for %d", s.add, s.cluster.ID, s.capacity)
				}
			}
			if ok && (sum != replicas || !x.within(got)) {
				t.Fatalf("%d replicas of %d are divided: %v", sum, replicas, got)
			}
			if ok {
				met++
			}
		})
	}
	if met == 0 {
		t.Error("nothing was ever divided")
	}
}

package binding

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A slot is a member cluster that may take replicas of a binding. Slots are values: a
// division copies them and never changes those of the caller.
type slot struct {
	cluster  *model.Cluster
	group    string // value of the attribute that the binding is spread by
	capacity int    // replicas that fit, at most as many as are missing
	weight   int64  // 0: none
	has      bool   // the binding is on the cluster
	add      int    // replicas that it is to get
}

// divide divides replicas over slots, so that the binding is on no fewer and no
// more clusters than allowed: in proportion to their weights, or if there are none,
// to their capacity, by the largest remainders, of equals by ID. If a cluster has
// less capacity than its share, the others divide the rest. on is the number of
// clusters that the binding is on.
//
// It returns the slots that get replicas, ascending by ID, or false if no such
// division exists. It costs a sort, and rounds over the slots of which each but the last fills
// a slot.
func divide(replicas int, slots []slot, b *model.Binding, on int) ([]slot, bool) {
	maxNew, minNew := newBetween(b.MinClusters, b.MaxClusters, on)
	if minNew > min(maxNew, replicas) {
		return nil, false
	}
	// The heaviest clusters may lack capacity together; then those with the most capacity are chosen.
	chosen, ok := choose(replicas, slots, maxNew, byWeight)
	if !ok {
		if chosen, ok = choose(replicas, slots, maxNew, byCapacity); !ok {
			return nil, false
		}
	}
	left := replicas
	// The minimum number of clusters comes before proportions: one replica each.
	for i := range chosen {
		if minNew > 0 && !chosen[i].has {
			chosen[i].add, minNew, left = 1, minNew-1, left-1
		}
	}
	if minNew > 0 {
		return nil, false
	}
	distribute(left, chosen)
	return nonEmpty(chosen), true
}

// nonEmpty returns the slots that get replicas, ascending by ID.
func nonEmpty(chosen []slot) []slot {
	chosen = slices.DeleteFunc(chosen, func(s slot) bool { return s.add == 0 })
	slices.SortFunc(chosen, func(x, y slot) int { return cmp.Compare(x.cluster.ID, y.cluster.ID) })
	return chosen
}

// byWeight orders slots by descending weight, byCapacity by descending capacity.
func byWeight(x, y slot) int {
	return cmp.Or(cmp.Compare(y.weight, x.weight), byCapacity(x, y))
}

func byCapacity(x, y slot) int {
	return cmp.Or(cmp.Compare(y.capacity, x.capacity), cmp.Compare(x.cluster.ID, y.cluster.ID))
}

// choose returns the slots that the binding is on and the first maxNew others in order,
// or false if their capacity does not suffice. Clusters that the binding is on already
// do not count against maxNew.
func choose(replicas int, slots []slot, maxNew int, order func(x, y slot) int) ([]slot, bool) {
	sorted := slices.SortedFunc(slices.Values(slots), order)
	var chosen []slot
	capacity := 0
	for _, s := range sorted {
		if s.capacity == 0 || !s.has && maxNew == 0 {
			continue
		}
		if !s.has {
			maxNew--
		}
		capacity += s.capacity
		chosen = append(chosen, s)
	}
	return chosen, capacity >= replicas
}

// distribute adds replicas to slots that have enough capacity together. Each round
// divides the rest by the largest remainders; a round that fills a slot is followed by
// another one. Every step is an integer operation, so that all servers get the same
// result.
func distribute(replicas int, slots []slot) {
	for replicas > 0 {
		total := int64(0)
		for i := range slots {
			total += slots[i].share()
		}
		if total == 0 {
			return
		}
		parts := make([]remainder, 0, len(slots))
		round := replicas
		for i := range slots {
			if w := slots[i].share(); w > 0 {
				// The product of replicas and a weight must fit in 64 bits.
				exact := int64(round) * w
				n := min(int(exact/total), slots[i].capacity-slots[i].add)
				slots[i].add += n
				replicas -= n
				parts = append(parts, remainder{i, exact % total})
			}
		}
		slices.SortStableFunc(parts, func(x, y remainder) int {
			return cmp.Or(cmp.Compare(y.rest, x.rest), cmp.Compare(slots[x.slot].cluster.ID, slots[y.slot].cluster.ID))
		})
		for _, p := range parts {
			if s := &slots[p.slot]; replicas > 0 && s.add < s.capacity {
				s.add++
				replicas--
			}
		}
	}
}

// A remainder is the part of a slot's share that the integer division leaves.
type remainder struct {
	slot int
	rest int64
}

// share returns the weight of the slot in a division; 0: it is full.
func (s *slot) share() int64 {
	switch {
	case s.add >= s.capacity:
		return 0
	case s.weight > 0:
		return s.weight
	}
	return int64(s.capacity)
}

package scheduler

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// slot is a member cluster that may take replicas of a binding.
type slot struct {
	cluster *model.Cluster
	group   string // what the binding is spread by has this value there
	room    int    // replicas that fit now, at most as many as are missing
	weight  int64  // 0: it gets what no weight says
	has     bool   // the binding is there already
	add     int    // replicas that it gets
}

// divide divides replicas over slots, so that the binding is on no fewer and no
// more clusters than it wants: in proportion to their weights, or where there
// are none to the room they have, by the largest remainders, of equals by id.
// Where a cluster has less room than its share the others share the rest. It
// returns the slots that get something, ascending by id; false: it cannot be done.
// on is how many clusters the binding is on already.
func divide(replicas int, slots []slot, b *model.Binding, on int) ([]slot, bool) {
	fresh, needed := between(b.MinClusters, b.MaxClusters, on)
	if needed > min(fresh, replicas) {
		return nil, false
	}
	chosen, ok := choose(replicas, slots, fresh, preferHeavy)
	if !ok {
		if chosen, ok = choose(replicas, slots, fresh, preferRoomy); !ok {
			return nil, false
		}
	}
	left := replicas
	for i := range chosen {
		if needed > 0 && !chosen[i].has {
			chosen[i].add, needed, left = 1, needed-1, left-1
		}
	}
	if needed > 0 {
		return nil, false
	}
	share(left, chosen)
	return dealt(chosen), true
}

// dealt is the slots that get something, ascending by id.
func dealt(chosen []slot) []slot {
	chosen = slices.DeleteFunc(chosen, func(s slot) bool { return s.add == 0 })
	slices.SortFunc(chosen, func(x, y slot) int { return cmp.Compare(x.cluster.ID, y.cluster.ID) })
	return chosen
}

// preferHeavy puts the greatest weights first, preferRoomy the most room.
func preferHeavy(x, y slot) int {
	return cmp.Or(cmp.Compare(y.weight, x.weight), preferRoomy(x, y))
}

func preferRoomy(x, y slot) int {
	return cmp.Or(cmp.Compare(y.room, x.room), cmp.Compare(x.cluster.ID, y.cluster.ID))
}

// choose takes the slots that the binding is on, and as many others as it may be
// on beside; false when they have too little room together.
func choose(replicas int, slots []slot, fresh int, prefer func(x, y slot) int) ([]slot, bool) {
	sorted := slices.SortedFunc(slices.Values(slots), prefer)
	var chosen []slot
	room := 0
	for _, s := range sorted {
		if s.room == 0 || !s.has && fresh == 0 {
			continue
		}
		if !s.has {
			fresh--
		}
		room += s.room
		chosen = append(chosen, s)
	}
	return chosen, room >= replicas
}

// share adds replicas to slots that have room for all of them together.
func share(replicas int, slots []slot) {
	for replicas > 0 {
		total := int64(0)
		for i := range slots {
			total += slots[i].share()
		}
		if total == 0 {
			return
		}
		parts := make([]part, 0, len(slots))
		whole := replicas
		for i := range slots {
			if w := slots[i].share(); w > 0 {
				exact := int64(whole) * w
				n := min(int(exact/total), slots[i].room-slots[i].add)
				slots[i].add += n
				replicas -= n
				parts = append(parts, part{i, exact % total})
			}
		}
		slices.SortStableFunc(parts, func(x, y part) int {
			return cmp.Or(cmp.Compare(y.rest, x.rest), cmp.Compare(slots[x.slot].cluster.ID, slots[y.slot].cluster.ID))
		})
		for _, p := range parts {
			if s := &slots[p.slot]; replicas > 0 && s.add < s.room {
				s.add++
				replicas--
			}
		}
	}
}

// part is what the division leaves of a slot's share.
type part struct {
	slot int
	rest int64
}

// share is what the slot counts in a division; 0: it is full.
func (s *slot) share() int64 {
	switch {
	case s.add >= s.room:
		return 0
	case s.weight > 0:
		return s.weight
	}
	return int64(s.room)
}

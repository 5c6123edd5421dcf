package state

import (
	"slices"
	"sync/atomic"

	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// changedMax is how many changes an ordering remembers before sorting anew is
// the better deal.
const changedMax = 4096

// ordering is the slots of a table in the order of their keys, worked out by
// the first reader who wants it and shared by every snapshot with the same
// keys. A transaction that adds or removes a key starts from what was sorted
// last and merges.
type ordering struct {
	owner   cow.Owner
	sorted  atomic.Pointer[[]int32]
	base    []int32 // sorted at an earlier state
	changed []int32 // slots whose key came or went since base
}

// with returns an ordering that knows that the key at a slot came or went.
func (r *ordering) with(o cow.Owner, slot int32) *ordering {
	sorted := r.sorted.Load()
	if r.owner == o && sorted == nil {
		r.remember(slot)
		return r
	}
	next := &ordering{owner: o}
	if sorted != nil {
		next.base = *sorted
	} else {
		next.base, next.changed = r.base, slices.Clone(r.changed)
	}
	next.remember(slot)
	return next
}

func (r *ordering) remember(slot int32) {
	if r.base == nil {
		return
	}
	r.changed = append(r.changed, slot)
	if len(r.changed) > changedMax {
		r.base, r.changed = nil, nil
	}
}

// slots returns the order over the slots below size. Two readers may both do
// the work; they get the same.
func (r *ordering) slots(size int, exists func(int32) bool, compare func(a, b int32) int) []int32 {
	if s := r.sorted.Load(); s != nil {
		return *s
	}
	var order []int32
	if r.base == nil {
		for slot := range int32(size) {
			if exists(slot) {
				order = append(order, slot)
			}
		}
		slices.SortFunc(order, compare)
	} else {
		order = r.merge(exists, compare)
	}
	r.sorted.Store(&order)
	return order
}

func (r *ordering) merge(exists func(int32) bool, compare func(a, b int32) int) []int32 {
	// Other readers may be at it too, so changed itself stays as it is.
	all := slices.Clone(r.changed)
	slices.Sort(all)
	all = slices.Compact(all)
	var added []int32
	for _, slot := range all {
		if exists(slot) {
			added = append(added, slot)
		}
	}
	slices.SortFunc(added, compare)
	order := make([]int32, 0, len(r.base)+len(added))
	for _, slot := range r.base {
		if _, gone := slices.BinarySearch(all, slot); gone {
			continue
		}
		for len(added) > 0 && compare(added[0], slot) < 0 {
			order, added = append(order, added[0]), added[1:]
		}
		order = append(order, slot)
	}
	return append(order, added...)
}

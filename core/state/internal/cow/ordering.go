package cow

import (
	"slices"
	"sync/atomic"
)

// maxChanges is the number of changes at which an Ordering drops its base: from
// there on, sorting again costs less than merging.
const maxChanges = 4096

// An Ordering holds the slots of a table in the order of their keys. The first
// reader computes it, and every snapshot with the same keys shares it. A
// transaction that adds or removes a key starts from the last sorted order and
// merges its changes. The zero value is the order of an empty table.
type Ordering struct {
	owner   Owner
	sorted  atomic.Pointer[[]int32]
	base    []int32 // sorted at an earlier state; nil if there is none
	changed []int32 // slots whose key was added or removed since base
}

// With returns an ordering in which the key at a slot was added or removed. If no
// reader computed the current order, its pending changes are carried over. The receiver
// is changed in place only by its owner, before any snapshot shares it.
func (r *Ordering) With(o Owner, slot int32) *Ordering {
	sorted := r.sorted.Load()
	if r.owner == o && sorted == nil {
		r.recordChange(slot)
		return r
	}
	next := &Ordering{owner: o}
	if sorted != nil {
		next.base = *sorted
	} else {
		next.base, next.changed = r.base, slices.Clone(r.changed)
	}
	next.recordChange(slot)
	return next
}

func (r *Ordering) recordChange(slot int32) {
	if r.base == nil {
		return
	}
	r.changed = append(r.changed, slot)
	if len(r.changed) > maxChanges {
		r.base, r.changed = nil, nil
	}
}

// Slots returns the order of the slots below size for which exists returns true.
// Two readers may both compute it; the results are equal.
func (r *Ordering) Slots(size int, exists func(int32) bool, compare func(a, b int32) int) []int32 {
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

// merge returns the order of the base with the changes. It costs a pass over the base,
// and a sort of the changes alone.
func (r *Ordering) merge(exists func(int32) bool, compare func(a, b int32) int) []int32 {
	// Other readers may merge at the same time, so changed itself is not sorted.
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
		if _, changed := slices.BinarySearch(all, slot); changed {
			continue
		}
		for len(added) > 0 && compare(added[0], slot) < 0 {
			order, added = append(order, added[0]), added[1:]
		}
		order = append(order, slot)
	}
	return append(order, added...)
}

package cow

import "slices"

const (
	fewMax = 256 // longest list kept as one slice: copying it costs what a path in a Vec does
	hole   = -1
)

// List keeps slots in the order in which they were added. Adding returns a
// position, by which the slot can be removed at once; positions change only
// when the list closes its holes, and then the caller is told. The zero value
// is empty.
//
// A short list is one small slice; a long one is a Vec, so that a job with
// 50,000 allocations is not copied for every one that is added.
type List struct {
	owner Owner
	few   []int32
	many  *Vec[int32] // in use instead of few once the list was long
	n     int32       // positions, holes among them
	holes int32
}

// Len is the number of slots.
func (l *List) Len() int { return int(l.n - l.holes) }

// Add appends a slot and returns its position.
func (l *List) Add(o Owner, slot int32) int32 {
	l.own(o, 1)
	if l.many == nil && l.n == fewMax {
		l.many = &Vec[int32]{}
		for _, s := range l.few {
			l.many.Append(o, s)
		}
		l.few = nil
	}
	if l.many != nil {
		l.many.Append(o, slot)
	} else {
		l.few = append(l.few, slot)
	}
	l.n++
	return l.n - 1
}

// Remove takes out the slot at a position. When that makes the list close its
// holes, moved gets the new position of every slot that stays.
func (l *List) Remove(o Owner, at int32, moved func(slot, at int32)) {
	l.own(o, 0)
	if l.many != nil {
		l.many.Set(o, int(at), hole)
	} else {
		l.few[at] = hole
	}
	l.holes++
	switch {
	case l.holes == l.n:
		*l = List{}
	case l.holes > l.n/2:
		l.compact(o, moved)
	}
}

func (l *List) compact(o Owner, moved func(slot, at int32)) {
	old := *l
	*l = List{}
	for slot := range old.All {
		moved(slot, l.Add(o, slot))
	}
}

// All yields the slots in the order in which they were added.
func (l *List) All(yield func(slot int32) bool) {
	if l.many == nil {
		for _, s := range l.few {
			if s != hole && !yield(s) {
				return
			}
		}
		return
	}
	for i := 0; i < l.many.n; i += width {
		for _, s := range l.many.block(i) {
			if s != hole && !yield(s) {
				return
			}
		}
	}
}

func (l *List) own(o Owner, room int) {
	if l.owner == o {
		return
	}
	l.owner = o
	if l.many != nil {
		many := *l.many
		l.many = &many
	} else {
		l.few = append(slices.Grow([]int32(nil), len(l.few)+room), l.few...)
	}
}

package cow

// hole marks the position of a removed slot.
const hole = -1

// A List holds slots in the order in which they were added. Add returns a position,
// by which the slot can be removed without a search. Positions change only if the
// list closes its holes, which it reports to the caller. The zero value is empty.
//
// Add copies the last block at most, so adding to a job with 50,000 allocations
// costs no more than adding to a small one.
type List struct {
	full      []*leaf[int32]
	fullOwner Owner // of the array behind full
	tail      []int32
	tailOwner Owner
	holes     int32
}

// Len returns the number of slots.
func (l *List) Len() int { return l.positions() - int(l.holes) }

// positions returns the number of assigned positions, including holes.
func (l *List) positions() int { return len(l.full)*width + len(l.tail) }

// Add appends a slot and returns its position.
func (l *List) Add(o Owner, slot int32) int32 {
	if len(l.tail) == width {
		l.ownFull(o)
		b := &leaf[int32]{owner: o}
		copy(b.vals[:], l.tail)
		l.full = append(l.full, b)
		l.tail = nil
	}
	l.ownTail(o)
	l.tail = append(l.tail, slot)
	return int32(l.positions() - 1)
}

// Remove removes the slot at a position. If that makes the list close its holes, moved
// is called with the new position of every remaining slot. Holes are closed when they
// are the majority, so a removal costs an amortized constant.
func (l *List) Remove(o Owner, at int32, moved func(slot, at int32)) {
	if block := int(at) / width; block < len(l.full) {
		l.ownBlock(o, block).vals[at%width] = hole
	} else {
		l.ownTail(o)
		l.tail[at%width] = hole
	}
	l.holes++
	if int(l.holes) > l.positions()/2 {
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
	for _, b := range l.full {
		if !each(b.vals[:], yield) {
			return
		}
	}
	each(l.tail, yield)
}

func each(slots []int32, yield func(slot int32) bool) bool {
	for _, s := range slots {
		if s != hole && !yield(s) {
			return false
		}
	}
	return true
}

func (l *List) ownFull(o Owner) {
	if l.fullOwner != o {
		l.full, l.fullOwner = append(make([]*leaf[int32], 0, len(l.full)+1), l.full...), o
	}
}

func (l *List) ownBlock(o Owner, i int) *leaf[int32] {
	b := l.full[i]
	if b.owner != o {
		l.ownFull(o)
		b = &leaf[int32]{owner: o, vals: b.vals}
		l.full[i] = b
	}
	return b
}

func (l *List) ownTail(o Owner) {
	if l.tailOwner != o {
		l.tail, l.tailOwner = append(make([]int32, 0, len(l.tail)+1), l.tail...), o
	}
}

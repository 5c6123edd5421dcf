package cow

import "iter"

// A Table gives each row a slot, by which other tables refer to it, and finds the
// slot by the hash of the row's key. Slots of deleted rows are used again. The zero
// value is empty.
type Table[T any] struct {
	rows  Vec[T]
	index Index
	free  Vec[int32] // a stack of unused slots
}

// Len returns the number of rows.
func (t *Table[T]) Len() int { return t.index.Len() }

// Size returns one more than the greatest slot ever in use.
func (t *Table[T]) Size() int { return t.rows.Len() }

// At returns the row in a slot, or the zero value if the slot is free.
func (t *Table[T]) At(slot int32) T { return t.rows.At(int(slot)) }

// Changed yields the slots of Vec.Changed, some of which are free or hold the same row.
func (t *Table[T]) Changed(old *Table[T]) iter.Seq[int] { return t.rows.Changed(&old.rows) }

// Find returns the slot with this hash that match accepts.
func (t *Table[T]) Find(hash uint32, match func(slot int32) bool) (int32, bool) {
	return t.index.Find(hash, match)
}

// Set replaces the row in a slot. Its key must stay the same.
func (t *Table[T]) Set(o Owner, slot int32, row T) { t.rows.Set(o, int(slot), row) }

// Insert adds a row, which must not be in the table, and returns its slot.
func (t *Table[T]) Insert(o Owner, hash uint32, row T) int32 {
	var slot int32
	if t.free.Len() > 0 {
		slot = t.free.Pop(o)
		t.rows.Set(o, int(slot), row)
	} else {
		slot = int32(t.rows.Append(o, row))
	}
	t.index.Insert(o, hash, slot)
	return slot
}

// Delete removes the row in a slot, which must be in the table under this hash.
func (t *Table[T]) Delete(o Owner, hash uint32, slot int32) {
	var zero T
	t.rows.Set(o, int(slot), zero)
	t.index.Delete(o, hash, slot)
	t.free.Append(o, slot)
}

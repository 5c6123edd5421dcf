package state

import "github.com/cede-scheduler/cede/core/state/internal/cow"

// table gives things a slot, by which other tables refer to them, and finds
// the slot by the hash of their key. Slots of what was deleted are used again.
type table[T any] struct {
	rows  cow.Vec[T]
	index cow.Index
	free  cow.Vec[int32] // a stack
}

func (t *table[T]) len() int { return t.index.Len() }

// size is one more than the greatest slot ever in use.
func (t *table[T]) size() int { return t.rows.Len() }

func (t *table[T]) at(slot int32) T { return t.rows.At(int(slot)) }

func (t *table[T]) set(o cow.Owner, slot int32, row T) { t.rows.Set(o, int(slot), row) }

func (t *table[T]) insert(o cow.Owner, hash uint32, row T) int32 {
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

func (t *table[T]) delete(o cow.Owner, hash uint32, slot int32) {
	var zero T
	t.rows.Set(o, int(slot), zero)
	t.index.Delete(o, hash, slot)
	t.free.Append(o, slot)
}

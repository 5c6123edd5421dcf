package heapq

import (
	"cmp"
	"slices"
)

// Bucketed is a priority queue like Heap, for keys with few different A that mostly
// ascend otherwise, such as a priority and the index of a log. Each A has a lane
// of its own, in which whoever comes in order is appended and taken from the
// front; only who comes out of order is sifted. A Heap of 50,000 costs a hundred
// nanoseconds and four cache misses a Pop, a lane next to nothing.
//
// The zero value is empty.
type Bucketed[V any] struct {
	buckets []*bucket[V] // by A; none is empty
	spare   []*bucket[V]
	n       int
}

// Invariant: run[head:] ascends.
type bucket[V any] struct {
	a    uint64
	run  []Item[V]
	head int
	late Heap[V]
}

// Len is how many items there are.
func (q *Bucketed[V]) Len() int { return q.n }

// Min is the first item; there must be one. The pointer is good until the next
// call that changes the queue.
func (q *Bucketed[V]) Min() *Item[V] {
	it, _ := q.buckets[0].min()
	return it
}

// Push adds an item.
func (q *Bucketed[V]) Push(k Key, v V) {
	q.n++
	q.lane(k.A).push(Item[V]{k, v})
}

// Pop takes the first item; there must be one.
func (q *Bucketed[V]) Pop() Item[V] {
	q.n--
	l := q.buckets[0]
	it, late := l.min()
	first := *it
	if late {
		l.late.Pop()
	} else {
		*it = Item[V]{}
		l.head++
	}
	if l.empty() {
		q.buckets = slices.Delete(q.buckets, 0, 1)
		q.retire(l)
	}
	return first
}

// Filter keeps the items that keep says.
func (q *Bucketed[V]) Filter(keep func(*Item[V]) bool) {
	q.n = 0
	q.buckets = slices.DeleteFunc(q.buckets, func(l *bucket[V]) bool {
		l.run = slices.DeleteFunc(slices.Delete(l.run, 0, l.head), func(it Item[V]) bool { return !keep(&it) })
		l.head = 0
		l.late.Filter(keep)
		if l.empty() {
			q.retire(l)
			return true
		}
		q.n += len(l.run) + l.late.Len()
		return false
	})
}

// Reset empties the queue and lets its memory go.
func (q *Bucketed[V]) Reset() { *q = Bucketed[V]{} }

// lane finds or makes the lane of a.
func (q *Bucketed[V]) lane(a uint64) *bucket[V] {
	i, ok := slices.BinarySearchFunc(q.buckets, a, func(l *bucket[V], a uint64) int { return cmp.Compare(l.a, a) })
	if ok {
		return q.buckets[i]
	}
	var l *bucket[V]
	if n := len(q.spare); n > 0 {
		l, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		l = new(bucket[V])
	}
	l.a = a
	q.buckets = slices.Insert(q.buckets, i, l)
	return l
}

// maxSpare is how many empty lanes are kept: priorities in use at one time.
const maxSpare = 64

func (q *Bucketed[V]) retire(l *bucket[V]) {
	l.run, l.head = l.run[:0], 0
	if len(q.spare) < maxSpare {
		q.spare = append(q.spare, l)
	}
}

func (l *bucket[V]) empty() bool { return l.head == len(l.run) && l.late.Len() == 0 }

func (l *bucket[V]) push(it Item[V]) {
	switch {
	case l.head == len(l.run):
		l.run, l.head = append(l.run[:0], it), 0
	case it.Less(l.run[len(l.run)-1].Key):
		l.late.Push(it.Key, it.Value)
	default:
		if len(l.run) == cap(l.run) {
			l.makeRoom()
		}
		l.run = append(l.run, it)
	}
}

// makeRoom drops what was taken if that is half, and doubles the room if not.
func (l *bucket[V]) makeRoom() {
	if 2*l.head >= len(l.run) {
		l.run, l.head = slices.Delete(l.run, 0, l.head), 0
		return
	}
	l.run = slices.Grow(l.run, max(64, len(l.run)))
}

// min is the first item of a lane that is not empty, and whether it came late.
func (l *bucket[V]) min() (it *Item[V], late bool) {
	if l.head == len(l.run) {
		return l.late.Min(), true
	}
	it = &l.run[l.head]
	if l.late.Len() > 0 && l.late.Min().Less(it.Key) {
		return l.late.Min(), true
	}
	return it, false
}

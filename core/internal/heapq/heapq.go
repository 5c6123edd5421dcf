// Package heapq owns priority queues of values under three-part integer keys:
// Heap, and Lanes for keys that mostly come in order. The key is concrete so that
// the compiler inlines the comparison, which a generic "less" would not allow;
// four children a node halve the levels, and with them the cache misses, of a
// binary heap.
//
// It never finds, moves or removes a value in the middle. Owners whose values
// move push them again and skip the stale copy when it comes up; Filter clears
// such copies out. The broker and other queues of core call it.
//
// Nothing here is safe for concurrent use.
package heapq

import "slices"

// Key orders values: smaller A first, then smaller B, then smaller C.
type Key struct{ A, B, C uint64 }

// Less is whether k comes before o.
func (k Key) Less(o Key) bool {
	if k.A != o.A {
		return k.A < o.A
	}
	if k.B != o.B {
		return k.B < o.B
	}
	return k.C < o.C
}

// Item is a value and its place in the order.
type Item[V any] struct {
	Key
	Value V
}

// Heap gives its items back smallest key first. The zero value is empty.
type Heap[V any] struct{ items []Item[V] }

// Invariant: items[i] does not come before items[(i-1)/arity].
const arity = 4

// Len is how many items are in the heap.
func (h *Heap[V]) Len() int { return len(h.items) }

// Min is the first item; the heap must not be empty. The pointer is good until
// the next call that changes the heap.
func (h *Heap[V]) Min() *Item[V] { return &h.items[0] }

// Push adds an item.
func (h *Heap[V]) Push(k Key, v V) {
	if len(h.items) == cap(h.items) {
		h.items = slices.Grow(h.items, max(64, len(h.items))) // append grows by a quarter
	}
	h.items = append(h.items, Item[V]{k, v})
	h.up(len(h.items) - 1)
}

// Pop takes the first item; the heap must not be empty.
func (h *Heap[V]) Pop() Item[V] {
	first := h.items[0]
	n := len(h.items) - 1
	last := h.items[n]
	h.items[n] = Item[V]{}
	h.items = h.items[:n]
	if n > 0 {
		h.down(0, last)
	}
	return first
}

// Filter keeps the items that keep says.
func (h *Heap[V]) Filter(keep func(*Item[V]) bool) {
	kept := h.items[:0]
	for i := range h.items {
		if keep(&h.items[i]) {
			kept = append(kept, h.items[i])
		}
	}
	clear(h.items[len(kept):])
	h.items = kept
	for i := (len(kept) - 2) / arity; i >= 0 && len(kept) > 1; i-- {
		h.down(i, h.items[i])
	}
}

// Reset empties the heap and keeps its room.
func (h *Heap[V]) Reset() {
	clear(h.items)
	h.items = h.items[:0]
}

func (h *Heap[V]) up(i int) {
	items, it := h.items, h.items[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !it.Less(items[parent].Key) {
			break
		}
		items[i] = items[parent]
		i = parent
	}
	items[i] = it
}

// down puts it at i or below, wherever its key belongs.
func (h *Heap[V]) down(i int, it Item[V]) {
	items := h.items
	for {
		child := arity*i + 1
		if child >= len(items) {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, len(items)); c++ {
			if items[c].Less(items[least].Key) {
				least = c
			}
		}
		if !items[least].Less(it.Key) {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = it
}

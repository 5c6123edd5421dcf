// Package heapq owns priority queues of values with three-part integer keys: Heap, and
// Bucketed for keys that mostly arrive in order. The key type is concrete so that the
// compiler inlines the comparison, which a generic "less" would prevent. Four children per
// node halve the levels of a binary heap, and with them the cache misses.
//
// It does not find, move or remove values in the middle. If a value moves, its owner pushes
// it again and skips the stale copy when it is popped; Filter removes such copies. The
// broker and other queues of core use it.
//
// Nothing here is safe for concurrent use.
package heapq

import "slices"

// Key orders values: smaller A first, then smaller B, then smaller C.
type Key struct{ A, B, C uint64 }

// Less reports whether k sorts before o.
func (k Key) Less(o Key) bool {
	if k.A != o.A {
		return k.A < o.A
	}
	if k.B != o.B {
		return k.B < o.B
	}
	return k.C < o.C
}

// An Item is a value with its key.
type Item[V any] struct {
	Key
	Value V
}

// Heap returns its items smallest key first. The zero value is empty.
type Heap[V any] struct{ items []Item[V] }

// Invariant: items[i] does not sort before items[(i-1)/arity].
const arity = 4

// Len returns the number of items.
func (h *Heap[V]) Len() int { return len(h.items) }

// Min returns the first item; the heap must not be empty. The pointer is valid until the
// heap changes.
func (h *Heap[V]) Min() *Item[V] { return &h.items[0] }

// Push adds an item.
func (h *Heap[V]) Push(k Key, v V) {
	if len(h.items) == cap(h.items) {
		h.items = slices.Grow(h.items, max(64, len(h.items))) // append would grow by a quarter only
	}
	h.items = append(h.items, Item[V]{k, v})
	h.up(len(h.items) - 1)
}

// Pop removes and returns the first item; the heap must not be empty.
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

// Filter removes the items for which keep returns false.
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

// Reset empties the heap and retains its capacity.
func (h *Heap[V]) Reset() {
	clear(h.items)
	h.items = h.items[:0]
}

// up moves the item at i towards the root until its parent is not larger.
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

// down stores it at i or below, where its key belongs.
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

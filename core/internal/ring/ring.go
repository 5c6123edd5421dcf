// Package ring holds the newest elements of a sequence.
package ring

// A Ring holds the last elements that were added, up to its capacity. The zero value
// is not usable: make it with New. It is not safe for concurrent use.
type Ring[T any] struct {
	capacity int
	list     []T
	next     int // position of the next element once list is full
}

// New returns an empty Ring with a capacity of at least 1.
func New[T any](capacity int) Ring[T] { return Ring[T]{capacity: capacity} }

// Add adds an element and drops the oldest one if the ring is full.
func (r *Ring[T]) Add(v T) {
	if len(r.list) < r.capacity {
		r.list = append(r.list, v)
		return
	}
	r.list[r.next] = v
	r.next = (r.next + 1) % r.capacity
}

// Backward yields the elements, the newest first.
func (r *Ring[T]) Backward(yield func(T) bool) {
	n := len(r.list)
	for i := range n {
		if !yield(r.list[(r.next-1-i+2*n)%n]) {
			return
		}
	}
}

package heapq_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/internal/heapq"
)

// Against a sorted slice; C is unique, so the order is total.
func TestHeap_AgainstSortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heapq.Heap[int]
		var model []heapq.Item[int]
		n := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				k := heapq.Key{
					A: rapid.Uint64Range(0, 3).Draw(t, "a"),
					B: rapid.Uint64Range(0, 3).Draw(t, "b"),
					C: n,
				}
				n++
				h.Push(k, int(n))
				i := slices.IndexFunc(model, func(o heapq.Item[int]) bool { return k.Less(o.Key) })
				if i < 0 {
					i = len(model)
				}
				model = slices.Insert(model, i, heapq.Item[int]{Key: k, Value: int(n)})
			},
			"pop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				if got := h.Pop(); got != model[0] {
					t.Fatalf("popped %v, want %v", got, model[0])
				}
				model = model[1:]
			},
			"filter": func(t *rapid.T) {
				mod := rapid.IntRange(2, 4).Draw(t, "mod")
				h.Filter(func(it *heapq.Item[int]) bool { return it.Value%mod != 0 })
				model = slices.DeleteFunc(model, func(it heapq.Item[int]) bool { return it.Value%mod == 0 })
			},
			"": func(t *rapid.T) {
				if h.Len() != len(model) {
					t.Fatalf("len %d, want %d", h.Len(), len(model))
				}
				if len(model) > 0 && *h.Min() != model[0] {
					t.Fatalf("min %v, want %v", *h.Min(), model[0])
				}
			},
		})
	})
}

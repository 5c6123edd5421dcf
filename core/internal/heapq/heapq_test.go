package heapq_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/internal/heapq"
)

type queue interface {
	Len() int
	Min() *heapq.Item[int]
	Push(heapq.Key, int)
	Pop() heapq.Item[int]
	Filter(func(*heapq.Item[int]) bool)
	Reset()
}

func TestHeap_MatchesSortedSlice(t *testing.T) {
	t.Parallel()
	matchesSortedSlice(t, func() queue { return &heapq.Heap[int]{} })
}

func TestBucketed_MatchesSortedSlice(t *testing.T) {
	t.Parallel()
	matchesSortedSlice(t, func() queue { return &heapq.Bucketed[int]{} })
}

// C is unique, so the order is total.
func matchesSortedSlice(t *testing.T, make func() queue) {
	rapid.Check(t, func(t *rapid.T) {
		h := make()
		var model []heapq.Item[int]
		n := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				late := rapid.Uint64Range(0, 3).Draw(t, "late")
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					k := heapq.Key{A: n % 3, B: (n + 3) / 4, C: n}
					if n%5 == 0 {
						k.B -= min(k.B, late)
					}
					n++
					h.Push(k, int(n))
					i, _ := slices.BinarySearchFunc(model, k, func(o heapq.Item[int], k heapq.Key) int {
						if o.Less(k) {
							return -1
						}
						return 1
					})
					model = slices.Insert(model, i, heapq.Item[int]{Key: k, Value: int(n)})
				}
			},
			"pop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				for range min(len(model), rapid.IntRange(1, 150).Draw(t, "n")) {
					if got := h.Pop(); got != model[0] {
						t.Fatalf("popped %v, want %v", got, model[0])
					}
					model = model[1:]
				}
			},
			"filter": func(t *rapid.T) {
				mod := rapid.IntRange(2, 4).Draw(t, "mod")
				h.Filter(func(it *heapq.Item[int]) bool { return it.Value%mod != 0 })
				model = slices.DeleteFunc(model, func(it heapq.Item[int]) bool { return it.Value%mod == 0 })
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					h.Reset()
					model = nil
				}
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

package cow

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// check runs a property, many more times if CEDE_SOAK is set.
func check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range soak.Scale(1) {
		rapid.Check(t, prop)
	}
}

// branch is a structure being written, with a plain copy of what it should
// hold.
type branch[S, M any] struct {
	owner Owner
	s     S
	m     M
}

// forest grows branches from one another and keeps snapshots, and after every
// step compares all of them: a write that shows where it should not is found
// at once.
func forest[S, M any](t *rapid.T, zero branch[S, M], clone func(M) M,
	write func(*rapid.T, *branch[S, M]), compare func(*rapid.T, S, M),
) {
	branches := []*branch[S, M]{&zero}
	zero.owner = NewOwner()
	var frozen []branch[S, M]
	pick := func() *branch[S, M] {
		return branches[rapid.IntRange(0, len(branches)-1).Draw(t, "branch")]
	}
	t.Repeat(map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			b := pick()
			for range rapid.IntRange(1, 60).Draw(t, "writes") {
				write(t, b)
			}
		},
		"freeze": func(_ *rapid.T) {
			b := pick()
			frozen = append(frozen, branch[S, M]{s: b.s, m: clone(b.m)})
			b.owner = NewOwner()
		},
		"branch": func(t *rapid.T) {
			if len(frozen) == 0 {
				t.Skip("nothing frozen yet")
			}
			from := frozen[rapid.IntRange(0, len(frozen)-1).Draw(t, "frozen")]
			branches = append(branches, &branch[S, M]{owner: NewOwner(), s: from.s, m: clone(from.m)})
		},
		"": func(t *rapid.T) {
			for _, b := range branches {
				compare(t, b.s, b.m)
			}
			for _, f := range frozen {
				compare(t, f.s, f.m)
			}
		},
	})
}

func TestVec_BranchesNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	check(t, func(t *rapid.T) {
		// Starting near the end of a directory makes Append and Pop cross it.
		start := branch[Vec[int], []int]{owner: NewOwner()}
		for i := range rapid.SampledFrom([]int{0, 60, 1<<dirBits - 5}).Draw(t, "start") {
			start.s.Append(start.owner, i)
			start.m = append(start.m, i)
		}
		forest(t, start, slices.Clone[[]int], func(t *rapid.T, b *branch[Vec[int], []int]) {
			x := rapid.Int().Draw(t, "x")
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case op == 0 || len(b.m) == 0:
				if at := b.s.Append(b.owner, x); at != len(b.m) {
					t.Fatalf("appended at %d of %d", at, len(b.m))
				}
				b.m = append(b.m, x)
			case op == 1:
				i := rapid.IntRange(0, len(b.m)-1).Draw(t, "i")
				b.s.Set(b.owner, i, x)
				b.m[i] = x
			default:
				if got, want := b.s.Pop(b.owner), b.m[len(b.m)-1]; got != want {
					t.Fatalf("popped %d, want %d", got, want)
				}
				b.m = b.m[:len(b.m)-1]
			}
		}, func(t *rapid.T, v Vec[int], m []int) {
			if v.Len() != len(m) {
				t.Fatalf("length %d, want %d", v.Len(), len(m))
			}
			for i := range m {
				if v.At(i) != m[i] {
					t.Fatalf("%d at %d, want %d", v.At(i), i, m[i])
				}
			}
		})
	})
}

func TestIndex_IsAMapInEveryBranch(t *testing.T) {
	t.Parallel()
	check(t, func(t *rapid.T) {
		// Few distinct hashes make long chains, many make it split and merge.
		spread := rapid.SampledFrom([]uint32{1, 3, 1 << 20}).Draw(t, "hashes")
		hash := func(slot int32) uint32 { return uint32(slot) * 2654435761 % spread }
		forest(t, branch[Index, map[int32]bool]{m: map[int32]bool{}}, maps.Clone[map[int32]bool],
			func(t *rapid.T, b *branch[Index, map[int32]bool]) {
				slot := rapid.Int32Range(0, 200).Draw(t, "slot")
				if b.m[slot] {
					b.s.Delete(b.owner, hash(slot), slot)
					delete(b.m, slot)
				} else {
					b.s.Insert(b.owner, hash(slot), slot)
					b.m[slot] = true
				}
			}, func(t *rapid.T, x Index, m map[int32]bool) {
				if x.Len() != len(m) {
					t.Fatalf("length %d, want %d", x.Len(), len(m))
				}
				for slot := range int32(201) {
					_, found := x.Find(hash(slot), func(s int32) bool { return s == slot })
					if found != m[slot] {
						t.Fatalf("slot %d found %t, want %t", slot, found, m[slot])
					}
				}
			})
	})
}

func TestIndex_GrowsAndShrinksPageByPage(t *testing.T) {
	t.Parallel()
	o := NewOwner()
	var x Index
	hash := func(slot int) uint32 { return uint32(slot) * 2654435761 }
	const n = 100_000
	for i := range n {
		x.Insert(o, hash(i), int32(i))
	}
	if got := x.pages.Len(); got < n/pageLoad-1 || got > n/pageLoad+1 {
		t.Errorf("%d pages for %d entries", got, n)
	}
	for i := range n {
		x.Delete(o, hash(i), int32(i))
		if i == n-1 || i%1000 != 0 {
			continue
		}
		if _, ok := x.Find(hash(n-1), func(s int32) bool { return s == n-1 }); !ok {
			t.Fatalf("last entry lost after %d deletions", i)
		}
	}
	if x.Len() != 0 || x.pages.Len() != 1 {
		t.Errorf("%d entries and %d pages are left", x.Len(), x.pages.Len())
	}
}

type listModel struct {
	order []int32
	at    map[int32]int32
}

func TestList_KeepsOrderAndPositions(t *testing.T) {
	t.Parallel()
	clone := func(m listModel) listModel { return listModel{slices.Clone(m.order), maps.Clone(m.at)} }
	check(t, func(t *rapid.T) {
		start := branch[List, listModel]{owner: NewOwner(), m: listModel{at: map[int32]int32{}}}
		next := int32(0)
		add := func(b *branch[List, listModel]) {
			b.m.at[next] = b.s.Add(b.owner, next)
			b.m.order = append(b.m.order, next)
			next++
		}
		for range rapid.SampledFrom([]int{0, width - 3, 5 * width}).Draw(t, "start") {
			add(&start)
		}
		forest(t, start, clone, func(t *rapid.T, b *branch[List, listModel]) {
			if len(b.m.order) == 0 || rapid.IntRange(0, 4).Draw(t, "op") < 2 {
				add(b)
				return
			}
			i := rapid.IntRange(0, len(b.m.order)-1).Draw(t, "i")
			slot := b.m.order[i]
			b.s.Remove(b.owner, b.m.at[slot], func(slot, at int32) { b.m.at[slot] = at })
			delete(b.m.at, slot)
			b.m.order = slices.Delete(b.m.order, i, i+1)
		}, func(t *rapid.T, l List, m listModel) {
			if l.Len() != len(m.order) || !slices.Equal(slices.Collect(l.All), m.order) {
				t.Fatalf("list of %d, want %d, or in another order", l.Len(), len(m.order))
			}
		})
	})
}

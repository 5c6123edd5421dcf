package relocate

import (
	"github.com/cede-scheduler/cede/core/state"
)

// AppendExceptions appends the nodes with other answers for their allocations than for equal
// allocations elsewhere: the only node, or the cheapest one, that could run them is their
// own. The order is random.
func (f *Finder) AppendExceptions(list []int32) []int32 {
	for _, s := range f.shapes {
		if pos := s.exception(); pos >= 0 {
			list = append(list, pos)
		}
	}
	return list
}

// Update brings the answers up to date after changes of the nodes at some positions. It
// appends the nodes with other answers for their allocations than before, in random order.
// everywhere is set if the answers about other nodes may have changed as well.
func (f *Finder) Update(snap *state.Snapshot, positions, list []int32) (changed []int32, everywhere bool) {
	f.Snap = snap
	everywhere = len(f.alone) > 0
	clear(f.alone)
	for _, s := range f.shapes {
		if !f.affects(s, positions) {
			continue
		}
		// Computing again costs the same bounded work as before, and is exact: the changed
		// node may have been one of the two places, and the third place was not stored.
		before := s.places
		f.compute(s)
		if before.at(-1) != s.at(-1) {
			everywhere = true
			continue
		}
		for _, pos := range [...]int32{before.exception(), s.exception()} {
			if pos >= 0 && before.at(pos) != s.at(pos) {
				list = append(list, pos)
			}
		}
	}
	return list, everywhere
}

// affects reports whether a change of nodes may change the places of a shape. It may return
// true in vain, but not false: a node that was excluded so far can only matter if it
// has the capacity now, or if evictions there may cost no more than on the second target.
func (f *Finder) affects(s *shape, positions []int32) bool {
	if s.isCut {
		return true // other nodes may be examined
	}
	g := s.row.Group
	for _, pos := range positions {
		if pos == s.free[0] || pos == s.free[1] || pos == s.targets[0].pos || pos == s.targets[1].pos {
			return true
		}
		if s.free[1] >= 0 { // two nodes answer for every home
			continue
		}
		chunk, i := f.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		lowest := int64(chunk.MinPriority(i))
		isTarget := lowest <= int64(g.Job.Priority)-f.Gap && (s.targets[1].pos < 0 || lowest <= int64(s.targets[1].priority))
		if isTarget || chunk.Fitting(&g.Ask)>>i&1 == 1 {
			return true
		}
	}
	return false
}

package relocate

import (
	"math"
	"slices"

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
	old := f.Snap
	f.Snap = snap
	everywhere = len(f.alone) > 0
	clear(f.alone)
	for _, s := range f.shapes {
		before := s.places
		if !f.adjust(s, old, positions) {
			f.compute(s)
		}
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

// adjust brings the places of a shape up to date by examining the changed nodes alone. It
// returns false if they have to be computed: a node that was one of the two places may no longer
// be, and the third place was not stored.
func (f *Finder) adjust(s *shape, old *state.Snapshot, positions []int32) bool {
	g := s.row.Group
	if g.Job.Type.PerNode() {
		return true
	}
	if id, pinned := pinnedTo(g); pinned {
		pos, ok := f.Snap.Position(id)
		return !ok || !slices.Contains(positions, pos)
	}
	prepared := false
	for _, pos := range positions {
		if f.affectsFree(s, pos) {
			return false
		}
		if s.free[1] >= 0 { // two nodes answer for every home
			continue
		}
		if pos == s.targets[0].pos || pos == s.targets[1].pos {
			return false
		}
		is := f.isCandidate(g, f.Snap, pos)
		if s.lastTarget < math.MaxInt32 {
			if f.rank(pos) > s.lastTarget {
				continue
			}
			if is != f.isCandidate(g, old, pos) {
				return false // another node is the last one
			}
		}
		if !is {
			continue
		}
		if !prepared {
			f.prepare(s)
			f.dims.Reset(&g.Ask, f.Snap.Dims().Len())
			prepared = true
		}
		if chunk, i := f.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize; f.allows(chunk, i, pos, new(int)) {
			s.addTarget(f.target(g, chunk, i, pos))
		}
	}
	return true
}

// affectsFree reports whether a change of a node may change the nodes with free capacity. It may
// return true in vain, but not false. If not all nodes were examined, those after the last one do
// not matter, and one before it may leave its place to another.
func (f *Finder) affectsFree(s *shape, pos int32) bool {
	if pos == s.free[0] || pos == s.free[1] {
		return true
	}
	if s.free[1] >= 0 {
		return false
	}
	if s.lastFree < math.MaxInt32 {
		return f.rank(pos) <= s.lastFree
	}
	chunk, i := f.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	return chunk.Fitting(&s.row.Group.Ask)>>i&1 == 1
}

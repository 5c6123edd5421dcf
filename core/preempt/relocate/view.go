package relocate

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// maxShapes is the number of shapes for which answers are given in a part of a search.
// Allocations of further shapes count as fitting nowhere: a cluster without two equal
// groups would otherwise be scanned for each of them.
const maxShapes = 64

// A View gives answers to one worker. It counts shapes by parts of a search that do not
// depend on the number of workers, so that its answers do not depend on it either.
type View struct {
	f     *Finder
	memos [memoSlots]memo
	seen  map[*shape]bool
}

// A memo holds the shape of a group that does not depend on itself; nil: none is given.
type memo struct {
	group *model.Group
	shape *shape
}

// memoSlots is the size of the memo table. Colliding groups replace each other.
const memoSlots = 1 << 8

// Start prepares for a search; f is nil if no policy reads the answers.
func (v *View) Start(f *Finder) {
	v.f = f
	v.Reset()
}

// IsActive reports whether some policy reads the answers.
func (v *View) IsActive() bool { return v.f != nil }

// Reset begins another part of the search. It must be called after Finder.Update.
func (v *View) Reset() {
	if v.f == nil && len(v.seen) == 0 {
		return
	}
	clear(v.memos[:])
	clear(v.seen)
}

// Release drops references into the snapshot.
func (v *View) Release() {
	v.f = nil
	clear(v.memos[:])
	clear(v.seen)
}

// Of returns where the allocation of a row could run.
func (v *View) Of(row *state.Row) Answer { return v.OfNode(row, row.Alloc.NodePos) }

// OfNode returns the same for a row of the node at home. It spares the read of the allocation,
// which the cache of the processor seldom holds.
func (v *View) OfNode(row *state.Row, home int32) Answer {
	m := &v.memos[row.Group.NameHash()%memoSlots]
	s := m.shape
	if m.group != row.Group {
		s = v.admit(row)
		if !DependsOnItself(row.Group) {
			*m = memo{row.Group, s}
		}
	}
	if s == nil {
		return stranded
	}
	return s.at(home)
}

// admit returns the shape of a row, or nil if the part has as many shapes as are permitted.
// Invariant: the result depends on the rows of the part and their order, not on shapes that
// other workers have computed.
func (v *View) admit(row *state.Row) *shape {
	s := v.f.computed(row)
	if s != nil && v.seen[s] {
		return s
	}
	if len(v.seen) >= maxShapes {
		return nil
	}
	if s == nil {
		s = v.f.shapeOf(row)
	}
	if v.seen == nil {
		v.seen = map[*shape]bool{}
	}
	v.seen[s] = true
	return s
}

package broker

import "math"

// shapes holds the records that wait for classes, grouped by shape. Every change
// walks all of them, so that they are in a list: most are skipped without a look at
// their records.
//
// Invariant: at has the position of every element of list.
type shapes struct {
	list []shape // in no defined order
	at   map[uint64]int
}

// A shape is an equivalence class of blocked evaluations.
type shape struct {
	number uint64
	group  group // not empty
	// oldest is at most the lowest snapshot index of the group. A change up to it
	// unblocks none of them.
	oldest uint64
	first  head // copy of that of the first record
}

func newShapes() shapes { return shapes{at: map[uint64]int{}} }

// add adds a record to the group of its shape.
func (s *shapes) add(r *record) {
	i, ok := s.at[r.shape]
	if !ok {
		i = len(s.list)
		s.at[r.shape] = i
		s.list = append(s.list, shape{number: r.shape, oldest: math.MaxUint64})
	}
	x := &s.list[i]
	x.oldest = min(x.oldest, r.seen)
	x.setGroup(x.group.with(r))
}

// remove removes a record from the group of its shape. It does not search for the
// lowest index that remains, because that would read all records of the group.
func (s *shapes) remove(r *record) {
	i := s.at[r.shape]
	s.list[i].setGroup(s.list[i].group.without(r))
	s.deleteIfEmpty(i)
}

// removeGone removes the records of a shape that are gone.
func (s *shapes) removeGone(number uint64) {
	i := s.at[number]
	x := &s.list[i]
	x.setGroup(x.group.withoutGone())
	x.oldest = math.MaxUint64
	for _, r := range x.group {
		x.oldest = min(x.oldest, r.seen)
	}
	s.deleteIfEmpty(i)
}

// setGroup replaces the group.
func (s *shape) setGroup(g group) {
	s.group = g
	if len(g) > 0 && g[0].eval != s.first.eval {
		s.first = g[0].head
	}
}

// isExcluded reports whether the change cannot unblock the first record, which then
// stands for the others. It returns false if the first record has seen the change.
func (s *shape) isExcluded(c *change) bool {
	if !c.excludes || s.first.seen >= c.index {
		return false
	}
	if c.filter.Excludes(s.first.eval, c.node, &s.first.cache) {
		return true
	}
	s.group[0].cache = s.first.cache
	return false
}

// deleteIfEmpty deletes the shape at a position if it has no records. The last one
// replaces it.
func (s *shapes) deleteIfEmpty(i int) {
	if len(s.list[i].group) > 0 {
		return
	}
	last := len(s.list) - 1
	delete(s.at, s.list[i].number)
	if i < last {
		s.list[i] = s.list[last]
		s.at[s.list[i].number] = i
	}
	s.list[last] = shape{}
	s.list = s.list[:last]
}

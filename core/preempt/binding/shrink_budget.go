package binding

import (
	"sort"

	"github.com/cede-scheduler/cede/core/model"
)

// What a binding can do without, it can do without on all clusters together. A
// search over several does not know beforehand on which of them that is of use:
// two replicas here are no help to who lacks one here and one there. So each
// cluster may draw on all of it; and as long as more is drawn than there is, a pick
// is looked at by whether it can be shared out so that there is enough room.
//
// What is evicted whole is gone like what is drawn: of a binding that keeps fewer
// than its minimum nothing is shrunk. So it may be better not to evict who may be,
// and to shrink all the more.

// mostSteps bounds how often rooms are looked at to share out what is overdrawn.
// Beyond it nothing can be, and bindings are evicted that might have been shrunk:
// it is for a few clusters that a few elastic bindings have in common.
const mostSteps = 10_000

// leave is what leaves one cluster of one binding.
type leave struct {
	*model.Assignment
	at      int  // in BindingRequest.Clusters
	n       int  // replicas that may leave
	evicted bool // all of them may leave, whatever the minimum
	pot     *pot // that they are drawn from; nil: from none
	share   int  // that leave, when the pot was last shared out
}

// left is how many replicas leave.
func (l *leave) left() int {
	switch {
	case l.pot != nil && l.pot.owes() > 0:
		return l.share
	case l.evicted:
		return l.Replicas
	}
	return l.n
}

// pot is the replicas that a binding can do without.
type pot struct {
	spare  int
	leaves []*leave // that draw on it
}

// owes is how many replicas too many are drawn. There is nothing to draw where those
// that are evicted leave fewer than the minimum.
func (p *pot) owes() int {
	spare, drawn := p.spare, 0
	for _, l := range p.leaves {
		if l.evicted {
			spare -= l.Replicas
		} else {
			drawn += l.n
		}
	}
	return max(0, drawn-max(0, spare))
}

// change makes n replicas leave, or as many fewer as the pot is overdrawn by.
func (s *several) change(l *leave, n int) {
	s.put(l, n-l.n)
	l.n = n
}

// evict has all replicas leave, or those alone that may.
func (s *several) evict(l *leave, evicted bool) {
	rest := l.Replicas - l.n
	if !evicted {
		rest = -rest
	}
	s.put(l, rest)
	l.evicted = evicted
}

// put makes room of so many replicas.
func (s *several) put(l *leave, replicas int) {
	room := replicasOf(l.Assignment, replicas)
	s.room[l.at].Add(&room)
}

// fits is whether there is enough room, with what is overdrawn shared out.
func (s *several) fits() bool {
	if !s.enough(s.room) {
		return false
	}
	var overdrawn []*pot
	for _, p := range s.order {
		if p.owes() > 0 {
			overdrawn = append(overdrawn, p)
		}
	}
	return s.shareOut(overdrawn)
}

// shareOut is whether pots can be shared out. If so it is written to their leaves.
func (s *several) shareOut(pots []*pot) bool {
	return len(pots) == 0 || s.settle(pots, pots[0].leaves)
}

// settle is whether pots can be shared out with some of leaves, which draw on the
// first of them, evicted of those that may be: all if that is enough.
func (s *several) settle(pots []*pot, leaves []*leave) bool {
	if len(leaves) == 0 {
		return s.giveBack(pots, len(pots[0].leaves), pots[0].owes())
	}
	if s.settle(pots, leaves[1:]) {
		return true
	}
	l := leaves[0]
	if !l.evicted || s.steps < 0 {
		return false
	}
	s.steps--
	s.evict(l, false)
	defer s.evict(l, true)
	return s.enough(s.room) && s.settle(pots, leaves[1:])
}

// giveBack is whether so many replicas of the first of pots can be given back, by
// the first so many of its leaves, and the others be shared out then. The last that
// came gives back the most: it is spared first.
func (s *several) giveBack(pots []*pot, leaves, owed int) bool {
	if leaves == 0 {
		return owed == 0 && s.shareOut(pots[1:])
	}
	l, others := pots[0].leaves[leaves-1], 0
	for _, x := range pots[0].leaves[:leaves-1] {
		others += s.back(x, owed)
	}
	for back := s.back(l, owed); back >= max(0, owed-others); back-- {
		s.put(l, -back)
		ok := s.giveBack(pots, leaves-1, owed-back)
		s.put(l, back)
		if ok {
			if l.share = l.n - back; l.evicted {
				l.share = l.Replicas
			}
			return true
		}
	}
	return false
}

// back is how many replicas, at most as many as are owed, could stay if no other
// did.
func (s *several) back(l *leave, owed int) int {
	if l.evicted {
		return 0
	}
	return sort.Search(min(l.n, owed), func(k int) bool {
		s.steps--
		s.put(l, -k-1)
		defer s.put(l, k+1)
		return s.steps < 0 || !s.enough(s.room)
	})
}

package preempt

import (
	"sort"

	"github.com/cede-scheduler/cede/core/model"
)

// What a binding can do without, it can do without on all clusters together. A
// search over several does not know beforehand on which of them that is of use:
// two replicas here are no help to who lacks one here and one there. So each
// cluster may draw on all of it; and as long as more is drawn than there is, a pick
// is looked at by whether it can be shared out so that there is enough room.

// mostSteps bounds how often rooms are looked at to share out what is overdrawn.
// Beyond it nothing can be, and bindings are evicted that might have been shrunk:
// it is for a few clusters that a few elastic bindings have in common.
const mostSteps = 10_000

// leave is what leaves one cluster of one binding.
type leave struct {
	*model.Assignment
	at      int  // in BindingRequest.Clusters
	n       int  // replicas that may leave
	evicted bool // all of them leave, whatever the minimum
	pot     *pot // that n is drawn from while it is not evicted; nil: from none
	share   int  // of n, when the pot was last shared out
}

// left is how many replicas leave.
func (l *leave) left() int {
	switch {
	case l.evicted:
		return l.Replicas
	case l.pot != nil && l.pot.owes() > 0:
		return l.share
	}
	return l.n
}

// pot is the replicas that a binding can do without.
type pot struct {
	spare, drawn int
	leaves       []*leave // that draw on it
}

// owes is how many replicas too many are drawn.
func (p *pot) owes() int { return max(0, p.drawn-p.spare) }

// change makes n replicas leave, or as many fewer as the pot is overdrawn by.
func (s *several) change(l *leave, n int) {
	s.put(l, n-l.n)
	if l.pot != nil {
		l.pot.drawn += n - l.n
	}
	l.n = n
}

// evict has all replicas leave, or those alone that may.
func (s *several) evict(l *leave, evicted bool) {
	rest, n := l.Replicas-l.n, l.n
	if !evicted {
		rest, n = -rest, -n
	}
	s.put(l, rest)
	if l.pot != nil {
		l.pot.drawn -= n
	}
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
	return len(pots) == 0 || s.giveBack(pots, len(pots[0].leaves), pots[0].owes())
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
			l.share = l.n - back
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

package binding

import (
	"sort"

	"github.com/cede-scheduler/cede/core/model"
)

// The surplus of a binding is shared by all of its clusters. A search over several of
// them cannot determine in advance where the surplus is useful: two replicas freed on one
// cluster do not help a binding that lacks one on each of two. So every removal may draw
// on the whole allowance, and as long as allowances are overdrawn, the search checks
// whether they can be shared out so that enough is free.
//
// Replicas that are evicted with their assignment reduce the allowance as well, and
// nothing is shrunk of a binding that retains fewer than its minimum. So it may be better
// not to evict an assignment and to shrink more of the others instead.

// maxSteps bounds how often capacity is checked to share out allowances. Beyond it no
// overdrawn allowance can be shared out, and bindings are evicted that might have been
// shrunk. It suffices for a few clusters that have a few elastic bindings in common.
const maxSteps = 10_000

// removal describes the replicas of one binding that leave one cluster.
type removal struct {
	*model.Assignment
	cluster   int        // position in Request.Clusters
	replicas  int        // that may leave without eviction
	evicted   bool       // all replicas may leave, regardless of the minimum
	allowance *allowance // that replicas draw on; nil: none
	share     int        // of the allowance, when it was last shared out
}

// leaving returns how many replicas leave.
func (r *removal) leaving() int {
	switch {
	case r.allowance != nil && r.allowance.overdraft() > 0:
		return r.share
	case r.evicted:
		return r.Replicas
	}
	return r.replicas
}

// allowance is the number of replicas by which a binding may be shrunk.
type allowance struct {
	replicas int
	removals []*removal // that draw on it
}

// overdraft returns how many replicas are drawn in excess. The allowance is zero if
// evictions leave fewer replicas than the minimum.
func (p *allowance) overdraft() int {
	available, drawn := p.replicas, 0
	for _, r := range p.removals {
		if r.evicted {
			available -= r.Replicas
		} else {
			drawn += r.replicas
		}
	}
	return max(0, drawn-max(0, available))
}

// setReplicas sets how many replicas may leave, less the overdraft.
func (s *spreadSearch) setReplicas(r *removal, n int) {
	s.release(r, n-r.replicas)
	r.replicas = n
}

// setEvicted sets whether all replicas may leave.
func (s *spreadSearch) setEvicted(r *removal, evicted bool) {
	rest := r.Replicas - r.replicas
	if !evicted {
		rest = -rest
	}
	s.release(r, rest)
	r.evicted = evicted
}

// release adds the resources of some replicas to the free capacity, or subtracts them if
// the number is negative.
func (s *spreadSearch) release(r *removal, replicas int) {
	held := vectorOf(r.Assignment, replicas)
	s.free[r.cluster].Add(&held)
}

// fits reports whether enough is free, with overdrawn allowances shared out.
func (s *spreadSearch) fits() bool {
	if !s.enough(s.free) {
		return false
	}
	var overdrawn []*allowance
	for _, p := range s.order {
		if p.overdraft() > 0 {
			overdrawn = append(overdrawn, p)
		}
	}
	return s.shareOut(overdrawn)
}

// shareOut reports whether allowances can be shared out. If so, it stores the shares in
// their removals. The search is exponential in the number of removals, and bounded by
// maxSteps.
func (s *spreadSearch) shareOut(overdrawn []*allowance) bool {
	return len(overdrawn) == 0 || s.shareOutAmong(overdrawn, overdrawn[0].removals)
}

// shareOutAmong reports whether allowances can be shared out if some of removals, which
// draw on the first allowance, are not evicted after all. It prefers to evict all of them.
func (s *spreadSearch) shareOutAmong(overdrawn []*allowance, removals []*removal) bool {
	if len(removals) == 0 {
		return s.giveBack(overdrawn, len(overdrawn[0].removals), overdrawn[0].overdraft())
	}
	if s.shareOutAmong(overdrawn, removals[1:]) {
		return true
	}
	r := removals[0]
	if !r.evicted || s.steps < 0 {
		return false
	}
	s.steps--
	s.setEvicted(r, false)
	defer s.setEvicted(r, true)
	return s.enough(s.free) && s.shareOutAmong(overdrawn, removals[1:])
}

// giveBack reports whether the first n removals of the first allowance can give back its
// overdraft, and the other allowances be shared out then. The removal that was added last
// gives back the most, as it is reprieved first.
func (s *spreadSearch) giveBack(overdrawn []*allowance, n, overdraft int) bool {
	if n == 0 {
		return overdraft == 0 && s.shareOut(overdrawn[1:])
	}
	r, others := overdrawn[0].removals[n-1], 0
	for _, x := range overdrawn[0].removals[:n-1] {
		others += s.maxReturn(x, overdraft)
	}
	for back := s.maxReturn(r, overdraft); back >= max(0, overdraft-others); back-- {
		s.release(r, -back)
		ok := s.giveBack(overdrawn, n-1, overdraft-back)
		s.release(r, back)
		if ok {
			if r.share = r.replicas - back; r.evicted {
				r.share = r.Replicas
			}
			return true
		}
	}
	return false
}

// maxReturn returns how many replicas of a removal, at most the overdraft, could stay if
// no other removal gave any back.
func (s *spreadSearch) maxReturn(r *removal, overdraft int) int {
	if r.evicted {
		return 0
	}
	return sort.Search(min(r.replicas, overdraft), func(k int) bool {
		s.steps--
		s.release(r, -k-1)
		defer s.release(r, k+1)
		return s.steps < 0 || !s.enough(s.free)
	})
}

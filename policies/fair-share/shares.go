package fairshare

import "github.com/cede-scheduler/cede/sdk/policy"

// shares knows what share of the cluster each namespace has once the preemptor
// runs, less what the victims picked so far give back.
//
// A namespace's share is that of the resource of which it has most, over its
// weight (dominant resource fairness). It is entitled to its weight's part of
// the cluster; so its share over its weight is above its fair share when it is
// above the same number for all: one over the sum of weights.
type shares struct {
	table  *policy.NamespaceTable
	totals []float64
	ask    []float64
	own    int32   // position of the preemptor's namespace in the table
	fair   float64 // share over weight to which everybody is entitled

	at    []int32   // position in the table by id of the name, -1: not in it
	whole []float64 // share over weight by position, before any victim
	now   []float64 // the same, less the victims of the option at hand
	freed []float64 // [position*dims+dimension], all zero between options
	moved []int32   // positions for which now is not whole
}

// load computes the shares for a call.
func (s *shares) load(shared *policy.Shared, strings []string, who *policy.Preemptor) {
	s.table, s.totals, s.ask, s.own = &shared.Namespaces, shared.Totals, who.Ask, -1
	n := len(s.table.Name)
	last := int32(-1)
	for _, id := range s.table.Name {
		last = max(last, id)
	}
	s.at = grown(s.at, int(last)+1)
	for id := range s.at {
		s.at[id] = -1
	}
	s.freed = grown(s.freed, n*len(s.totals))
	clear(s.freed)
	weights := 0.0
	for k, id := range s.table.Name {
		s.at[id] = int32(k)
		weights += s.table.Weight[k]
		if strings[id] == who.Namespace {
			s.own = int32(k)
		}
	}
	s.fair = 1 / weights
	s.whole, s.now, s.moved = grown(s.whole, n), grown(s.now, n), s.moved[:0]
	for k := range s.whole {
		s.whole[k] = s.share(int32(k))
		s.now[k] = s.whole[k]
	}
}

// share is the dominant share over the weight of the namespace at k.
func (s *shares) share(k int32) float64 {
	dominant := 0.0
	for d, total := range s.totals {
		if total <= 0 {
			continue // nobody offers it now
		}
		use := s.table.Use[d][k] - s.freed[int(k)*len(s.totals)+d]
		if k == s.own {
			use += s.ask[d]
		}
		dominant = max(dominant, use/total)
	}
	return dominant / s.table.Weight[k]
}

// take gives back what a row of the namespace with that id uses.
func (s *shares) take(id int32, use [][]float64, row int) {
	k := s.at[id]
	for d := range s.totals {
		s.freed[int(k)*len(s.totals)+d] += use[d][row]
	}
	s.now[k] = s.share(k)
	s.moved = append(s.moved, k)
}

// restore forgets what was taken.
func (s *shares) restore() {
	dims := len(s.totals)
	for _, k := range s.moved {
		clear(s.freed[int(k)*dims : (int(k)+1)*dims])
		s.now[k] = s.whole[k]
	}
	s.moved = s.moved[:0]
}

// of is the share of the namespace with that id, as it is now.
func (s *shares) of(id int32) float64 { return s.now[s.at[id]] }

// above is whether a namespace may lose work where only those may that have
// more than their fair share: it has, or it would lose it to itself.
func (s *shares) above(id int32) bool {
	k := s.at[id]
	return k == s.own || s.now[k] > s.fair
}

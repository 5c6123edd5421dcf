package fairshare

import "github.com/cede-scheduler/cede/sdk/policy"

// shares holds the share of the cluster of each namespace once the preemptor runs,
// less the use of the victims picked so far.
//
// A namespace's share is that of its dominant resource, divided by its weight
// (dominant resource fairness). A namespace is entitled to its weight's part of the
// cluster, so that its share over its weight exceeds its fair share if it exceeds the
// same number for all namespaces: one over the sum of weights.
type shares struct {
	table  *policy.NamespaceTable
	totals []float64
	ask    []float64
	own    int32   // position of the preemptor's namespace in the table
	fair   float64 // share over weight that every namespace is entitled to

	at    []int32   // position in the table by ID of the name; -1 if absent
	whole []float64 // share over weight by position, before any victim
	now   []float64 // the same, less the victims of the current option
	freed []float64 // [position*dims+dimension], all zero between options
	moved []int32   // positions where now differs from whole
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

// share returns the dominant share over the weight of the namespace at k.
func (s *shares) share(k int32) float64 {
	dominant := 0.0
	for d, total := range s.totals {
		if total <= 0 {
			continue // no ready node offers it
		}
		use := s.table.Use[d][k] - s.freed[int(k)*len(s.totals)+d]
		if k == s.own {
			use += s.ask[d]
		}
		dominant = max(dominant, use/total)
	}
	return dominant / s.table.Weight[k]
}

// take subtracts the use of a row of the namespace with that ID.
func (s *shares) take(id int32, use [][]float64, row int) {
	k := s.at[id]
	for d := range s.totals {
		s.freed[int(k)*len(s.totals)+d] += use[d][row]
	}
	s.now[k] = s.share(k)
	s.moved = append(s.moved, k)
}

// restore undoes all calls of take.
func (s *shares) restore() {
	dims := len(s.totals)
	for _, k := range s.moved {
		clear(s.freed[int(k)*dims : (int(k)+1)*dims])
		s.now[k] = s.whole[k]
	}
	s.moved = s.moved[:0]
}

// of returns the current share of the namespace with that ID.
func (s *shares) of(id int32) float64 { return s.now[s.at[id]] }

// above reports whether a namespace may lose allocations if only namespaces above
// their fair share may: it is above, or it is the preemptor's own namespace.
func (s *shares) above(id int32) bool {
	k := s.at[id]
	return k == s.own || s.now[k] > s.fair
}

package binding

import (
	"slices"
	"sort"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

// A SpreadResult is the result of a search over several clusters together.
type SpreadResult struct {
	Victims []Victim // in picking order; empty: eviction does not free enough
	Result  Result   // without a cluster
}

// FindSpread searches several clusters together for a binding that may be divided over
// them. enough reports whether the capacity that would be free, by position in
// Request.Clusters, holds the binding: replicas are whole on each cluster, so that amounts
// cannot be added up. It must be monotone.
//
// The victims have the lowest priorities over all clusters, and none of them is
// redundant. Among equal priorities no assignment is evicted as long as it is enough to
// shrink bindings. A binding that is shrunk anywhere retains its minimum over all
// clusters, evicted assignments included; otherwise its assignments are evicted whole.
func FindSpread(snap *state.Snapshot, req *Request, enough func(free []model.Vector) bool) (SpreadResult, error) {
	return findSpread(snap, req, nil, enough)
}

// findSpread is FindSpread on some clusters, by position in Request.Clusters; nil: on all.
func findSpread(snap *state.Snapshot, req *Request, within []int, enough func(free []model.Vector) bool) (SpreadResult, error) {
	s := newSpreadSearch(snap, req, within, enough)
	found, err := s.find()
	if err == nil && len(found.Victims) == 0 && s.elastic && !s.ascending {
		// A policy with another order may list too little if clusters share an allowance.
		// It is called again to select assignments that are evicted whole.
		s = newSpreadSearch(snap, req, within, enough)
		s.elastic = false
		return s.find()
	}
	return found, err
}

// spreadSearch is a search over several clusters together.
type spreadSearch struct {
	*search
	within []int // positions in Request.Clusters; nil: all
	enough func(free []model.Vector) bool
	// free is by position in Request.Clusters, as if no allowance were overdrawn.
	free []model.Vector

	removals   map[*model.Assignment]*removal
	allowances map[model.JobKey]*allowance
	order      []*allowance // in order of creation
	steps      int          // remaining checks for sharing out
}

func newSpreadSearch(snap *state.Snapshot, req *Request, within []int, enough func(free []model.Vector) bool) *spreadSearch {
	return &spreadSearch{
		search: newSearch(snap, req), within: within, enough: enough, steps: maxSteps,
		removals: map[*model.Assignment]*removal{}, allowances: map[model.JobKey]*allowance{},
	}
}

// find calls the policy about all clusters, and merges its lists.
func (s *spreadSearch) find() (SpreadResult, error) {
	for at, c := range s.req.Clusters {
		if s.within != nil && !slices.Contains(s.within, at) {
			s.free = append(s.free, model.Vector{})
			continue
		}
		_, soon := s.snap.ClusterFreeCapacity(c.ID, s.req.Binding.Key(), s.req.Binding.Priority, s.req.Now)
		s.free = append(s.free, soon)
		s.addOption(at, c.ID, soon)
	}
	if len(s.options) == 0 {
		return SpreadResult{Result: s.result}, nil
	}
	in, answer, err := s.call()
	if err != nil {
		return SpreadResult{}, err
	}
	s.result.RecheckAt = protect.PolicyRecheck(answer.Recheck, s.req.Now)
	var lists [][]row
	for i := range s.options {
		picks, _, err := s.picks(&s.options[i], in, answer, i)
		if err != nil {
			return SpreadResult{}, err
		}
		lists = append(lists, withWhole(picks))
	}
	found := SpreadResult{s.merge(lists), s.result}
	if len(found.Victims) > 0 {
		candidates := 0
		for i := range s.options {
			candidates += len(s.options[i].rows)
		}
		found.Result.Why = s.explainVictims(found.Victims, candidates)
	}
	return found, nil
}

// addOption creates an option for a cluster if it holds more replicas once all of its
// candidates have left. free is the capacity that becomes free without evictions.
func (s *spreadSearch) addOption(at int, cluster string, free model.Vector) {
	held := s.collectCandidates(cluster)
	if s.result.Outcomes[at] = preempt.Insufficient; len(s.rows) == 0 {
		s.result.Outcomes[at] = preempt.NoCandidates
		return
	}
	most := free
	most.Add(held)
	b := s.req.Binding
	replicas := b.FittingReplicas(&most, s.req.Replicas)
	if replicas <= b.FittingReplicas(&free, s.req.Replicas) {
		return
	}
	o := option{cluster: at, rows: slices.Clone(s.rows)}
	if s.elastic && s.ascending {
		// A shared allowance may not be available here, so that the list must be complete.
		o.need = *held
	} else {
		o.need = b.TotalAsk(replicas)
		o.need.Sub(&free)
	}
	s.sort(o.rows)
	s.options = append(s.options, o)
}

// withWhole adds rows to the list of a cluster for assignments that a surplus row covers
// completely: they may also be evicted whole. These rows follow the surplus rows of the
// same priority, so that shrinking comes first.
func withWhole(list []row) []row {
	var out []row
	from := 0 // in list: the first row of the priority at hand
	for i := range list {
		out = append(out, list[i])
		if i+1 < len(list) && list[i+1].priority == list[i].priority {
			continue
		}
		for _, r := range list[from : i+1] {
			if r.part == surplus && r.replicas == r.assignment.Replicas {
				r.part, r.replicas, r.vec = minimum, 0, model.Vector{}
				out = append(out, r)
			}
		}
		from = i + 1
	}
	return out
}

// pick is a row that was picked.
type pick struct {
	*removal
	part part
}

// merge picks the row of the lowest priority from the lists of all clusters until enough
// is free, then reprieves in reverse order. It returns nil if the lists do not suffice.
func (s *spreadSearch) merge(lists [][]row) (victims []Victim) {
	var picked []pick
	for !s.fits() {
		next := -1
		for i, list := range lists {
			if len(list) > 0 && (next < 0 || comesFirst(&list[0], &lists[next][0])) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		picked = append(picked, s.pick(&lists[next][0], s.options[next].cluster))
		lists[next] = lists[next][1:]
	}
	for _, p := range slices.Backward(picked) {
		s.reprieve(p)
	}
	for _, p := range picked {
		if n := p.leaving(); n > 0 && p.part != minimum {
			victims = append(victims, Victim{p.Assignment, p.Replicas - n})
		}
	}
	return victims
}

// comesFirst reports whether a row is picked before one of another cluster: the lower
// priority, and among equals a surplus before a minimum.
func comesFirst(x, y *row) bool {
	return x.priority < y.priority || x.priority == y.priority && x.part != minimum && y.part == minimum
}

// pick removes a row from a cluster.
func (s *spreadSearch) pick(r *row, cluster int) pick {
	a := r.assignment
	x := s.removals[a]
	if x == nil {
		x = &removal{Assignment: a, cluster: cluster}
		s.removals[a] = x
		// A duplicated binding has a minimum on each cluster, and no shared allowance.
		if b := s.snap.Binding(a.Binding); r.part == surplus && !b.Duplicated {
			x.allowance = s.allowanceOf(x, b)
		}
	}
	if r.part == minimum {
		s.setEvicted(x, true)
	} else {
		s.setReplicas(x, r.replicas)
	}
	return pick{x, r.part}
}

// allowanceOf returns the allowance of a binding, and adds a removal to it.
func (s *spreadSearch) allowanceOf(x *removal, b *model.Binding) *allowance {
	p := s.allowances[x.Binding]
	if p == nil {
		p = &allowance{replicas: s.surplusOf(x.Assignment, b)}
		s.allowances[x.Binding], s.order = p, append(s.order, p)
	}
	p.removals = append(p.removals, x)
	return p
}

// reprieve undoes as much of a pick as is not needed.
func (s *spreadSearch) reprieve(p pick) {
	switch {
	case p.part == minimum:
		if s.setEvicted(p.removal, false); !s.fits() {
			s.setEvicted(p.removal, true)
		}
	case p.evicted: // it leaves with its minimum
	case p.part == whole:
		if s.setReplicas(p.removal, 0); !s.fits() {
			s.setReplicas(p.removal, p.Replicas)
		}
	default:
		s.setReplicas(p.removal, sort.Search(p.replicas, func(n int) bool {
			s.setReplicas(p.removal, n)
			return s.fits()
		}))
	}
}

package binding

import (
	"slices"
	"sort"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// SpreadResult is what came of a search for room on several clusters together.
type SpreadResult struct {
	Victims []Victim // in the order of picking; empty: eviction makes no room
	Result  Result   // without a cluster
}

// FindSpread looks for room on several clusters together, for a binding that may
// be divided over them. enough says whether the room that there would be, by
// position in BindingRequest.Clusters, holds it: replicas are whole on each
// cluster, so that amounts cannot be added up. It must be monotone.
//
// The victims are the lowest priorities over all clusters, and none of them could
// be left out. Of equal priorities nobody is evicted from a cluster as long as it
// is enough to shrink bindings. One that is shrunk anywhere keeps its minimum over
// all clusters, with what is evicted of it gone; else what goes of it goes whole.
func FindSpread(snap *state.Snapshot, req *Request, enough func(room []model.Vector) bool) (SpreadResult, error) {
	s := newSeveral(snap, req, enough)
	found, err := s.find()
	if err == nil && len(found.Victims) == 0 && s.elastic && !s.ascending {
		// Who goes by another order may have listed too little of what several clusters
		// share: it is asked whom it evicts whole.
		s = newSeveral(snap, req, enough)
		s.elastic = false
		return s.find()
	}
	return found, err
}

// several is a search over several clusters together.
type several struct {
	*bindingSearch
	enough func(room []model.Vector) bool
	room   []model.Vector // by position in BindingRequest.Clusters, as if no pot were overdrawn

	leaves map[*model.Assignment]*leave
	pots   map[model.JobKey]*pot
	order  []*pot // in which they came
	steps  int    // that are left for sharing out
}

func newSeveral(snap *state.Snapshot, req *Request, enough func(room []model.Vector) bool) *several {
	return &several{
		bindingSearch: newBindingSearch(snap, req), enough: enough, steps: mostSteps,
		leaves: map[*model.Assignment]*leave{}, pots: map[model.JobKey]*pot{},
	}
}

func (s *several) find() (SpreadResult, error) {
	for at, c := range s.req.Clusters {
		_, soon := s.snap.ClusterFreeCapacity(c.ID, s.req.Binding.Key(), s.req.Binding.Priority, s.req.Now)
		s.room = append(s.room, soon)
		s.offer(at, c.ID, soon)
	}
	if len(s.options) == 0 {
		return SpreadResult{Result: s.found}, nil
	}
	in, answer, err := s.call()
	if err != nil {
		return SpreadResult{}, err
	}
	s.found.RecheckAt = answer.Recheck.Time()
	var lists [][]bindingRow
	for i := range s.options {
		picks, _, err := s.picks(&s.options[i], in, answer, i)
		if err != nil {
			return SpreadResult{}, err
		}
		lists = append(lists, withWhole(picks))
	}
	return SpreadResult{s.choose(lists), s.found}, nil
}

// offer makes an option of a cluster that holds more replicas with everybody gone
// who may go.
func (s *several) offer(at int, cluster string, soon model.Vector) {
	held := s.candidates(cluster)
	if s.found.Outcomes[at] = preempt.Insufficient; len(s.rows) == 0 {
		s.found.Outcomes[at] = preempt.NoCandidates
		return
	}
	most := soon
	most.Add(held)
	b := s.req.Binding
	replicas := b.FittingReplicas(&most, s.req.Replicas)
	if replicas <= b.FittingReplicas(&soon, s.req.Replicas) {
		return
	}
	o := bindingOption{at: at, rows: slices.Clone(s.rows)}
	if s.elastic && s.ascending { // what clusters share may not be had here: whoever comes next has to be known
		o.need = *held
	} else {
		o.need = b.TotalAsk(replicas)
		o.need.Sub(&soon)
	}
	s.sort(o.rows)
	s.options = append(s.options, o)
}

// withWhole adds to the list of a cluster that those may be evicted whom their
// binding can do without there, if it has as many elsewhere: behind what is shrunk
// at the same priority.
func withWhole(list []bindingRow) []bindingRow {
	var out []bindingRow
	owed := 0 // in list: the first row that has no such row yet
	for i := range list {
		out = append(out, list[i])
		if i+1 < len(list) && list[i+1].priority == list[i].priority {
			continue
		}
		for _, row := range list[owed : i+1] {
			if row.part == surplus && row.replicas == row.assignment.Replicas {
				row.part, row.replicas, row.vec = minimum, 0, model.Vector{}
				out = append(out, row)
			}
		}
		owed = i + 1
	}
	return out
}

// pick is a row that was taken.
type pick struct {
	*leave
	part part
}

// choose takes from the lists of clusters whoever has the lowest priority, until
// there is enough room, and spares whom it can, the last first.
func (s *several) choose(lists [][]bindingRow) (victims []Victim) {
	var taken []pick
	for !s.fits() {
		next := -1
		for i, list := range lists {
			if len(list) > 0 && (next < 0 || sooner(&list[0], &lists[next][0])) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		taken = append(taken, s.take(&lists[next][0], s.options[next].at))
		lists[next] = lists[next][1:]
	}
	for _, p := range slices.Backward(taken) {
		s.spareSome(p)
	}
	for _, p := range taken {
		if left := p.left(); left > 0 && p.part != minimum {
			victims = append(victims, Victim{p.Assignment, p.Replicas - left})
		}
	}
	return victims
}

// sooner is whether a row is taken before one of another cluster: the lower
// priority, and of equals what others can do without.
func sooner(x, y *bindingRow) bool {
	return x.priority < y.priority || x.priority == y.priority && x.part != minimum && y.part == minimum
}

// take has a row leave cluster at.
func (s *several) take(row *bindingRow, at int) pick {
	a := row.assignment
	l := s.leaves[a]
	if l == nil {
		l = &leave{Assignment: a, at: at}
		s.leaves[a] = l
		if b := s.snap.Binding(a.Binding); row.part == surplus && !b.Duplicated { // else each cluster has a minimum of its own
			l.pot = s.potOf(l, b)
		}
	}
	if row.part == minimum {
		s.evict(l, true)
	} else {
		s.change(l, row.replicas)
	}
	return pick{l, row.part}
}

// potOf is what a leave of a binding draws on.
func (s *several) potOf(l *leave, b *model.Binding) *pot {
	p := s.pots[l.Binding]
	if p == nil {
		p = &pot{spare: s.spare(l.Assignment, b)}
		s.pots[l.Binding], s.order = p, append(s.order, p)
	}
	p.leaves = append(p.leaves, l)
	return p
}

// spareSome takes back what is not needed of a pick.
func (s *several) spareSome(p pick) {
	switch {
	case p.part == minimum:
		if s.evict(p.leave, false); !s.fits() {
			s.evict(p.leave, true)
		}
	case p.evicted: // it goes with its minimum
	case p.part == whole:
		if s.change(p.leave, 0); !s.fits() {
			s.change(p.leave, p.Replicas)
		}
	default:
		s.change(p.leave, sort.Search(p.n, func(n int) bool {
			s.change(p.leave, n)
			return s.fits()
		}))
	}
}

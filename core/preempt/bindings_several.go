package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Spread is what came of a search for room on several clusters together.
type Spread struct {
	Victims []BindingVictim // in the order of picking; empty: eviction makes no room
	Found   BindingFound    // without a cluster
}

// FindSpread looks for room on several clusters together, for a binding that may
// be divided over them. enough says whether the room that there would be, by
// position in BindingRequest.Clusters, holds it: replicas are whole on each
// cluster, so that amounts cannot be added up. It must be monotone.
//
// The victims are the lowest priorities over all clusters, and none of them could
// be left out. A binding that is shrunk on several of them keeps its minimum over
// all, as long as it is not evicted from one.
func FindSpread(snap *state.Snapshot, req *BindingRequest, enough func(room []model.Vector) bool) (Spread, error) {
	s := several{bindingSearch: newBindingSearch(snap, req), enough: enough, spared: map[model.JobKey]int{}}
	for at, c := range req.Clusters {
		_, soon := snap.ClusterRoom(c.ID, req.Binding.Key(), req.Binding.Priority, req.Now)
		s.room = append(s.room, soon)
		s.offer(at, c.ID, soon)
	}
	if len(s.options) == 0 {
		return Spread{Found: s.found}, nil
	}
	in, answer, err := s.call()
	if err != nil {
		return Spread{}, err
	}
	s.found.RecheckAt = answer.Recheck.Time()
	var lists [][]bindingRow
	for i := range s.options {
		picks, _, err := s.picks(&s.options[i], in, answer, i)
		if err != nil {
			return Spread{}, err
		}
		lists = append(lists, picks)
	}
	return Spread{s.choose(lists), s.found}, nil
}

// several is a search over several clusters together.
type several struct {
	*bindingSearch
	enough func(room []model.Vector) bool
	room   []model.Vector       // by position in BindingRequest.Clusters
	spared map[model.JobKey]int // replicas taken off bindings that they could do without
}

// offer makes an option of a cluster that holds more replicas with everybody gone
// who may go.
func (s *several) offer(at int, cluster string, soon model.Vector) {
	s.found.Outcomes[at] = NoCandidates
	most := soon
	most.Add(s.candidates(cluster))
	b := s.req.Binding
	replicas := b.Fits(&most, s.req.Replicas)
	if len(s.rows) == 0 || replicas <= b.Fits(&soon, s.req.Replicas) {
		return
	}
	s.found.Outcomes[at] = NotEnough
	o := bindingOption{at: at, need: b.Needs(replicas), rows: slices.Clone(s.rows)}
	o.need.Sub(&soon)
	s.sort(o.rows)
	s.options = append(s.options, o)
}

// pick is a row of the option of a cluster.
type pick struct {
	bindingRow
	at int // in BindingRequest.Clusters
}

// choose takes from the lists of clusters whoever has the lowest priority, until
// there is enough room, and spares whom it can, the last first.
func (s *several) choose(lists [][]bindingRow) (victims []BindingVictim) {
	var taken []pick
	for !s.enough(s.room) {
		next := -1
		for i, list := range lists {
			if len(list) > 0 && (next < 0 || sooner(&list[0], &lists[next][0])) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		p := pick{lists[next][0], s.options[next].at}
		lists[next] = lists[next][1:]
		if s.cut(&p, taken); p.replicas > 0 {
			taken = append(taken, p)
			s.room[p.at].Add(&p.vec)
		}
	}
	taken = s.spareSome(taken)
	for _, p := range taken {
		switch {
		case p.part == surplus && goesOn(taken, p.assignment): // it leaves whole, with its minimum
		case p.part == surplus:
			victims = append(victims, BindingVictim{p.assignment, p.assignment.Replicas - p.replicas})
		default:
			victims = append(victims, BindingVictim{Assignment: p.assignment})
		}
	}
	return victims
}

// sooner is whether a row is taken before one of another cluster: the lower
// priority, and of equals what others can do without.
func sooner(x, y *bindingRow) bool {
	return x.priority < y.priority || x.priority == y.priority && x.part != minimum && y.part == minimum
}

// cut makes of a surplus what the binding can do without beside what was taken off
// it elsewhere, and of a minimum all that is left then.
func (s *several) cut(p *pick, taken []pick) {
	a := p.assignment
	switch p.part {
	case surplus:
		victim := s.snap.Binding(a.Binding)
		if !victim.Duplicated { // else each cluster has a minimum of its own
			p.replicas = min(p.replicas, max(0, s.spare(a, victim)-s.spared[a.Binding]))
			s.spared[a.Binding] += p.replicas
		}
		p.vec = replicasOf(a, p.replicas)
	case minimum:
		p.replicas, p.vec = a.Replicas, a.Vec
		for i := range taken {
			if taken[i].assignment == a {
				p.replicas -= taken[i].replicas
				p.vec.Sub(&taken[i].vec)
			}
		}
	}
}

// spareSome gives back what is not needed, the last first.
func (s *several) spareSome(taken []pick) []pick {
	for k := len(taken) - 1; k >= 0; k-- {
		p := &taken[k]
		if p.part == surplus && goesOn(taken, p.assignment) {
			continue
		}
		room := &s.room[p.at]
		if room.Sub(&p.vec); s.enough(s.room) {
			taken = slices.Delete(taken, k, k+1)
			continue
		}
		room.Add(&p.vec)
		if p.part == surplus {
			s.keepSomeOf(p, room)
		}
	}
	return taken
}

// goesOn is goesWhole for picks on several clusters.
func goesOn(taken []pick, a *model.Assignment) bool {
	return slices.ContainsFunc(taken, func(p pick) bool { return p.part == minimum && p.assignment == a })
}

// keepSomeOf gives back as many replicas of a surplus as are not needed.
func (s *several) keepSomeOf(p *pick, room *model.Vector) {
	one := replicasOf(p.assignment, 1)
	for p.replicas > 1 {
		if room.Sub(&one); !s.enough(s.room) {
			room.Add(&one)
			return
		}
		p.replicas--
		p.vec.Sub(&one)
	}
}

package gang

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
	"github.com/cede-scheduler/cede/core/state"
)

// Groups that must be co-located share a topology domain, such as a rack. The best node for
// the first instance does not indicate which domain has capacity for all of them, nor where
// the victims of all of them are the cheapest ones. So domains come first: each gets a price,
// which is a lower bound by the policy's own tiers, and is searched in the order of prices.
// Of the results the policy chooses: each is one option to it. If the policy declares that
// prices bound its tiers (Info.Monotone), the search ends once no price is below the best
// result.

// Bounds of a domain search. Domains with too little capacity do not count.
const (
	maxDomains    = 64
	maxPlacements = 256 // of instances, once some domain holds all of them
)

// A way is a successful attempt to place the gang.
type way struct {
	preempt.Joint
	// The evaluation after the attempt.
	plan     *proposal.Plan
	state    proposal.StateMark
	unplaced placement.Unplaced
	domains  map[*model.Group]*feasible.Domain // of its groups
}

// A domainSearch places groups level by level, each in a domain within that of the level
// before, and all groups once every level has a domain.
type domainSearch struct {
	*gang
	levels  []topology.Level // the coarsest first
	pricer  topology.Pricer
	domains map[*model.Group]*feasible.Domain
	// first is the group about which the policy is called.
	first    *model.Group
	monotone bool

	bounds     []preempt.Bound // scratch of boundsOf
	best       *way            // the cheapest so far; nil: none
	tried      int             // domains
	placements int
	placed     bool // without evictions, so that nothing can be cheaper
	fits       bool // some domain holds all instances by their amounts
	cut        bool // a bound was reached
}

// placeInDomains places the gang with its levels limited to domains. If it returns
// exhaustive, no other placement exists either.
func (g *gang) placeInDomains(levels []topology.Level) (placed, exhaustive bool, err error) {
	g.rollback()
	g.short = &shortage{depth: -1}
	s := &domainSearch{gang: g, levels: levels, domains: map[*model.Group]*feasible.Domain{}}
	s.prepare()
	if err := s.search(0, nil); err != nil || s.placed {
		return s.placed, true, err
	}
	if s.best == nil {
		g.short.cut = s.cut
		// An allocation that is replaced may be the only reason for a domain.
		return false, !s.cut && len(s.pricer.Stopped) == 0 && (!s.fits || g.greedyIsComplete(levels)), nil
	}
	s.best.reinstate(g)
	return true, true, g.revise(s.best.domains)
}

// prepare sets up the pricer, and the levels: coarse ones have fewer domains.
func (s *domainSearch) prepare() {
	e := s.e
	// Invariant: every attempt starts from this snapshot, so that prices hold for all of them.
	s.pricer = topology.Pricer{
		Snap: e.State.Freeze(), Ceiling: placement.ReclaimCeiling(e), Stopped: map[string]bool{}, Workers: placement.Workers(e),
	}
	for _, list := range s.missing {
		for i := range list {
			if a := list[i].Replaces; a != nil {
				s.pricer.Stopped[a.ID] = true
			}
		}
	}
	s.first = s.order[slices.IndexFunc(s.order, s.isMissing)]
	s.monotone, s.pricer.ListRows = e.Policy.ChooserInfo()
	if len(s.levels) > 1 {
		number := map[string]int{}
		for _, l := range s.levels {
			number[l.Key] = len(topology.Partition(s.pricer.Snap, l.Key, nil, e.NodesInOrder()))
		}
		slices.SortStableFunc(s.levels, func(a, b topology.Level) int { return cmp.Compare(number[a.Key], number[b.Key]) })
	}
}

// isMissing reports whether instances of a group are to be placed.
func (g *gang) isMissing(group *model.Group) bool { return len(g.missing[group.Position]) > 0 }

// A candidate is a domain that a level may use.
type candidate struct {
	*feasible.Domain
	topology.Price
	score float64 // of its best node
	rank  int     // of that node
	bound bool    // its price may be below the best way
}

// search tries the domains of a level, the cheapest first. outer is the price of the levels
// before; nil: none.
func (s *domainSearch) search(level int, outer *topology.Price) error {
	if level == len(s.levels) {
		return s.attempt()
	}
	l := &s.levels[level]
	before := s.narrowest(l)
	list := s.candidates(level, before, outer)
	if err := s.sort(l, list); err != nil {
		return err
	}
	defer s.restrict(l, before)
	var checked *way // the best way when bounds were compared last
	for i := range list {
		if s.best != nil && s.best != checked {
			if err := s.compareBounds(list[i:]); err != nil {
				return err
			}
			checked = s.best
		}
		if s.best != nil && !list[i].bound {
			continue
		}
		if s.tried >= maxDomains || s.best != nil && s.placements >= maxPlacements {
			s.cut = true
			return nil
		}
		s.restrict(l, list[i].Domain)
		if err := s.search(level+1, &list[i].Price); err != nil || s.placed {
			return err
		}
	}
	return nil
}

// narrowest returns the domain to which some group of a level is limited already.
func (s *domainSearch) narrowest(l *topology.Level) *feasible.Domain {
	for _, group := range l.Groups {
		if d := s.domains[group]; d != nil {
			return d
		}
	}
	return nil
}

// restrict limits the groups of a level to a domain; nil: to none.
func (s *domainSearch) restrict(l *topology.Level, d *feasible.Domain) {
	for _, group := range l.Groups {
		s.domains[group] = d
	}
}

// candidates returns the domains of a level that have enough capacity, with their prices, in
// tie order.
func (s *domainSearch) candidates(level int, within *feasible.Domain, outer *topology.Price) []candidate {
	l := &s.levels[level]
	all := topology.Partition(s.pricer.Snap, l.Key, within, s.e.NodesInOrder())
	domains, list := make([]*feasible.Domain, 0, len(all)), make([]candidate, 0, len(all))
	for rank, d := range all {
		if l.Value == "" || l.Value == d.Value {
			domains = append(domains, d)
			list = append(list, candidate{Domain: d, rank: rank, Price: topology.Price{Fits: true}})
		}
	}
	prices := make([][]topology.Price, len(l.Groups))
	// Each group is priced by itself. Together they may need more, but never less.
	for k, group := range l.Groups {
		prices[k] = s.pricer.Prices(len(s.missing[group.Position]), group, domains)
		for i := range list {
			if c := &list[i]; k == 0 {
				c.Price = prices[k][i]
			} else {
				c.Join(&prices[k][i])
			}
		}
	}
	s.short.examine(s.levels, level, domains, prices)
	list = slices.DeleteFunc(list, func(c candidate) bool { return !c.Fits || c.Least.Pos < 0 })
	for i := range list {
		if outer != nil {
			list[i].Join(outer)
		}
	}
	s.fits = s.fits || len(list) > 0
	return list
}

// sort sorts candidates by price. Without evictions, all prices are equal, and the domain of the
// best node comes first.
func (s *domainSearch) sort(l *topology.Level, list []candidate) error {
	if len(list) < 2 {
		return nil
	}
	if !s.e.Preemption.Allowed {
		s.scoreNodes(l, list)
		slices.SortStableFunc(list, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.rank, b.rank))
		})
		return nil
	}
	c, err := s.e.Compare(s.first, s.waitingSince(s.first), nil, s.boundsOf(list))
	if err != nil {
		return err
	}
	order := make([]int, len(list)) // positions of the lower bound of each
	for i := range order {
		if order[i] = 2 * i; s.monotone && c.Cheaper(2*i+1, 2*i) {
			order[i]++
		}
	}
	less := c.Cheaper
	if !s.monotone {
		less = c.Better // an estimate: the score counts as well
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case less(i, j):
			return -1
		case less(j, i):
			return 1
		}
		return 0
	})
	unsorted := slices.Clone(list)
	for k, i := range order {
		list[k] = unsorted[i/2]
	}
	return nil
}

// boundsOf returns the two bounds of each candidate. They are valid until the next call.
func (s *domainSearch) boundsOf(list []candidate) []preempt.Bound {
	s.bounds = slices.Grow(s.bounds[:0], 2*len(list))
	for i := range list {
		s.bounds = append(s.bounds, list[i].Least, list[i].Above)
	}
	return s.bounds
}

// scoreNodes sets the score and the rank of the best node of every candidate.
func (s *domainSearch) scoreNodes(l *topology.Level, list []candidate) {
	at := max(0, slices.IndexFunc(l.Groups, s.isMissing))
	p := s.e.NewUncachedPlacer(l.Groups[at])
	defer p.Close()
	for i := range list {
		c := &list[i]
		c.score, c.rank = math.Inf(-1), math.MaxInt
		for _, span := range c.Spans {
			for k := range state.ChunkSize {
				if span.Nodes>>k&1 == 0 {
					continue
				}
				r := int(p.Ranker.Order.RankOf[span.Chunk*state.ChunkSize+k])
				if p.Ranker.Status(r) != rank.Fits {
					continue
				}
				if score := p.Ranker.Score(r); score > c.score || score == c.score && r < c.rank {
					c.score, c.rank = score, r
				}
			}
		}
	}
}

// compareBounds sets which of the candidates may be cheaper than the best way. If the policy
// does not declare that prices bound its tiers, all of them may.
func (s *domainSearch) compareBounds(list []candidate) error {
	for i := range list {
		list[i].bound = !s.monotone
	}
	if !s.monotone {
		return nil
	}
	c, err := s.e.Compare(s.first, s.waitingSince(s.first), []preempt.Joint{s.best.Joint}, s.boundsOf(list))
	if err != nil {
		return err
	}
	for i := range list {
		list[i].bound = c.Cheaper(1+2*i, 0) || c.Cheaper(2+2*i, 0)
	}
	return nil
}

// attempt places all groups in the domains at hand, and keeps the way if it is the best one.
func (s *domainSearch) attempt() error {
	s.tried++ // also if it fails, because a failure costs as much
	if err := s.placeWithin(s.domains); err != nil {
		return err
	}
	if !s.e.Unplaced.IsEmpty() {
		s.short.attempt(s.gang)
		s.rollback()
		return nil
	}
	for _, list := range s.missing {
		s.placements += len(list)
	}
	if s.placed = !s.evicts(); s.placed {
		return nil
	}
	w := s.takeWay()
	w.domains = maps.Clone(s.domains)
	if s.best != nil {
		c, err := s.e.Compare(s.first, s.waitingSince(s.first), []preempt.Joint{s.best.Joint, w.Joint}, nil)
		if err != nil || !c.Better(1, 0) {
			return err
		}
	}
	s.best = w
	return nil
}

// placeWithin places the groups in order, with some of them limited to domains.
func (g *gang) placeWithin(domains map[*model.Group]*feasible.Domain) error {
	return g.e.Within(domains, g.placeGroups)
}

// evicts reports whether the gang as it is placed evicts anything.
func (g *gang) evicts() bool {
	group := g.e.Plan.GroupAt(g.start.plan)
	return group != nil && len(group.Evictions) > 0
}

// takeWay returns the way in which the gang is placed, and takes the gang back.
func (g *gang) takeWay() *way {
	g.reprieveVictims()
	e := g.e
	w := &way{plan: e.Plan.Clone(), state: e.State.Mark(), unplaced: e.Unplaced}
	group := e.Plan.GroupAt(g.start.plan)
	w.Placed = slices.DeleteFunc(slices.Clone(group.Placements), func(a *model.Allocation) bool { return a.MovedFrom != "" })
	for i := range group.Evictions {
		w.Victims = append(w.Victims, e.State.Base.Alloc(group.Evictions[i].AllocID))
	}
	g.rollback()
	return w
}

// reinstate returns the evaluation to the end of the attempt.
func (w *way) reinstate(g *gang) {
	*g.e.Plan, g.e.Unplaced = *w.plan, w.unplaced
	g.e.State.Rollback(w.state)
	g.recount()
}

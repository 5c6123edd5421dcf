package gang

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
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
	maxPricings   = 64  // of all domains of a level
)

// A way is a successful attempt to place the gang.
type way struct {
	preempt.Joint
	key prune.Key // its tiers, if the policy declares Info.Monotone
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
	// limit is the highest priority of a victim with which a way may be cheaper than limited, the best
	// way when it was found.
	limit   int64
	limited *way

	// unpriced counts the domains that each level may still price, if there are several levels.
	// Prices of independent levels multiply: without a limit, a few levels would be priced once for
	// each combination of domains of the levels before.
	unpriced []int

	bounds     []preempt.Bound // scratch
	best       *way            // the cheapest so far; nil: none
	tried      int             // domains
	placements int
	steps      int // of searches within domains, and the nodes that they visited
	visits     int
	placed     bool // without evictions, so that nothing can be cheaper
	fits       bool // some domain holds all instances by their amounts
	cut        bool // a bound was reached
	infeasible bool // some level has no domain, whatever the domains of the others are
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
	monotone, read := e.Policy.ChooserInfo()
	s.monotone, s.pricer.Now = monotone, e.Now
	s.pricer.LostWork = monotone && read.Has(sdk.LostWorkColumn)
	switch {
	case !read.Has(sdk.VictimColumns):
	case monotone:
		s.pricer.Lists, s.pricer.Annotations = topology.Coarse, read.Has(sdk.AnnotationColumns)
	default:
		s.pricer.ListRows = true
	}
	if len(s.levels) > 1 {
		number := map[string]int{}
		for _, l := range s.levels {
			number[l.Key] = len(topology.Partition(s.pricer.Snap, l.Key, nil, e.NodesInOrder()))
		}
		slices.SortStableFunc(s.levels, func(a, b topology.Level) int { return cmp.Compare(number[a.Key], number[b.Key]) })
		for _, l := range s.levels {
			s.unpriced = append(s.unpriced, maxPricings*max(1, number[l.Key])) // a key that no node has is searched once
		}
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
	// key is the lower one of the tiers of its bounds, if the policy declares Info.Monotone.
	key  prune.Key
	fine bool // its price was refined
}

// mayBeat reports whether a candidate may have a cheaper way than the best one. If the policy does not
// declare that prices bound its tiers, all of them may.
func (s *domainSearch) mayBeat(c *candidate) bool {
	return s.best == nil || !s.monotone || c.key.Less(&s.best.key)
}

// search tries the domains of a level, the cheapest first. outer is the price of the levels
// before; nil: none.
func (s *domainSearch) search(level int, outer *topology.Price) error {
	if level == len(s.levels) {
		return s.attempt()
	}
	l := &s.levels[level]
	before := s.narrowest(l)
	if s.unpriced != nil && s.unpriced[level] <= 0 {
		s.cut = true
		return nil
	}
	list := s.candidates(level, before, outer)
	if len(list) == 0 {
		s.infeasible = before == nil
		return nil
	}
	if err := s.sort(l, list); err != nil {
		return err
	}
	defer s.restrict(l, before)
	for i := range list {
		if s.best != nil && s.pricer.Lists != topology.NoLists && !list[i].fine && s.mayBeat(&list[i]) {
			if err := s.refine(level, outer, list[i:]); err != nil {
				return err
			}
		}
		if !s.mayBeat(&list[i]) {
			continue
		}
		if s.tried >= maxDomains || s.best != nil && s.placements >= maxPlacements {
			s.cut = true
			return nil
		}
		s.restrict(l, list[i].Domain)
		if err := s.search(level+1, &list[i].Price); err != nil || s.placed || s.infeasible {
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
	if s.unpriced != nil {
		s.unpriced[level] -= len(domains)
	}
	total, prices := s.price(l, &s.pricer, domains)
	for i := range list {
		list[i].Price = total[i]
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

// price returns the prices of some domains for all groups of a level, and by group. Each group is
// priced by itself. Together they may need more, but never less.
func (s *domainSearch) price(l *topology.Level, pricer *topology.Pricer, domains []*feasible.Domain) (total []topology.Price, each [][]topology.Price) {
	each = make([][]topology.Price, len(l.Groups))
	for k, group := range l.Groups {
		each[k] = pricer.Prices(len(s.missing[group.Position]), group, domains)
		if k == 0 {
			if total = each[k]; len(l.Groups) > 1 {
				total = slices.Clone(total)
			}
			continue
		}
		for i := range total {
			total[i].Join(&each[k][i])
		}
	}
	return total, each
}

// sort sorts candidates by price. Without evictions, all prices are equal, and the domain of the
// best node comes first.
func (s *domainSearch) sort(l *topology.Level, list []candidate) error {
	if !s.e.Preemption.Allowed {
		if len(list) > 1 {
			s.scoreNodes(l, list)
		}
		slices.SortStableFunc(list, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.rank, b.rank))
		})
		return nil
	}
	if len(list) < 2 && s.best == nil {
		return nil // its bounds exclude nothing
	}
	if s.monotone {
		if err := s.setKeys(list); err != nil {
			return err
		}
		reorder(list, func(i, j int) int { return slices.Compare(list[i].key[:], list[j].key[:]) })
		return nil
	}
	// The order is an estimate, to which the score counts as well.
	s.bounds = s.bounds[:0]
	for i := range list {
		s.bounds = append(s.bounds, list[i].Least)
	}
	c, err := s.e.Compare(s.first, s.waitingSince(s.first), nil, s.bounds)
	if err != nil {
		return err
	}
	reorder(list, func(i, j int) int {
		switch {
		case c.Better(i, j):
			return -1
		case c.Better(j, i):
			return 1
		}
		return 0
	})
	return nil
}

// reorder sorts candidates, which are large, by their positions.
func reorder(list []candidate, compare func(i, j int) int) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	unsorted := slices.Clone(list)
	for k, i := range order {
		list[k] = unsorted[i]
	}
}

// setKeys calls the policy about the bounds of candidates.
func (s *domainSearch) setKeys(list []candidate) error {
	s.bounds = slices.Grow(s.bounds[:0], 2*len(list))
	for i := range list {
		s.bounds = append(s.bounds, list[i].Least, list[i].Above)
	}
	c, err := s.e.Compare(s.first, s.waitingSince(s.first), nil, s.bounds)
	if err != nil {
		return err
	}
	for i := range list {
		least, above := c.Key(2*i), c.Key(2*i+1)
		if list[i].key = least; above.Less(&least) {
			list[i].key = above
		}
	}
	return nil
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

// refined is the number of candidates that are refined at a time, so that goroutines share them.
const refined = 8

// refine replaces the prices of the next candidates that may be cheaper than the best way by closer
// ones. They hold for all ways without victims above the limit of the best way: others are not
// cheaper than it. Refining a candidate takes a small part of the time that an attempt takes, and the
// prices of all candidates together would take longer than an attempt.
func (s *domainSearch) refine(level int, outer *topology.Price, list []candidate) error {
	if err := s.findLimit(); err != nil {
		return err
	}
	var at []int
	var domains []*feasible.Domain
	for i := range list {
		if c := &list[i]; !c.fine && len(at) < refined && s.mayBeat(c) {
			at, domains = append(at, i), append(domains, c.Domain)
		}
	}
	pricer := s.pricer
	pricer.Ceiling, pricer.Lists = min(pricer.Ceiling, s.limit), topology.Fine
	prices, _ := s.price(&s.levels[level], &pricer, domains)
	closer := make([]candidate, 0, len(at))
	for k, i := range at {
		c := &list[i]
		if c.fine = true; !prices[k].Fits {
			c.key = prune.HighestKey
			continue
		}
		if c.Price = prices[k]; outer != nil {
			c.Join(outer)
		}
		closer = append(closer, *c)
	}
	if len(closer) == 0 {
		return nil
	}
	err := s.setKeys(closer)
	for _, i := range at {
		if c := &list[i]; c.key != prune.HighestKey {
			c.key, closer = closer[0].key, closer[1:]
		}
	}
	return err
}

// maxProbes is at most the number of priorities of a call about them.
const maxProbes = 64

// findLimit finds the limit of the best way. It calls the policy about single victims that lose
// nothing: a way with a victim of at least that priority has at least the same tiers.
func (s *domainSearch) findLimit() error {
	if s.limited == s.best {
		return nil
	}
	low := int64(math.MinInt32)
	for _, v := range s.best.Victims {
		low = max(low, int64(v.Job.Priority))
	}
	pos := s.best.Placed[0].NodePos
	high := min(s.pricer.Ceiling, math.MaxInt32) + 1
	for high-low > 1 {
		var probes []preempt.Bound
		step := (high - low + maxProbes - 1) / maxProbes
		for p := low + step; p < high; p += step {
			probes = append(probes, preempt.Bound{
				Pos: pos, Highest: int32(p), Victims: 1, PrioritySum: p, Lists: [][]preempt.LeastVictim{{{Priority: int32(p), Count: 1}}},
			})
		}
		c, err := s.e.Compare(s.first, s.waitingSince(s.first), nil, probes)
		if err != nil {
			return err
		}
		for i := range probes {
			p := int64(probes[i].Highest)
			if key := c.Key(i); !key.Less(&s.best.key) {
				high = p
				break
			}
			low = p
		}
	}
	s.limit, s.limited = low, s.best
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
		if placed, err := s.searchWithin(); err != nil || !placed {
			return err
		}
	}
	for _, list := range s.missing {
		s.placements += len(list)
	}
	if s.placed = !s.evicts(); s.placed {
		return nil
	}
	w := s.takeWay()
	w.domains = maps.Clone(s.domains)
	switch {
	case s.monotone:
		// Scores of domains that bounds exclude are not compared, so that those of others are not either:
		// of domains with equal tiers the first one wins.
		c, err := s.e.Compare(s.first, s.waitingSince(s.first), []preempt.Joint{w.Joint}, nil)
		if err != nil {
			return err
		}
		if w.key = c.Key(0); s.best != nil && !w.key.Less(&s.best.key) {
			return nil
		}
	case s.best != nil:
		c, err := s.e.Compare(s.first, s.waitingSince(s.first), []preempt.Joint{s.best.Joint, w.Joint}, nil)
		if err != nil || !c.Better(1, 0) {
			return err
		}
	}
	s.best = w
	return nil
}

// searchWithin searches the domains at hand for nodes for all instances of a small gang, after
// these were not all placed one after another: small instances may use the capacity of every
// node that suffices for a large one that must follow them, each where its own victims are the
// cheapest. If it returns false, nothing is placed.
//
// All searches together have the bounds of one. Each has a share of them, so that a domain in which
// capacity is divided too finely for the gang does not use the steps of those that follow.
func (s *domainSearch) searchWithin() (placed bool, err error) {
	instances, groups := 0, 0
	for _, list := range s.missing {
		instances += len(list)
		groups += min(1, len(list))
	}
	// Invariant: the greedy attempt is incomplete if the gang has several groups.
	if groups < 2 || instances > maxExchanged || s.gang.infeasible || s.steps >= maxSteps {
		return false, nil
	}
	search := newSearch(s.gang)
	search.maxSteps, search.maxVisits = min(maxStepsWithin, maxSteps-s.steps), maxNodeVisits-s.visits
	for i := range search.wanted {
		if w := &search.wanted[i]; s.domains[w.group] != nil {
			w.nodes = s.domains[w.group].NodeCount()
		}
	}
	err = s.e.Within(s.domains, func() (err error) {
		placed, err = search.find(0)
		return err
	})
	s.steps, s.visits = s.steps+search.steps, s.visits+search.visits
	if !placed || err != nil {
		s.rollback()
		return false, err
	}
	search.write()
	return true, nil
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

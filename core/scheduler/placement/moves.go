package placement

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// Free capacity is often scattered: no node can take an instance, although the cluster could
// if something small ran elsewhere. Trying every arrangement is a bin-packing problem. So the
// search moves few instances for each placement, on the nodes that lack the least, and takes
// the set of instances that loses the least work. Nothing is moved to make room for a move.
//
// The policy does not choose what is moved. What limits moves is in state.MoveObstacle. Moves are
// compared with the evictions that the policy chooses, since both lose work: see reclaimCost.

// Bounds of a search: some milliseconds for an evaluation on a large cluster.
const (
	maxMoved          = 3   // instances that are moved for one placement
	maxMoveNodes      = 16  // nodes that lack the least
	maxMoveCandidates = 12  // instances of such a node
	maxMoveTries      = 256 // sets for which nodes are searched, in an evaluation
)

// moveMargin is how many times the work that is lost a placement must gain that would only have
// waited otherwise (ADR 0075). What it gains is an upper bound: other work might have used the
// capacity meanwhile, and some might have ended earlier elsewhere.
const moveMargin = 16

// A moveSearch looks for moves that make room for one instance.
type moveSearch struct {
	*Placer
	rate    *model.Rate
	largest model.Vector
	hosts   map[*model.Group]hosts
	left    map[model.JobKey]int // moves that a job allows
	// stuck holds instances that found no node, by the node that they were to leave.
	stuck map[stuckGroup]bool
}

// hosts lists the first two nodes on which the columns cover one more instance of a group.
// Two suffice to know whether there is one besides a given node.
type hosts [2]int32

type stuckGroup struct {
	pos   int32
	group *model.Group
}

// A moveSite is a node that lacks capacity for the instance.
type moveSite struct {
	pos  int32
	rank int32
	lack float64 // dominant share of what is missing
}

// A moveSet is a set of instances of one node without which the instance fits there. No
// subset suffices.
type moveSet struct {
	site   moveSite
	allocs []*model.Allocation
	cost   reclaimCost
	size   float64 // sum of dominant shares
}

// chooseMoves returns the cheapest node for an instance on which moves make room for it, and
// these moves.
func (p *Placer) chooseMoves(m reconcile.Missing) (found, bool) {
	e := p.e
	if !e.Moves.Allowed() || p.local {
		return found{}, false
	}
	s := &moveSearch{
		Placer: p, rate: e.Moves.rate, largest: LargestNode(e.State.Base),
		hosts: map[*model.Group]hosts{}, left: map[model.JobKey]int{}, stuck: map[stuckGroup]bool{},
	}
	var sets []moveSet
	for _, site := range s.sites() {
		sets = append(sets, s.sets(site, m)...)
	}
	slices.SortStableFunc(sets, func(a, b moveSet) int {
		return cmp.Or(a.cost.compare(b.cost), cmp.Compare(a.size, b.size),
			cmp.Compare(len(a.allocs), len(b.allocs)), cmp.Compare(a.site.rank, b.site.rank))
	})
	for i := range sets {
		// An instance that found no node when it was the first of its set to look for one
		// finds none as a member of another set of this node either: the others of that set
		// only take nodes away.
		if slices.ContainsFunc(sets[i].allocs, func(a *model.Allocation) bool { return s.stuck[stuckGroup{sets[i].site.pos, a.Group}] }) {
			continue
		}
		if e.Moves.tries++; e.Moves.tries > maxMoveTries {
			if e.Moves.tries == maxMoveTries+1 {
				e.Unplaced.SearchesCut++
			}
			break
		}
		if f, ok := s.try(&sets[i], m); ok {
			return f, true
		}
	}
	return found{}, false
}

// MoveUse states whether an evaluation may move instances, and counts what it does.
type MoveUse struct {
	// rate is how many instances of one job may be moved; nil: none.
	rate *model.Rate
	// moved holds the IDs of the allocations that moves placed, also of those that were
	// taken back.
	moved []string
	tries int // sets of instances for which nodes were searched
}

// Allowed reports whether instances of other jobs may be moved to make room.
func (u *MoveUse) Allowed() bool { return u.rate != nil }

// Proposed returns the number of moves that were proposed, also of those that were taken back.
func (u *MoveUse) Proposed() int { return len(u.moved) }

// apply proposes moves. Their instances are no candidates for eviction until the plan is
// committed: an eviction of an allocation that does not exist yet would never be.
func (u *MoveUse) apply(s *proposal.State, moves []proposal.Move) {
	if len(moves) == 0 {
		return
	}
	to := make([]*model.Allocation, len(moves))
	for i := range moves {
		to[i] = moves[i].To
		u.moved = append(u.moved, to[i].ID)
	}
	s.Vacate(proposal.Moved(moves))
	s.Apply(to, nil, model.DesiredEvict)
}

// exclude adds the allocations that the plan moves to exclusions.
func (u *MoveUse) exclude(s *proposal.State, excluded Exclusions) Exclusions {
	if len(u.moved) == 0 {
		return excluded
	}
	all := maps.Clone(excluded)
	for _, id := range u.moved {
		if a := s.Snapshot().Alloc(id); a != nil { // nil: it was taken back
			if all == nil {
				all = Exclusions{}
			}
			all[a] = true
		}
	}
	return all
}

// ReclaimCeiling returns the highest priority that an evaluation may evict or move.
func ReclaimCeiling(e *Evaluation) int64 {
	if !e.Moves.Allowed() {
		return e.Preemption.Ceiling
	}
	return max(e.Preemption.Ceiling, int64(e.Job.Priority))
}

// MoveRate returns how many instances of one job may be moved to make room for a job, or nil
// if none may be. A job that never preempts has nothing restarted for it either.
func MoveRate(snap *state.Snapshot, job *model.Job) *model.Rate {
	rate := snap.Config().Moves
	if rate == nil || job.NeverPreempts || job.Type.PerNode() || IsHeld(snap, job) {
		return nil
	}
	return rate
}

// sites returns the nodes that lack the least capacity and would have enough after moves.
func (s *moveSearch) sites() (list []moveSite) {
	snap, ask := s.e.State.Snapshot(), &s.group.Ask
	s.Ranker.EachLacking(s.e.Job.Priority, func(pos int32) {
		// An upper bound: some of these instances may not be moved, and the columns do not
		// contain ports and devices. The exact test follows for the few nodes that remain.
		most := FreeableCapacity(snap, pos, int64(s.e.Job.Priority))
		chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		missing := model.Ask{Dims: ask.Dims}
		for _, d := range ask.Dims {
			if most[d] < ask.Vec[d] {
				return
			}
			missing.Vec[d] = max(0, ask.Vec[d]-chunk.Free(int(d))[i])
		}
		list = append(list, moveSite{pos, s.Ranker.Order.RankOf[pos], DominantShare(&missing, &s.largest)})
	})
	slices.SortFunc(list, func(a, b moveSite) int { return cmp.Or(cmp.Compare(a.lack, b.lack), cmp.Compare(a.rank, b.rank)) })
	return list[:min(len(list), maxMoveNodes)]
}

// sets returns the minimal sets of instances of a node without which the instance fits there,
// and that are worth moving.
func (s *moveSearch) sets(site moveSite, m reconcile.Missing) (list []moveSet) {
	candidates := s.candidates(site.pos)
	room := s.room(site.pos)
	members := make([]*model.Allocation, 0, maxMoved)
	// Sets grow in the order of candidates, so that each is visited once. A set that
	// suffices is not extended: a superset would move more for the same placement.
	var extend func(from int)
	extend = func(from int) {
		for i := from; i < len(candidates); i++ {
			members = append(members, candidates[i])
			if room.covers(&s.group.Ask, members) {
				if x := s.weigh(site, members); room.isMinimal(&s.group.Ask, members) && s.pays(&x, m) {
					list = append(list, x)
				}
			} else if len(members) < maxMoved {
				extend(i + 1)
			}
			members = members[:len(members)-1]
		}
	}
	extend(0)
	return list
}

// candidates returns the instances of a node that may be moved and fit on another one by the
// columns, the cheapest first.
func (s *moveSearch) candidates(pos int32) (list []*model.Allocation) {
	snap := s.e.State.Snapshot()
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	// Rows ascend by priority, so that the limit on the list leaves out the least suitable
	// ones. Four times the candidates are collected because the cheapest among them are not
	// known before they are weighed.
	for _, row := range chunk.Rows(i) {
		a := row.Alloc
		switch {
		case row.Priority > s.e.Job.Priority || len(list) == 4*maxMoveCandidates:
		case a.Job.Key() == s.e.Eval.JobKey(), s.e.State.Base.Alloc(a.ID) == nil: // placed by this plan
		case s.isColocationTarget(a):
		case s.isHosted(a.Group, pos) && snap.MoveObstacle(a, s.e.Job.Priority, s.e.Now) == "" && s.movesLeft(a.Job.Key()) > 0:
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		x, y := s.weigh(moveSite{}, []*model.Allocation{a}), s.weigh(moveSite{}, []*model.Allocation{b})
		return cmp.Or(x.cost.compare(y.cost), cmp.Compare(x.size, y.size), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), maxMoveCandidates)]
}

// isColocationTarget reports whether the job that needs room must run near an instance. An
// instance of the job that the plan has placed may rely on it.
func (s *moveSearch) isColocationTarget(a *model.Allocation) bool {
	return a.Job.Namespace == s.e.Job.Namespace && slices.ContainsFunc(s.e.Job.Groups, func(g *model.Group) bool {
		return slices.ContainsFunc(g.Colocate, func(t model.LabelTerm) bool { return t.Matches(a.Group.Labels) })
	})
}

// movesLeft returns how many more instances of a job may be moved now.
func (s *moveSearch) movesLeft(key model.JobKey) int {
	n, ok := s.left[key]
	if !ok {
		n = int(s.rate.Number) - s.e.State.Snapshot().RecentMoves(key, s.e.Now, s.rate)
		s.left[key] = n
	}
	return n
}

// isHosted reports whether the columns of some node besides the one at pos cover one more
// instance of a group.
func (s *moveSearch) isHosted(g *model.Group, pos int32) bool {
	h, ok := s.hosts[g]
	if !ok {
		h = findHosts(s.e.State.Snapshot(), &g.Ask)
		s.hosts[g] = h
	}
	return h[0] >= 0 && h[0] != pos || h[1] >= 0 && h[1] != pos
}

func findHosts(snap *state.Snapshot, ask *model.Ask) hosts {
	h, n := hosts{-1, -1}, 0
	for c := range snap.ChunkCount() {
		for nodes := snap.Chunk(c).Fitting(ask); nodes != 0; nodes &= nodes - 1 {
			h[n] = int32(c*state.ChunkSize + bits.TrailingZeros64(nodes))
			if n++; n == len(h) {
				return h
			}
		}
	}
	return h
}

// weigh returns the set of some instances with its cost.
func (s *moveSearch) weigh(site moveSite, allocs []*model.Allocation) moveSet {
	x := moveSet{site: site, allocs: slices.Clone(allocs), cost: costOf(allocs, s.e.Now, &s.largest)}
	for _, a := range allocs {
		x.size += DominantShare(&a.Group.Ask, &s.largest)
	}
	return x
}

// pays reports whether the placement is worth the moves. A placement of higher priority than
// everything that is moved is, as for evictions. Otherwise more work has to be placed than is
// interrupted, and the new instance must gain more than is lost until it ends. If those in its
// way end by themselves, it gains only the time until then, and by a margin.
func (s *moveSearch) pays(x *moveSet, m reconcile.Missing) bool {
	if x.cost.priority < s.e.Job.Priority {
		return true
	}
	size := DominantShare(&s.group.Ask, &s.largest)
	if x.size >= size {
		return false
	}
	gain, margin := timeLeft(s.group, m.SavedWork), 1.0
	var until int64
	for _, a := range x.allocs {
		until = max(until, timeLeft(a.Group, a.SavedWork+a.Age(s.e.Now)))
	}
	if until < math.MaxInt64 {
		gain, margin = min(gain, until), moveMargin
	}
	return gain == math.MaxInt64 || x.cost.lost*margin < float64(size*float64(gain))
}

// timeLeft returns how long an instance of a group that has done some work runs until it ends
// by itself; math.MaxInt64: it does not.
func timeLeft(g *model.Group, done int64) int64 {
	if g.Duration == 0 {
		return math.MaxInt64
	}
	return max(0, g.Duration-done)
}

// try looks for nodes for the instances of a set, next to the new instance on their node.
// The new instance is placed first, although the moved ones could then be placed on its node
// if that had enough capacity for both: the set would not be minimal. The proposed state and
// the ranking are unchanged afterwards.
func (s *moveSearch) try(x *moveSet, m reconcile.Missing) (found, bool) {
	e, before := s.e, s.e.State.Freeze()
	defer func() {
		e.State.Restore(before)
		s.Ranker.Update(x.site.pos)
	}()
	e.State.Vacate(x.allocs)
	// The ranker decides with the same tests as for free capacity: rules, claims, ports and
	// devices. A set that suffices by amounts may fail here.
	s.Ranker.Update(x.site.pos)
	if s.Ranker.Status(int(x.site.rank)) != rank.Fits {
		return found{}, false // ports, devices or claims
	}
	device, _ := s.Ranker.Device(x.site.pos, e.State.Snapshot().NodeAt(x.site.pos))
	f := found{Choice: preempt.Choice{Pos: x.site.pos, Device: device, Score: s.Ranker.Score(int(x.site.rank))}}
	e.State.Apply([]*model.Allocation{e.NewAllocation(s.group, m, f.Choice)}, nil, model.DesiredEvict)
	// The largest one first: small instances fit next to large ones more easily.
	order := slices.Clone(x.allocs)
	slices.SortStableFunc(order, func(a, b *model.Allocation) int {
		return cmp.Compare(DominantShare(&b.Group.Ask, &s.largest), DominantShare(&a.Group.Ask, &s.largest))
	})
	for i, from := range order {
		// Budgets and limits are compared with the state before the set: the proposed one
		// shows the disruptions of the whole set already.
		if !s.mayMoveAll(before, order[:i+1]) {
			return found{}, false
		}
		to := placeElsewhere(e, from)
		if to == nil || to.NodePos == x.site.pos {
			if i == 0 {
				s.stuck[stuckGroup{x.site.pos, from.Group}] = true
			}
			return found{}, false
		}
		e.State.Apply([]*model.Allocation{to}, nil, model.DesiredEvict)
		f.moves = append(f.moves, proposal.Move{From: from, To: to})
	}
	return f, true
}

// mayMoveAll reports whether budgets and limits of jobs allow to move several instances
// together. Each by itself may be moved.
func (s *moveSearch) mayMoveAll(before *state.Snapshot, allocs []*model.Allocation) bool {
	last := allocs[len(allocs)-1]
	jobs := 0
	for _, a := range allocs {
		if a.Job == last.Job {
			jobs++
		}
	}
	if jobs > s.movesLeft(last.Job.Key()) {
		return false
	}
	return permitsLast(before, allocs, s.e.Now)
}

// permitsLast reports whether the budgets of the last of some allocations permit to disrupt all
// of them.
func permitsLast(snap *state.Snapshot, allocs []*model.Allocation, now int64) bool {
	for _, at := range snap.GroupBudgets(allocs[len(allocs)-1].Group) {
		used := 0
		for _, a := range allocs {
			if a.Available() && slices.Contains(snap.GroupBudgets(a.Group), at) {
				used++
			}
		}
		if used > max(0, snap.DisruptionsAllowed(at, now)) {
			return false
		}
	}
	return true
}

// placeElsewhere returns a new allocation for an instance of another job that is moved, on its
// best node in the proposed state without evictions, or nil if there is none.
func placeElsewhere(e *Evaluation, from *model.Allocation) *model.Allocation {
	if e.ws.mover == nil {
		// The memory of the workspace is in use for the group that needs room.
		o := e.ws.Options
		e.ws.mover = NewWorkspace(Options{NewID: o.NewID, TieOrder: o.TieOrder, NoFailureCache: true})
	}
	snap, job := e.State.Freeze(), from.Job
	own := &model.Evaluation{ID: e.Eval.ID, Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority}
	x, err := NewEvaluation(e.ws.mover, e.Policy.Set, own, snap, e.Now)
	if err != nil {
		return nil // its policy is not loaded
	}
	x.ForbidPreemption()
	allocs := snap.AppendJobAllocs(nil, job.Key())
	x.Begin(feasible.GroupAllocs(nil, job, allocs))
	defer x.Close()
	checker := x.NodeChecker(from.Group)
	checker.ToStay = true // nothing evaluates its job when the time of a toleration ends
	p := x.newPlacer(from.Group, checker, feasible.NewRules(x.Rules, from.Group), 0)
	pos, score, ok := p.Ranker.Best()
	if !ok {
		return nil
	}
	// A replacement of a disconnected allocation may be newer than the one that is moved. IDs
	// contain the incarnation, so that it must be higher than that of either.
	incarnation := from.Incarnation
	for _, a := range allocs {
		if a.Group.Name == from.Group.Name && a.Index == from.Index {
			incarnation = max(incarnation, a.Incarnation)
		}
	}
	device, _ := p.Ranker.Device(pos, snap.NodeAt(pos))
	to := x.NewAllocation(from.Group, reconcile.Missing{
		Index: from.Index, Incarnation: incarnation + 1, SavedWork: from.RetainedWork(job, e.Now),
	}, preempt.Choice{Pos: pos, Device: device, Score: score})
	to.MovedFrom = from.ID
	return to
}

package placement

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// maxSamples is the number of nodes that an explanation names.
const maxSamples = 5

// Explain returns why no node can take one more instance of the group. It examines
// every node once, and only if something could not be placed. The result belongs
// to the caller.
func (p *Placer) Explain() *model.Explanation {
	if p.known == nil {
		p.known = p.makeExplanation()
	}
	c := *p.known
	return &c
}

// ExplainAmong restricts Explain to the given nodes. For a system job the nodes
// that have their instance are left out, with the search's outcomes about them.
func (p *Placer) ExplainAmong(nodes []int32) {
	p.among = slices.Clone(nodes)
	p.e.ws.Order.Sort(p.among)
}

func (p *Placer) makeExplanation() *model.Explanation {
	among := p.among
	if among == nil {
		among = p.e.ws.Order.ByRank
	}
	x := explainer{Placer: p, why: model.Explanation{Nodes: len(among)}}
	x.outcomes, x.searched = p.outcomes()
	if p.among == nil && p.e.State.Base.StrictBudgetCount() == 0 {
		x.countByChunk(among)
	} else {
		for _, pos := range among {
			x.explainNode(pos)
		}
	}
	x.nameCounts()
	p.e.Unplaced.addClasses(p.checker.Classes(p.e.State.Base), p.escapes())
	return &x.why
}

// escapes reports whether changes of any node class could unblock the group:
// a constraint reads node.id, capacity on one node makes another one feasible, or
// another group of a gang could free a node by using a different one.
func (p *Placer) escapes() bool {
	return p.checker.Escapes() || p.Rules.IsGlobal() || p.e.Job.AllAtOnce
}

// An explainer counts the reasons of nodes. The frequent ones are counted by number
// and named at the end, because every group that is not placed is explained over
// all nodes.
type explainer struct {
	*Placer
	why      model.Explanation
	outcomes []preempt.Outcome
	searched []int32 // nodes that outcomes are about, a subsequence of all nodes
	at       int     // position of searched[0] in the search
	byClass  []int   // infeasible nodes by class
	lacking  [model.MaxDimensions]int
	blocked  [obstacles]int
}

// explainNode counts one node's reason. Nodes must be passed in tie order.
func (x *explainer) explainNode(pos int32) {
	chunk, i := x.e.State.Snapshot().Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	outcome := preempt.NoCandidates
	for len(x.searched) > 0 && x.rankOf(x.searched[0]) < x.rankOf(pos) {
		x.next() // not among the nodes to be explained
	}
	by := (*model.Budget)(nil)
	if len(x.searched) > 0 && x.searched[0] == pos {
		if outcome = x.outcomes[0]; outcome == preempt.Protected {
			by = x.e.ws.finder.BlockingBudget(x.at)
		}
		x.next()
	}
	named := len(x.why.Samples) < maxSamples
	switch {
	case chunk.Eligible()>>i&1 == 0:
		x.countIneligible(chunk.Node(i), named)
	case !x.checker.Feasible(chunk, i):
		x.countInfeasible(chunk, i, named)
	default:
		x.countFull(chunk, i, pos, outcome, by, named)
	}
}

// next advances to the next node of the search.
func (x *explainer) next() { x.searched, x.outcomes, x.at = x.searched[1:], x.outcomes[1:], x.at+1 }

// rankOf returns the position of a node in tie order, or -1 if there is no node.
func (x *explainer) rankOf(pos int32) int32 { return x.e.ws.Order.RankOf[pos] }

// countIneligible counts a node that accepts no allocations at present.
func (x *explainer) countIneligible(n *model.Node, named bool) {
	reason := n.IneligibleReason()
	model.CountReason(&x.why.NotReady, reason, 1)
	x.sample(n, "node is "+reason, named)
}

// filter counts a node that constraints or rules exclude.
func (x *explainer) filter(n *model.Node, reason string, named bool) {
	x.why.CountFiltered(reason)
	x.sample(n, reason, named)
}

// sample names a node with its reason, if the explanation still names nodes.
func (x *explainer) sample(n *model.Node, reason string, named bool) {
	if named {
		x.why.Samples = append(x.why.Samples, model.NodeReason{NodeID: n.ID, Reason: reason})
	}
}

// countInfeasible counts a node that the group's own constraints exclude.
func (x *explainer) countInfeasible(chunk *state.Chunk, i int, named bool) {
	reason, byClass := x.checker.Reason(chunk, i)
	if !byClass {
		x.filter(chunk.Node(i), reason, named)
		return
	}
	if x.byClass == nil {
		x.byClass = make([]int, x.e.State.Base.ClassCount())
	}
	x.byClass[chunk.Class(i)]++
	x.sample(chunk.Node(i), reason, named)
}

// countFull counts a feasible node: rules exclude it, or it lacks capacity.
func (x *explainer) countFull(chunk *state.Chunk, i int, pos int32, outcome preempt.Outcome, by *model.Budget, named bool) {
	node := chunk.Node(i)
	if x.Rules != nil && !x.Rules.RanksOnly() {
		if reason := x.Rules.Violation(pos, node); reason != "" {
			switch {
			case outcome == preempt.Protected:
				model.CountReason(&x.why.Preempted, budgetReason(by), 1)
			case x.e.Preemption.Allowed && x.Rules.ExceedsMaxRemote(pos):
				model.CountReason(&x.why.Preempted, reasonMaxRemote, 1)
			}
			x.filter(node, reason, named)
			return
		}
	}
	reason := ""
	if d := firstLacking(chunk, i, &x.group.Ask); d >= 0 {
		x.lacking[d]++
		if named {
			reason = x.e.State.Snapshot().Dims().Name(d)
		}
	} else if port, held := x.hostPort(node); held {
		reason = fmt.Sprintf("port %d, which the host itself uses", port)
		x.why.CountExhausted(reason)
		x.sample(node, reason, named)
		return
	} else {
		reason = x.shortage(pos, node)
		x.why.CountExhausted(reason)
	}
	if x.e.Preemption.Allowed {
		switch o := x.obstacle(chunk, pos, outcome); o {
		case unobstructed:
		case underBudget:
			why := budgetReason(by)
			if x.cut {
				why += ", and the search for other victims was not exhaustive"
			}
			model.CountReason(&x.why.Preempted, why, 1)
			reason += "; " + why
		default:
			x.blocked[o]++
			if named {
				reason += "; " + o.describe(x.Ranker.Preemption.Ceiling)
			}
		}
	}
	x.sample(node, reason, named)
}

// firstLacking returns the first dimension that a node lacks, claims aside; -1: none.
func firstLacking(chunk *state.Chunk, i int, ask *model.Ask) int {
	for _, d := range ask.Dims {
		if chunk.Free(int(d))[i] < ask.Vec[d] {
			return int(d)
		}
	}
	return -1
}

// hostPort returns a requested port that the host itself holds, if there is one. No
// eviction frees it.
func (x *explainer) hostPort(n *model.Node) (port uint16, held bool) {
	for _, p := range x.group.Ask.Ports {
		if slices.Contains(n.Ports, p) {
			return p, true
		}
	}
	return 0, false
}

// shortage describes a shortage that is not an amount, for the first choice of its
// devices that does not fit. It is called for few nodes, since nearly all lack an
// amount.
func (x *explainer) shortage(pos int32, node *model.Node) string {
	var claims model.Vector
	snap, ask := x.e.State.Snapshot(), &x.group.Ask
	free := snap.FreeCapacityFor(pos, x.group.Job.Key(), x.group.Job.Priority, x.e.Now, &claims)
	for _, choice := range node.DeviceChoices(ask) {
		if s := model.Fits(free, ask, choice); s.Kind != model.ShortageNone {
			return s.Format(snap.Dims(), ask)
		}
	}
	return "separation from other allocations"
}

// nameCounts adds the reasons that were counted by number to the explanation. It must
// be called once, after the last node.
func (x *explainer) nameCounts() {
	for class, n := range x.byClass {
		model.CountReason(&x.why.Filtered, x.checker.ClassReason(class), n)
	}
	dims := x.e.State.Snapshot().Dims()
	for d, n := range x.lacking[:dims.Len()] {
		model.CountReason(&x.why.Exhausted, dims.Name(d), n)
	}
	for o, n := range x.blocked {
		if n > 0 { // formatting the descriptions takes longer than counting
			model.CountReason(&x.why.Preempted, obstacle(o).describe(x.Ranker.Preemption.Ceiling), n)
		}
	}
}

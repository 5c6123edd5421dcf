package scheduler

import (
	"fmt"
	"maps"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// samples is how many nodes an explanation names.
const samples = 5

// explain says why no node takes one more instance of the group: node by node,
// added up. It looks at every node once and is asked for only when something
// found no place.
func (p *placer) explain() *model.Explanation {
	if p.known != nil {
		copied := *p.known
		return &copied
	}
	among := p.among
	if among == nil {
		among = p.run.s.order.byRank
	}
	x := explainer{placer: p, why: model.Explanation{Nodes: len(among)}}
	x.outcomes, x.searched = p.outcomes()
	if p.among == nil && p.run.base.StrictBudgetCount() == 0 {
		x.countByChunk(among)
	} else {
		for _, pos := range among {
			x.node(pos)
		}
	}
	x.add()
	p.run.couldUnblock(p.feasible.classes(p.run.base), p.escapes())
	p.known = &x.why
	return p.explain()
}

// escapes is whether node classes do not tell what could unblock the group: a
// constraint reads node.id, room on one node makes another one possible, or a
// gang's other groups could leave it a node if they found another.
func (p *placer) escapes() bool {
	return len(p.feasible.escaped) > 0 || p.rules.global() || p.run.job.AllAtOnce
}

// outcomes is what the search for victims found, and on which nodes, in tie
// order.
func (p *placer) outcomes() ([]preempt.Outcome, []int32) {
	if !p.searching {
		return nil, nil
	}
	return p.run.s.finder.Outcomes()
}

// explainer counts reasons. The frequent ones are counted by number and named
// at the end: an explanation is made for every group that finds no place, over
// all nodes.
type explainer struct {
	*placer
	why      model.Explanation
	outcomes []preempt.Outcome
	searched []int32 // nodes that outcomes are about, a subsequence of all
	at       int     // of the first of them, in the search
	byClass  []int   // nodes by class that the group's own constraints rule out
	lacking  [model.MaxDimensions]int
	hindered [obstacles]int
}

// node counts one node's reason.
func (x *explainer) node(pos int32) {
	chunk, i := x.run.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	outcome := preempt.NoCandidates
	for len(x.searched) > 0 && x.rankOf(x.searched[0]) < x.rankOf(pos) {
		x.next() // not asked about
	}
	by := (*model.Budget)(nil)
	if len(x.searched) > 0 && x.searched[0] == pos {
		if outcome = x.outcomes[0]; outcome == preempt.Protected {
			by = x.run.s.finder.BlockingBudget(x.at)
		}
		x.next()
	}
	named := len(x.why.Samples) < samples
	switch {
	case chunk.Eligible()>>i&1 == 0:
		x.notReady(chunk.Node(i), named)
	case !x.feasible.node(chunk, i):
		x.infeasible(chunk, i, named)
	default:
		x.full(chunk, i, pos, outcome, by, named)
	}
}

// next goes on to the next node of the search.
func (x *explainer) next() { x.searched, x.outcomes, x.at = x.searched[1:], x.outcomes[1:], x.at+1 }

func (x *explainer) rankOf(pos int32) int32 { return x.run.s.order.rankOf[pos] }

// notReady counts a node that takes no work at all.
func (x *explainer) notReady(n *model.Node, named bool) {
	state := n.IneligibleReason()
	model.CountReason(&x.why.NotReady, state, 1)
	x.sample(n, "node is "+state, named)
}

func (x *explainer) filter(n *model.Node, reason string, named bool) {
	x.why.CountFiltered(reason)
	x.sample(n, reason, named)
}

func (x *explainer) sample(n *model.Node, reason string, named bool) {
	if named {
		x.why.Samples = append(x.why.Samples, model.NodeReason{NodeID: n.ID, Reason: reason})
	}
}

// infeasible counts a node that the group's own constraints rule out.
func (x *explainer) infeasible(chunk *state.Chunk, i int, named bool) {
	class := chunk.Class(i)
	if x.feasible.verdict[class] > 0 {
		x.filter(chunk.Node(i), x.feasible.escapedReason(chunk.Node(i)), named)
		return
	}
	if x.byClass == nil {
		x.byClass = make([]int, x.run.base.ClassCount())
	}
	x.byClass[class]++
	x.sample(chunk.Node(i), x.feasible.reason[class], named)
}

// full counts a node that might take the group if it had room.
func (x *explainer) full(chunk *state.Chunk, i int, pos int32, outcome preempt.Outcome, by *model.Budget, named bool) {
	node := chunk.Node(i)
	if x.rules != nil && !x.rules.ranksOnly {
		if reason := x.rules.ruledOutBy(pos, node); reason != "" {
			switch {
			case outcome == preempt.Protected:
				model.CountReason(&x.why.Preempted, protects(by), 1)
			case x.run.preempts && x.rules.TooMany(pos):
				model.CountReason(&x.why.Preempted, tooManyElsewhere, 1)
			}
			x.filter(node, reason, named)
			return
		}
	}
	what := ""
	if d := firstLacking(chunk, i, &x.group.Ask); d >= 0 {
		x.lacking[d]++
		if named {
			what = x.run.proposed.Dims().Name(d)
		}
	} else if port, held := x.ownPort(node); held {
		what = fmt.Sprintf("port %d, which the host itself holds", port)
		x.why.CountExhausted(what)
		x.sample(node, what, named)
		return
	} else {
		what = x.lack(pos, node)
		x.why.CountExhausted(what)
	}
	if x.run.preempts {
		switch o := x.obstacle(chunk, pos, outcome); o {
		case unhindered:
		case protected:
			why := protects(by)
			if x.cut {
				why += ", and not every choice of victims was tried"
			}
			model.CountReason(&x.why.Preempted, why, 1)
			what += "; " + why
		default:
			x.hindered[o]++
			if named {
				what += "; " + o.tell(x.ranker.ceiling)
			}
		}
	}
	x.sample(node, what, named)
}

// firstLacking is the first dimension that a node lacks, claims aside; -1: none.
func firstLacking(chunk *state.Chunk, i int, ask *model.Ask) int {
	for _, d := range ask.Dims {
		if chunk.Free(int(d))[i] < ask.Vec[d] {
			return int(d)
		}
	}
	return -1
}

// add names what was counted by number.
func (x *explainer) add() {
	for class, n := range x.byClass {
		model.CountReason(&x.why.Filtered, x.feasible.reason[class], n)
	}
	for d, n := range x.lacking[:x.run.proposed.Dims().Len()] {
		model.CountReason(&x.why.Exhausted, x.run.proposed.Dims().Name(d), n)
	}
	for o, n := range x.hindered {
		model.CountReason(&x.why.Preempted, obstacle(o).tell(x.ranker.ceiling), n)
	}
}

// lack names what the node is short of beside amounts: of the ways of serving
// devices, the first one's lack.
func (p *placer) lack(pos int32, n *model.Node) string {
	var claims model.Vector
	room := p.run.proposed.FreeCapacityFor(pos, p.group.Job.Key(), p.group.Job.Priority, p.run.now, &claims)
	ask := &p.group.Ask
	for _, choice := range n.DeviceChoices(ask) {
		if l := model.Fits(room, ask, choice); l.Kind != model.ShortageNone {
			return l.Format(p.run.proposed.Dims(), ask)
		}
	}
	return "room apart from other allocations"
}

// couldUnblock records which node classes could unblock one more group. A class
// that some group has not seen may be the one, so it counts as infeasible only
// when every group has found it so.
func (r *run) couldUnblock(classes map[uint64]bool, escaped bool) {
	r.out.Escaped = r.out.Escaped || escaped
	if r.out.Classes == nil {
		r.out.Classes = maps.Clone(classes)
		return
	}
	for key, feasible := range r.out.Classes {
		if also, seen := classes[key]; !seen && !feasible {
			delete(r.out.Classes, key)
		} else {
			r.out.Classes[key] = feasible || also
		}
	}
	for key, feasible := range classes {
		if feasible {
			r.out.Classes[key] = true
		}
	}
}

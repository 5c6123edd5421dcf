package scheduler

import (
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
	r := p.run
	e := &model.Explanation{Nodes: r.proposed.NodeCount()}
	outcomes := p.outcomes()
	for _, pos := range r.s.order.byRank {
		chunk, i := r.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		reason := p.explainNode(e, chunk, i, pos, outcomes)
		if len(e.Samples) < samples {
			e.Samples = append(e.Samples, model.NodeReason{NodeID: chunk.Node(i).ID, Reason: reason})
		}
	}
	p.classes()
	return e
}

// outcomes is what the search for victims found on each node, by position.
func (p *placer) outcomes() map[int32]preempt.Outcome {
	if !p.searching {
		return nil
	}
	return p.run.s.finder.OutcomesByNode()
}

// explainNode counts one node's reason and returns it.
func (p *placer) explainNode(e *model.Explanation, chunk *state.Chunk, i int, pos int32, outcomes map[int32]preempt.Outcome) string {
	node := chunk.Node(i)
	if reason := unschedulable(node); reason != "" {
		e.Filter(reason)
		return reason
	}
	if reason := p.feasible.nodeReason(chunk, i); reason != "" {
		e.Filter(reason)
		return reason
	}
	if p.rules != nil {
		if reason := p.rules.ruledOutBy(pos, node); reason != "" {
			e.Filter(reason)
			return reason
		}
	}
	what := p.lack(pos, node)
	e.Exhaust(what)
	if outcome, ok := outcomes[pos]; ok && outcome != preempt.Possible {
		e.Refuse(outcome.String())
		what += "; " + outcome.String()
	}
	return what
}

func unschedulable(n *model.Node) string {
	switch {
	case n.Status == model.NodeDown:
		return "node is down"
	case n.Drain:
		return "node is draining"
	case n.Ineligible:
		return "node is not eligible"
	}
	return ""
}

// lack names what the node is short of: of the ways of serving devices, the
// first one's lack.
func (p *placer) lack(pos int32, n *model.Node) string {
	var claims model.Vector
	room := p.run.proposed.RoomFor(pos, p.group.Job.Key(), p.group.Job.Priority, p.run.now, &claims)
	ask := &p.group.Ask
	for _, choice := range n.DeviceChoices(ask) {
		if l := model.Fits(room, ask, choice); l.Kind != model.LackNothing {
			return l.Format(p.run.proposed.Dims(), ask)
		}
	}
	return "room apart from other allocations"
}

// classes records which node classes could unblock the group.
func (p *placer) classes() {
	out := &p.run.out
	if out.Classes == nil {
		out.Classes = map[uint64]bool{}
	}
	p.feasible.classes(p.run.base, out.Classes)
	out.Escaped = out.Escaped || len(p.feasible.escaped) > 0
}

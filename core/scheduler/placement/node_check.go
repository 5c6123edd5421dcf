package placement

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/state"
)

// A NodeResult states whether a node can take one more instance of a group without
// evictions.
type NodeResult struct {
	Fits bool
	// Score orders the nodes that fit, the highest first; in [-1, 1].
	Score  float64
	Reason string // why the node does not fit
	// Unresolvable is set if the node would not fit even if nothing ran on it.
	Unresolvable bool
}

// CheckNodes returns, by node ID, whether each node can take one more instance of
// a group, by the rules by which instances are placed. It plans nothing and calls
// no policy. The caller must have called ForbidPreemption and Begin.
func (e *Evaluation) CheckNodes(g *model.Group) map[string]NodeResult {
	e.cacheable = false
	p := e.NewPlacer(g, feasible.NewRules(e.Rules, g))
	defer p.Close()
	x := explainer{Placer: p}
	results := make(map[string]NodeResult, len(e.ws.Order.ByRank))
	for r, pos := range e.ws.Order.ByRank {
		results[e.State.Base.NodeAt(pos).ID] = x.checkNode(r, pos)
	}
	return results
}

func (x *explainer) checkNode(r int, pos int32) NodeResult {
	if x.Ranker.Status(r) == rank.Fits {
		return NodeResult{Fits: true, Score: x.Ranker.Score(r)}
	}
	x.why.Samples = x.why.Samples[:0]
	x.explainNode(pos)
	return NodeResult{Reason: x.fullReason(pos, x.why.Samples[0].Reason), Unresolvable: x.isUnresolvable(pos)}
}

// fullReason extends a reason for use without context: for a node that lacks an
// amount it is the mere name of the dimension.
func (x *explainer) fullReason(pos int32, reason string) string {
	snap := x.e.State.Snapshot()
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if d := firstLacking(chunk, i, &x.group.Ask); d >= 0 && reason == snap.Dims().Name(d) {
		return "lacks " + reason
	}
	return reason
}

// isUnresolvable reports whether the group would not fit on a node even if nothing
// ran there: because of the node itself, or because the group needs allocations
// nearby that no eviction brings.
func (x *explainer) isUnresolvable(pos int32) bool {
	chunk, i := x.e.State.Snapshot().Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Eligible()>>i&1 == 0 || !x.checker.Feasible(chunk, i) {
		return true
	}
	ask := &x.group.Ask
	if slices.ContainsFunc(ask.Dims, func(d uint8) bool { return chunk.Avail(int(d))[i] < ask.Vec[d] }) {
		return true
	}
	if _, held := x.hostPort(chunk.Node(i)); held {
		return true
	}
	return x.Rules != nil && x.Rules.LacksAffinityTarget(pos, chunk.Node(i))
}

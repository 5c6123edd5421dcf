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
	// Lacks lists the resources of which too little is free, if Reason is that one of
	// them is lacking.
	Lacks []string
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
	v := NodeResult{Reason: x.why.Samples[0].Reason, Unresolvable: x.isUnresolvable(pos)}
	if v.Lacks = x.lacks(pos, v.Reason); v.Lacks != nil {
		v.Reason = "lacks " + v.Reason
	}
	return v
}

// lacks returns the resources of which a node has too little, or nil if that is not
// the reason. For such a node the reason is the mere name of the first resource.
func (x *explainer) lacks(pos int32, reason string) (list []string) {
	snap := x.e.State.Snapshot()
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if d := firstLacking(chunk, i, &x.group.Ask); d < 0 || reason != snap.Dims().Name(d) {
		return nil
	}
	for _, d := range x.group.Ask.Dims {
		if chunk.Free(int(d))[i] < x.group.Ask.Vec[d] {
			list = append(list, snap.Dims().Name(int(d)))
		}
	}
	return list
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

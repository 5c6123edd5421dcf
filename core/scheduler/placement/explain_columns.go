package placement

import (
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// An explanation names a few nodes and counts the rest, and on a full cluster every
// group that is not placed has one. Examining node after node in tie order used to
// take a large share of such an evaluation. Nodes that lack an amount, which are
// nearly all, are counted column by column instead.

// countByChunk explains all nodes. The first ones in tie order are named. A chunk of 64
// nodes costs one comparison of a column for each dimension of the request.
func (x *explainer) countByChunk(all []int32) {
	first := all[:min(maxSamples, len(all))]
	for _, pos := range first {
		x.explainNode(pos)
	}
	outcomes := x.outcomesByPosition()
	snap := x.e.State.Snapshot()
	for c := range snap.ChunkCount() {
		chunk, base := snap.Chunk(c), int32(c*state.ChunkSize)
		nodes := uint64(0)
		for i := range int32(chunk.Len()) {
			if x.rankOf(base+i) >= 0 && !slices.Contains(first, base+i) {
				nodes |= 1 << i
			}
		}
		x.countChunk(chunk, base, nodes, outcomes)
	}
}

// outcomesByPosition returns the outcomes of the search by node position.
func (x *explainer) outcomesByPosition() []preempt.Outcome {
	list := feasible.Resize(x.e.ws.outcomes, x.e.State.Snapshot().ChunkCount()*state.ChunkSize)
	x.e.ws.outcomes = list
	for pos := range list {
		list[pos] = preempt.NoCandidates
	}
	for k, pos := range x.searched {
		list[pos] = x.outcomes[k]
	}
	return list
}

// countChunk counts the given nodes of a chunk. Each dimension counts the nodes that
// lack it and no dimension before it, as node by node would.
func (x *explainer) countChunk(chunk *state.Chunk, base int32, nodes uint64, outcomes []preempt.Outcome) {
	usable := uint64(0) // only capacity may be missing
	for left := nodes; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		pos := base + int32(i)
		switch {
		case chunk.Eligible()>>i&1 == 0:
			x.countIneligible(chunk.Node(i), false)
		case !x.checker.Feasible(chunk, i):
			x.countInfeasible(chunk, i, false)
		case x.Rules != nil && !x.Rules.Allows(pos):
			x.countFull(chunk, i, pos, outcomes[pos], nil, false)
		default:
			usable |= 1 << i
		}
	}
	enough := usable
	for _, d := range x.group.Ask.Dims {
		lacks := enough & state.BelowMask((*[state.ChunkSize]int64)(chunk.Free(int(d))), x.group.Ask.Vec[d])
		x.lacking[d] += bits.OnesCount64(lacks)
		enough &^= lacks
	}
	for left := enough; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		pos := base + int32(i)
		x.countFull(chunk, i, pos, outcomes[pos], nil, false)
	}
	if !x.e.Preemption.Allowed {
		return
	}
	for left := usable &^ enough; left != 0; left &= left - 1 {
		pos := base + int32(bits.TrailingZeros64(left))
		if o := x.obstacle(chunk, pos, outcomes[pos]); o != unobstructed {
			x.blocked[o]++
		}
	}
}

package scheduler

import (
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// An explanation names a few nodes and counts the others, and on a full cluster there
// is one for every group that finds no place. Node by node in tie order that was a
// good part of what such an evaluation did; those that lack an amount, which nearly
// all do, are counted column by column.

// countByChunk explains nodes, all there are, in tie order: the first by name.
func (x *explainer) countByChunk(all []int32) {
	first := all[:min(samples, len(all))]
	for _, pos := range first {
		x.node(pos)
	}
	by := x.outcomesByPosition()
	for c := range x.run.proposed.ChunkCount() {
		chunk, base := x.run.proposed.Chunk(c), int32(c*state.ChunkSize)
		left := uint64(0)
		for i := range int32(chunk.Len()) {
			if x.rankOf(base+i) >= 0 && !slices.Contains(first, base+i) {
				left |= 1 << i
			}
		}
		x.countChunk(chunk, base, left, by)
	}
}

// outcomesByPosition is what the search found.
func (x *explainer) outcomesByPosition() []preempt.Outcome {
	by := resized(x.run.s.outcomes, x.run.proposed.ChunkCount()*state.ChunkSize)
	x.run.s.outcomes = by
	for pos := range by {
		by[pos] = preempt.NoCandidates
	}
	for k, pos := range x.searched {
		by[pos] = x.outcomes[k]
	}
	return by
}

// countChunk counts nodes of a chunk.
func (x *explainer) countChunk(chunk *state.Chunk, base int32, nodes uint64, by []preempt.Outcome) {
	whole := uint64(0) // those that amounts have a say about
	for left := nodes; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		switch {
		case chunk.Eligible()>>i&1 == 0:
			x.notReady(chunk.Node(i), false)
		case !x.feasible.node(chunk, i):
			x.infeasible(chunk, i, false)
		case x.rules != nil && !x.rules.Allows(base+int32(i)):
			x.full(chunk, i, base+int32(i), by[base+int32(i)], nil, false)
		default:
			whole |= 1 << i
		}
	}
	enough := whole
	for _, d := range x.group.Ask.Dims {
		lacks := enough & state.BelowMask((*[state.ChunkSize]int64)(chunk.Free(int(d))), x.group.Ask.Vec[d])
		x.lacking[d] += bits.OnesCount64(lacks)
		enough &^= lacks
	}
	for left := enough; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		x.full(chunk, i, base+int32(i), by[base+int32(i)], nil, false)
	}
	if !x.run.preempts {
		return
	}
	for left := whole &^ enough; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if o := x.obstacle(chunk, base+int32(i), by[base+int32(i)]); o != unhindered {
			x.hindered[o]++
		}
	}
}

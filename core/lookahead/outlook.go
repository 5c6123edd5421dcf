package lookahead

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// maxEnds is the maximum number of ends in a play: the earliest ones. More of them than
// evaluations that a play can pay for change nothing.
const maxEnds = 1024

// An outlook holds the ends until the horizon that follow from a snapshot. All plays on one
// snapshot share it.
type outlook struct {
	snap  *state.Snapshot
	now   int64
	ends  []lifetime.End // ascending by time, then by node and row
	waits [][2]string    // of a placement that has not started, and a stopping allocation
}

// read reads a snapshot, unless it was the last one. It costs a pass over the allocations
// that are not terminal.
func (o *outlook) read(snap *state.Snapshot, now int64) {
	if o.snap == snap && o.now == now {
		return
	}
	*o = outlook{snap: snap, now: now, ends: o.ends[:0], waits: o.waits[:0]}
	until := now + int64(Horizon)
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			for _, row := range chunk.Rows(i) {
				o.addRow(row.Alloc, until)
			}
			for _, a := range chunk.Stopping(i) {
				o.ends = append(o.ends, lifetime.End{At: max(now, a.EndTime+a.Group.KillTimeout), Alloc: a.ID, Stop: true})
			}
		}
	}
	slices.SortStableFunc(o.ends, func(a, b lifetime.End) int { return cmp.Compare(a.At, b.At) })
	o.ends = o.ends[:min(len(o.ends), maxEnds)]
}

// addRow adds the end of an allocation, or the victims for which it waits.
func (o *outlook) addRow(a *model.Allocation, until int64) {
	if !a.Started {
		o.addWaits(a.ID, a, 0)
		return
	}
	if a.Group.Duration == 0 {
		return
	}
	if at := a.StartTime + a.Group.Duration - a.SavedWork; at <= until {
		o.ends = append(o.ends, lifetime.End{At: max(o.now, at), Alloc: a.ID})
	}
}

// maxChain is how many evictions are followed from a placement that has not started to
// those that it waits for.
const maxChain = 8

// addWaits adds the victims of an allocation that are still stopping, for which a placement
// waits, and the victims of its victims that had not started either.
func (o *outlook) addWaits(placement string, a *model.Allocation, depth int) {
	for _, id := range a.Preempted {
		victim := o.snap.Alloc(id)
		if victim == nil || !victim.Stopping() {
			continue
		}
		if victim.Group.KillTimeout > 0 {
			o.waits = append(o.waits, [2]string{placement, id})
		}
		if !victim.Started && depth < maxChain {
			o.addWaits(placement, victim, depth+1)
		}
	}
}

package scheduler

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Shape is a number that blocked evaluations share which no Screen and no node class
// tells apart: their groups that found no place have the same shape, and they have
// seen the same classes. It is 0 for one that is like no other: of a job that was
// updated, whose earlier versions may still run, or whose rules look at allocations
// of its own.
func Shape(snap *state.Snapshot, eval *model.Evaluation) uint64 {
	job := snap.Job(eval.JobKey())
	if eval.Type == model.JobBinding || job == nil || job.Stopped ||
		job.Version > 0 || job.ModifyIndex != job.CreateIndex {
		return 0
	}
	h := xxhash.New()
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			if looksAtOwn(g) {
				return 0
			}
			_, _ = h.WriteString(g.EquivalenceClass())
			_, _ = h.Write([]byte{0})
		}
	}
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, classesSeen(eval)))
	return h.Sum64() | 1
}

// looksAtOwn is whether a rule of the group looks at other allocations of its job.
func looksAtOwn(g *model.Group) bool {
	return len(g.Labels)+len(g.Colocate)+len(g.Separate)+len(g.Spread) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() })
}

// classesSeen is a hash of what an evaluation knows of node classes.
func classesSeen(eval *model.Evaluation) (sum uint64) {
	if eval.Escaped {
		return 1 // it waits for any
	}
	var key [9]byte
	for class, feasible := range eval.Classes { // any order: a sum
		binary.LittleEndian.PutUint64(key[:], class)
		if key[8] = 0; feasible {
			key[8] = 1
		}
		sum += xxhash.Sum64(key[:])
	}
	return sum
}

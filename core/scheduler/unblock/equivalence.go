package unblock

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// EquivalenceClass returns a number that is equal for blocked evaluations that no
// Filter and no node class can distinguish: their unplaced groups have the same
// equivalence class, and they checked the same node classes with the same results.
//
// It returns 0 for an evaluation that is like no other: its job was updated, so that
// allocations of earlier versions may still run, or its rules depend on allocations
// of its own job.
func EquivalenceClass(snap *state.Snapshot, eval *model.Evaluation) uint64 {
	job := snap.Job(eval.JobKey())
	if eval.Type == model.JobBinding || job == nil || job.Stopped || job.Colocates() ||
		job.Version > 0 || job.ModifyIndex != job.CreateIndex {
		return 0
	}
	h := xxhash.New()
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			if dependsOnOwnJob(g) {
				return 0
			}
			_, _ = h.WriteString(g.EquivalenceClass())
			_, _ = h.Write([]byte{0})
		}
	}
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, hashClasses(eval)))
	return h.Sum64() | 1
}

// dependsOnOwnJob reports whether a rule of the group concerns allocations of its job.
func dependsOnOwnJob(g *model.Group) bool {
	return len(g.Labels)+len(g.Separate)+len(g.Spread) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() })
}

// hashClasses returns a hash of the node classes that an evaluation has checked.
func hashClasses(eval *model.Evaluation) (sum uint64) {
	if eval.Escaped {
		return 1 // it is blocked on all of them
	}
	var key [9]byte
	for class, feasible := range eval.Classes { // a sum does not depend on the order
		binary.LittleEndian.PutUint64(key[:], class)
		if key[8] = 0; feasible {
			key[8] = 1
		}
		sum += xxhash.Sum64(key[:])
	}
	return sum
}

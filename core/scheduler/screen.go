package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// Screen tells whether a blocked evaluation may be able to use a node, so that
// room for one small task does not wake ten thousand evaluations that need
// more. It errs on the side of waking: what it turns away could not have been
// placed, by room or by eviction.
type Screen struct {
	Snap     *state.Snapshot
	Policies *policy.Set
	Now      int64
}

// MayPlace is whether some group that the evaluation could not place may go to
// the node.
func (s *Screen) MayPlace(eval *model.Evaluation, nodeID string) bool {
	job := s.Snap.Job(eval.JobKey())
	pos, ok := s.Snap.Position(nodeID)
	if job == nil || job.Stopped || !ok {
		return job == nil || job.Stopped
	}
	version, err := s.Policies.Pick(job.Policy, s.Snap.Config().Policy)
	if err != nil {
		return true
	}
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed && s.mayPlaceGroup(g, pos, version) {
			return true
		}
	}
	return false
}

func (s *Screen) mayPlaceGroup(g *model.Group, pos int32, version *policy.Version) bool {
	if s.looksElsewhere(g) {
		return true
	}
	chunk, i := s.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Schedulable()>>i&1 == 0 {
		return false
	}
	var claims model.Vector
	room := s.Snap.RoomFor(pos, g.Job.Key(), g.Job.Priority, s.Now, &claims)
	if slices.ContainsFunc(chunk.Rows(i), func(row state.Row) bool { return row.Group.Job.Key() == g.Job.Key() }) {
		return true // one of its own may be replaced there, and leave its room to the new one
	}
	lacks := false
	for _, d := range g.Ask.Dims {
		lacks = lacks || room.Free[int(d)*room.Stride] < g.Ask.Vec[d]
	}
	if lacks && !s.mayEvict(g, room, chunk.Rows(i), version) {
		return false
	}
	return newFeasibility(g, 0).nodeAllowed(chunk.Node(i))
}

// looksElsewhere is whether a rule may let room on one node make another node
// possible for the group: its own, or separation that others want.
func (s *Screen) looksElsewhere(g *model.Group) bool {
	for i := range g.Constraints {
		if g.Constraints[i].Operator == model.OpDistinctProperty {
			return true
		}
	}
	if len(g.Spread)+len(g.Colocate) > 0 || spansNodes(g.Separate) {
		return true
	}
	if len(g.Labels) == 0 {
		return false
	}
	for key := range s.Snap.Separating(g.Labels) {
		job := s.Snap.Job(key)
		if job == nil || job.ModifyIndex != job.CreateIndex || job.SeparatesWidely() {
			return true
		}
	}
	return false
}

// mayEvict is whether the ask would fit with everything of lower priority gone.
func (s *Screen) mayEvict(g *model.Group, room model.Room, rows []state.Row, version *policy.Version) bool {
	config := s.Snap.Config()
	if !config.Preemption[g.Job.Type] || g.Job.NeverPreempts {
		return false
	}
	ceiling := preempt.Ceiling(g.Job.Priority, version, config.PriorityDelta)
	for _, d := range g.Ask.Dims {
		free := room.Free[int(d)*room.Stride]
		for at := 0; at < len(rows) && free < g.Ask.Vec[d] && int64(rows[at].Priority) <= ceiling; at++ {
			free += rows[at].Group.Ask.Vec[d]
		}
		if free < g.Ask.Vec[d] {
			return false
		}
	}
	return true
}

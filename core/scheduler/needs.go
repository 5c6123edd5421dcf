package scheduler

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
)

// Needs keeps what waiting evaluations need: a screen asks for it far more often
// than it changes, and an evaluation that waits is never written to.
type Needs map[*model.Evaluation]*need

// need is what an evaluation waits for.
type need struct {
	groups    []*model.Group
	smallest  model.Vector // the least that any of the groups asks, by dimension
	ceiling   int64        // highest priority that may be evicted
	elsewhere bool         // room on one node may make another one possible
}

// kept bounds Needs; beyond it everything is worked out again.
const kept = 1 << 16

// of is what an evaluation needs; nil when that cannot be told, and it is better
// to wake it.
func (n Needs) of(eval *model.Evaluation, s *Screen) *need {
	if known, ok := n[eval]; ok {
		return known
	}
	made := s.need(eval)
	if n != nil {
		if len(n) >= kept {
			clear(n)
		}
		n[eval] = made
	}
	return made
}

func (s *Screen) need(eval *model.Evaluation) *need {
	job := s.Snap.Job(eval.JobKey())
	if job == nil || job.Stopped {
		return nil
	}
	config := s.Snap.Config()
	version, err := s.Policies.Pick(job.Policy, config.Policy)
	if err != nil {
		return nil
	}
	n := &need{ceiling: math.MinInt64}
	if config.Preemption[job.Type] && !job.NeverPreempts {
		n.ceiling = preempt.Ceiling(job.Priority, version, config.PriorityDelta)
	}
	for i := range n.smallest {
		n.smallest[i] = math.MaxInt64
	}
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			n.add(g)
			n.elsewhere = n.elsewhere || s.looksElsewhere(g)
		}
	}
	return n
}

func (n *need) add(g *model.Group) {
	n.groups = append(n.groups, g)
	for d := range n.smallest {
		n.smallest[d] = min(n.smallest[d], g.Ask.Vec[d])
	}
	if g.Job.Version > 0 {
		n.smallest = model.Vector{} // what is to be replaced frees room of its own
	}
}

// least is whether free does not cover even the least of what is needed.
func (n *need) least(free *model.Vector) bool {
	for d, ask := range n.smallest {
		if ask > 0 && ask < math.MaxInt64 && free[d] < ask {
			return true
		}
	}
	return false
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

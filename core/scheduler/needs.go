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
	ceiling   int64    // highest priority that may be evicted
	elsewhere bool     // room on one node may make another one possible
	smallest  []amount // the least that any of the groups asks, where all ask something
	groups    []*model.Group
}

// amount is so much of a dimension.
type amount struct {
	dim  int
	size int64
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
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			n.groups = append(n.groups, g)
			n.elsewhere = n.elsewhere || s.looksElsewhere(g)
		}
	}
	if job.Version == 0 { // else what is to be replaced frees room of its own
		n.findSmallest()
	}
	return n
}

func (n *need) findSmallest() {
	for d := range model.MaxDimensions {
		least := int64(math.MaxInt64)
		for _, g := range n.groups {
			least = min(least, g.Ask.Vec[d])
		}
		if least > 0 && least < math.MaxInt64 {
			n.smallest = append(n.smallest, amount{d, least})
		}
	}
}

// exceeds is whether free does not cover even the least of what is needed.
func (n *need) exceeds(free *model.Vector) bool {
	for _, least := range n.smallest {
		if free[least.dim] < least.size {
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

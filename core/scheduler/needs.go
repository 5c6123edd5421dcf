package scheduler

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
)

// Needs keeps what waiting evaluations need: a screen asks for it far more often
// than it changes, and an evaluation that waits is never written to.
type Needs map[*model.Evaluation]*need

// need is what an evaluation waits for.
type need struct {
	of        rules
	ceiling   int64    // highest priority that may be evicted
	elsewhere bool     // room on one node may make another one possible
	smallest  []amount // the least that any of the groups asks, where all ask something
	groups    []*model.Group
	alone     []bool       // by group: only one instance of it goes to a node
	first     bool         // nothing runs of other versions of the job
	binding   *bindingNeed // instead of all that; nil: it is of a job, or waits for nothing
}

// rules is what decides who may be evicted for whom.
type rules struct {
	policies *policy.Set
	config   uint64 // ModifyIndex
}

// rules are those that the screen judges by. They are the same for its life.
func (s *Screen) rules() rules {
	if s.judges.policies == nil {
		s.judges = rules{s.Policies, s.Snap.Config().ModifyIndex}
	}
	return s.judges
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
	known := n[eval]
	if known != nil && known.of == s.rules() {
		return known
	}
	made := s.need(eval)
	if n != nil && made != nil {
		if len(n) >= kept {
			clear(n)
		}
		n[eval] = made
	}
	return made
}

// ofBinding is of for an evaluation of a binding.
func (n Needs) ofBinding(eval *model.Evaluation, s *Screen) *bindingNeed {
	if made := n.of(eval, s); made != nil {
		return made.binding
	}
	return nil
}

func (s *Screen) need(eval *model.Evaluation) *need {
	if eval.Type == model.JobBinding {
		return &need{of: s.rules(), binding: s.bindingNeed(eval)}
	}
	job := s.Snap.Job(eval.JobKey())
	if job == nil || job.Stopped {
		return nil
	}
	config := s.Snap.Config()
	version, err := s.Policies.Select(job.Policy, config.Policy)
	if err != nil {
		return nil
	}
	n := &need{of: s.rules(), ceiling: math.MinInt64, first: job.Version == 0 && job.ModifyIndex == job.CreateIndex}
	if config.Preemption[job.Type] && !job.NeverPreempts && !heldBack(s.Snap, job) {
		n.ceiling = preempt.Ceiling(job.Priority, version, config.PriorityDelta)
	}
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			n.groups, n.alone = append(n.groups, g), append(n.alone, goesAlone(g))
			n.elsewhere = n.elsewhere || s.looksElsewhere(g)
		}
	}
	if job.Version == 0 { // else what is to be replaced frees room of its own
		n.findSmallest()
	}
	return n
}

// goesAlone is whether the group keeps its own instances off a node.
func goesAlone(g *model.Group) bool {
	return slices.ContainsFunc(g.Separate, func(t model.LabelTerm) bool { return local(&t) && t.Matches(g.Labels) })
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
	for key := range s.Snap.JobsSeparatedFrom(g.Labels) {
		job := s.Snap.Job(key)
		if job == nil || job.ModifyIndex != job.CreateIndex || job.SeparatesByDomain() {
			return true
		}
	}
	return false
}

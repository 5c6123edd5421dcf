package counterfactual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// MaxEvaluations is how often a question makes the decision at most.
const MaxEvaluations = 64

// ErrNotReproduced means that the decision, made again, does not evict the victim.
var ErrNotReproduced = errors.New("the decision cannot be reproduced")

// A Case is a decision with everything that it depends on.
type Case struct {
	Eval     *model.Evaluation
	Snap     *state.Snapshot // that was planned on
	Now      int64           // of the plan, in Unix nanoseconds
	Policies *policy.Set     // that decided
	Plays    *policy.Set     // that look-ahead calls; nil: Policies
	Ties     tiebreak.Order
}

// An Eviction is a victim of a plan: an allocation, or replicas of an assignment.
type Eviction struct {
	ID      string
	Version string // of the policy that selected it
}

// An outcome is the part of a plan that questions are about.
type outcome struct {
	evicted []Eviction // ascending by ID
	waiting int        // instances or replicas that were not placed
	faulty  bool       // a policy failed
}

func (o *outcome) evicts(id string) bool {
	_, found := slices.BinarySearchFunc(o.evicted, id, func(e Eviction, id string) int { return strings.Compare(e.ID, id) })
	return found
}

// An Explorer makes a decision again, under changes. Make it with New.
type Explorer struct {
	c         Case
	scheduler *scheduler.Scheduler
	used      int
	base      outcome
}

// New returns an Explorer after making the decision once.
func New(ctx context.Context, c Case) (*Explorer, error) {
	x := &Explorer{c: c, scheduler: lookahead.NewSchedulerWith(scheduler.Config{
		Policies: c.Policies, Ties: c.Ties, Forget: true, // the cache describes other states
	}, c.Plays)}
	base, err := x.decide(ctx, c.Snap, c.Now)
	if err != nil {
		return nil, err
	}
	x.base = base
	return x, nil
}

// Evicted returns the victims of the decision, ascending by ID.
func (x *Explorer) Evicted() []Eviction { return slices.Clone(x.base.evicted) }

// Used returns how often the decision was made so far.
func (x *Explorer) Used() int { return x.used }

// decide makes the decision on a state and at a time.
func (x *Explorer) decide(ctx context.Context, snap *state.Snapshot, now int64) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	x.used++
	out, err := x.scheduler.Process(x.c.Eval, snap, now)
	if err != nil {
		return outcome{}, fmt.Errorf("evaluation %s: %w", x.c.Eval.ID, err)
	}
	return outcomeOf(out), nil
}

func outcomeOf(out *scheduler.Outcome) outcome {
	o := outcome{faulty: out.Fault != nil}
	for _, n := range out.Queued {
		o.waiting += n
	}
	for i := range out.Plan.Groups {
		g := &out.Plan.Groups[i]
		for _, e := range g.Evictions {
			o.evicted = append(o.evicted, Eviction{e.AllocID, e.Policy})
		}
		for _, w := range g.Withdrawals {
			if w.By != "" {
				o.evicted = append(o.evicted, Eviction{w.AssignmentID, w.Policy})
			}
		}
	}
	slices.SortFunc(o.evicted, func(a, b Eviction) int { return strings.Compare(a.ID, b.ID) })
	return o
}

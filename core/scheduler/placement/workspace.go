package placement

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
)

// Options are the same for all evaluations of a Workspace.
type Options struct {
	// NewID returns the ID of a new allocation.
	NewID func(g *model.Group, index, incarnation int) string
	// TieOrder breaks ties; zero value: by ID.
	TieOrder tiebreak.Order
	// Workers is the number of goroutines that search for victims; 0 or 1: one.
	Workers int
	// NoFailureCache disables the cache of failed groups, for tests that compare.
	NoFailureCache bool
	// OnCall receives every call of a policy hook, possibly from several goroutines;
	// nil: calls are not recorded.
	OnCall func(policy.Call)
	// Player plays plans with evictions, for policies that read outlooks; nil: none is played.
	Player Player
	// Explain adds the reasons of evictions to plans, as CommitGroup.Choices.
	Explain bool
	// NoDomainSearch disables the search of domains before that of nodes.
	NoDomainSearch bool
}

// A Workspace holds the memory and the cache that evaluations share. Nothing in it
// changes a plan.
type Workspace struct {
	Options Options
	Order   rank.Order

	finder   preempt.Finder
	ranker   rank.Ranker
	checker  feasible.NodeChecker
	counters feasible.CounterPool
	// elsewhere checks where victims could run instead.
	elsewhere feasible.Elsewhere
	failures  failureCache
	changed   changedNodes
	outcomes  []preempt.Outcome // scratch of explainer
	mover     *Workspace        // for instances that are moved; nil: nothing was moved yet
}

// NewWorkspace returns a Workspace with an empty cache.
func NewWorkspace(o Options) *Workspace {
	return &Workspace{Options: o, failures: newFailureCache()}
}

// ForgetFailures removes the groups of a job from the cache of failed groups. It
// must be called if a plan for the job was not committed in full, because the
// cache describes the state that the plan would have led to.
func (w *Workspace) ForgetFailures(job *model.Job) {
	for _, g := range job.Groups {
		delete(w.failures.byClass, g.EquivalenceClass())
	}
}

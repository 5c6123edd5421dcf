// Package rebalance plans moves that make room for jobs that wait, on the request of an
// operator. It decides nothing itself: the scheduler plans each job, with moves and without
// evictions, on the state that the earlier steps lead to. So a step moves instances under the
// same limits as any other placement, and only if it places more work than it interrupts.
//
// Plan changes nothing and is safe for concurrent use. Equal inputs result in equal steps,
// except for the IDs of new allocations.
package rebalance

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// MaxJobs is the number of waiting jobs that one call considers, the highest priority first.
// It bounds the time of a call to about that of as many evaluations.
const MaxJobs = 100

// An Input holds what a plan depends on.
type Input struct {
	Snapshot *state.Snapshot
	Policies scheduler.Policies
	NewID    func(g *model.Group, index, incarnation int) string
	Now      int64 // Unix nanoseconds
	// Moves limits how many instances of one job are moved.
	Moves model.Rate
}

// A Step places instances of one waiting job after moves of instances of other jobs.
type Step struct {
	Plan *model.Plan
	// Place are the new allocations of the job, and Move those of moved instances.
	Place, Move []*model.Allocation
	// Stop are the running instances that lose work: those that are moved, and those of the job
	// that are replaced, because their node drains or the job has changed.
	Stop     []Stop
	LostWork time.Duration // of all of them
}

// A Stop is a running instance that a step interrupts.
type Stop struct {
	Alloc    *model.Allocation
	Next     *model.Allocation // takes over; nil: none
	LostWork time.Duration     // since its last checkpoint
}

// Plan returns the steps for the jobs that wait: by descending priority, then in the order in
// which their evaluations were blocked. Each step relies on the earlier ones. omitted is the number of waiting jobs that
// were not considered.
func Plan(in Input) (steps []Step, omitted int, err error) {
	waiting := waitingEvals(in.Snapshot)
	omitted = max(0, len(waiting)-MaxJobs)
	after := withMoves(in.Snapshot, in.Moves)
	s := scheduler.New(scheduler.Config{Policies: in.Policies, NewID: in.NewID})
	for _, eval := range waiting[:len(waiting)-omitted] {
		out, err := s.Process(eval, after, in.Now)
		if err != nil {
			return nil, 0, err
		}
		step := newStep(after, out.Plan, in.Now)
		if len(step.Move) == 0 {
			continue // without moves, its own evaluations place it
		}
		limit := in.Moves
		// The states in between do not exist.
		step.Plan.Moves, step.Plan.SnapshotIndex = &limit, in.Snapshot.Index()
		steps = append(steps, step)
		after = applied(after, step.Plan, in.Now)
	}
	return steps, omitted, nil
}

// waitingEvals returns the blocked evaluations of jobs, in the order of the queue.
func waitingEvals(snap *state.Snapshot) (list []*model.Evaluation) {
	for e := range snap.Evals() {
		if e.Status != model.EvalBlocked || e.Type == model.JobBinding {
			continue
		}
		if j := snap.Job(e.JobKey()); j != nil && !j.Stopped {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, (*model.Evaluation).CompareQueued)
	return list
}

// withMoves returns the state with moves enabled and preemption disabled.
func withMoves(snap *state.Snapshot, moves model.Rate) *state.Snapshot {
	config := *snap.Config()
	config.Moves, config.Preemption = &moves, model.SchedulerConfig{}.Preemption
	txn := snap.Fork(snap.Index() + 1)
	txn.ConfigWriter().Set(&config)
	return txn.Snapshot()
}

// applied returns the state after a plan.
func applied(snap *state.Snapshot, plan *model.Plan, now int64) *state.Snapshot {
	txn := snap.Fork(snap.Index() + 1)
	groups := make([]int, len(plan.Groups))
	for i := range groups {
		groups[i] = i
	}
	apply.Plan(txn, now, plan, groups)
	return txn.Snapshot()
}

// newStep sums up a plan that was made on a state.
func newStep(snap *state.Snapshot, plan *model.Plan, now int64) Step {
	s := Step{Plan: plan}
	for i := range plan.Groups {
		for _, a := range plan.Groups[i].Placements {
			if a.MovedFrom == "" {
				s.Place = append(s.Place, a)
			} else {
				s.Move = append(s.Move, a)
			}
		}
	}
	for i := range plan.Groups {
		for k := range plan.Groups[i].Stops {
			stop := &plan.Groups[i].Stops[k]
			a := snap.Alloc(stop.AllocID)
			if stop.Lost || a == nil || a.Client.Terminal() {
				continue // it does not run
			}
			x := Stop{Alloc: a, Next: s.successor(a, stop), LostWork: time.Duration(a.Group.LostWork(a.Age(now)))}
			s.Stop, s.LostWork = append(s.Stop, x), s.LostWork+x.LostWork
		}
	}
	return s
}

// successor returns the placement that takes over from an instance that is stopped, or nil.
func (s *Step) successor(a *model.Allocation, stop *model.Stop) *model.Allocation {
	list := s.Place
	if stop.MovedTo != "" {
		list = s.Move
	}
	for _, next := range list {
		if next.MovedFrom == a.ID || stop.MovedTo == "" && next.Group.Name == a.Group.Name && next.Index == a.Index {
			return next
		}
	}
	return nil
}

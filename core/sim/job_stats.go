package sim

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// jobStats records every job that runs or was submitted, and the instances that its
// last evaluation could not place.
type jobStats struct {
	jobs        []*model.Job // in order of submission
	at          map[model.JobKey]int
	last        map[model.JobKey]*scheduler.Outcome
	unevaluated map[model.JobKey]bool // jobs and bindings that run at time 0 and have not been evaluated
}

func newJobStats() jobStats {
	return jobStats{at: map[model.JobKey]int{}, last: map[model.JobKey]*scheduler.Outcome{}, unevaluated: map[model.JobKey]bool{}}
}

func (l *jobStats) register(j *model.Job) {
	if at, ok := l.at[j.Key()]; ok {
		l.jobs[at] = j
		return
	}
	l.at[j.Key()] = len(l.jobs)
	l.jobs = append(l.jobs, j)
}

func (l *jobStats) stop(j *model.Job) {
	l.register(j)
	delete(l.last, j.Key())
}

// evaluated records the outcome of an evaluation, without its plan.
func (l *jobStats) evaluated(key model.JobKey, out *scheduler.Outcome) {
	delete(l.unevaluated, key)
	if out.Placed() {
		delete(l.last, key)
		return
	}
	l.last[key] = &scheduler.Outcome{Failed: out.Failed, Queued: out.Queued, Fault: out.Fault}
}

// unplaced lists the desired instances that are missing at the end. Finished
// instances of batch jobs are not missing; finished instances of services are, because a
// service is desired until it is stopped. They do not wait, so the metric of this name, which
// counts instances that do, omits them.
func (l *jobStats) unplaced(snap *state.Snapshot) []Unplaced {
	list := []Unplaced{}
	var allocs []*model.Allocation
	for _, j := range l.jobs {
		if j.Stopped {
			continue
		}
		allocs = snap.AppendJobAllocs(allocs[:0], j.Key())
		for _, g := range j.Groups {
			if n := l.missing(j, g, allocs); n > 0 {
				list = append(list, Unplaced{Job: j.ID, Group: g.Name, Count: n, Reason: l.reason(j, g, allocs)})
			}
		}
	}
	return list
}

func (l *jobStats) missing(j *model.Job, g *model.Group, allocs []*model.Allocation) int {
	if j.Type.PerNode() {
		if out := l.last[j.Key()]; out != nil {
			return out.Queued[g.Name]
		}
		return 0
	}
	return g.Missing(allocs)
}

func (l *jobStats) reason(j *model.Job, g *model.Group, allocs []*model.Allocation) string {
	out := l.last[j.Key()]
	switch {
	case out != nil && out.Fault != nil:
		return out.Fault.Error()
	case out != nil && out.Failed[g.Name] != nil:
		return out.Failed[g.Name].String()
	case l.unevaluated[j.Key()]:
		began := 0
		for _, a := range allocs {
			if a.Group.Name == g.Name {
				began++
			}
		}
		if began < g.Count {
			return notEvaluated(began, g.Count, "instances")
		}
	}
	return "its instances ended"
}

// notEvaluated explains why a job that runs incompletely at time 0 stays incomplete:
// the file defines its allocations, and the scheduler evaluates it only after an
// event.
func notEvaluated(began, wanted int, what string) string {
	return fmt.Sprintf("%d of %d %s ran at time 0, and no event caused an evaluation: submit it to place the rest", began, wanted, what)
}

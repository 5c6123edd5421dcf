package sim

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// ledger knows what is wanted: every job that runs or was submitted, and what
// its last evaluation could not place.
type ledger struct {
	jobs []*model.Job // in the order in which they came
	at   map[model.JobKey]int
	last map[model.JobKey]*scheduler.Outcome
}

func newLedger() ledger {
	return ledger{at: map[model.JobKey]int{}, last: map[model.JobKey]*scheduler.Outcome{}}
}

func (l *ledger) register(j *model.Job) {
	if at, ok := l.at[j.Key()]; ok {
		l.jobs[at] = j
		return
	}
	l.at[j.Key()] = len(l.jobs)
	l.jobs = append(l.jobs, j)
}

func (l *ledger) stop(j *model.Job) {
	l.register(j)
	delete(l.last, j.Key())
}

// evaluated keeps what an evaluation came to; the plan itself is let go.
func (l *ledger) evaluated(key model.JobKey, out *scheduler.Outcome) {
	if out.Placed() {
		delete(l.last, key)
		return
	}
	l.last[key] = &scheduler.Outcome{Failed: out.Failed, Queued: out.Queued, Fault: out.Fault}
}

// unplaced lists what is wanted and not there at the end. The finished work of
// batch jobs was there; a finished instance of a service is missing.
func (l *ledger) unplaced(snap *state.Snapshot) []Unplaced {
	list := []Unplaced{}
	var allocs []*model.Allocation
	for _, j := range l.jobs {
		if j.Stopped {
			continue
		}
		allocs = snap.AppendJobAllocs(allocs[:0], j.Key())
		for _, g := range j.Groups {
			if n := l.missing(j, g, allocs); n > 0 {
				list = append(list, Unplaced{Job: j.ID, Group: g.Name, Count: n, Reason: l.reason(j, g)})
			}
		}
	}
	return list
}

func (l *ledger) missing(j *model.Job, g *model.Group, allocs []*model.Allocation) int {
	if j.Type.PerNode() {
		if out := l.last[j.Key()]; out != nil {
			return out.Queued[g.Name]
		}
		return 0
	}
	n, twice := g.Count, map[int]bool{}
	for _, a := range allocs {
		if a.Group.Name != g.Name || !a.Live() && !(j.Type.Finite() && completed(a)) || g.StandsIn() && twice[a.Index] {
			continue
		}
		twice[a.Index] = true // one that another stands in for is there once
		n--
	}
	return n
}

func completed(a *model.Allocation) bool {
	return a.Client == model.ClientComplete && a.Desired == model.DesiredRun
}

func (l *ledger) reason(j *model.Job, g *model.Group) string {
	out := l.last[j.Key()]
	switch {
	case out == nil:
		return "its instances ended"
	case out.Fault != nil:
		return out.Fault.Error()
	case out.Failed[g.Name] == nil:
		return "its instances ended"
	}
	return out.Failed[g.Name].String()
}

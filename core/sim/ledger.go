package sim

import (
	"fmt"

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
	idle map[model.JobKey]bool // those that run at the beginning and were not evaluated yet, bindings too
}

func newLedger() ledger {
	return ledger{at: map[model.JobKey]int{}, last: map[model.JobKey]*scheduler.Outcome{}, idle: map[model.JobKey]bool{}}
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
	delete(l.idle, key)
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
				list = append(list, Unplaced{Job: j.ID, Group: g.Name, Count: n, Reason: l.reason(j, g, allocs)})
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
		there := a.Live() || j.Type.Finite() && completed(a)
		if a.Group.Name != g.Name || !there || g.ReplacesOnDisconnect() && twice[a.Index] {
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

func (l *ledger) reason(j *model.Job, g *model.Group, allocs []*model.Allocation) string {
	out := l.last[j.Key()]
	switch {
	case out != nil && out.Fault != nil:
		return out.Fault.Error()
	case out != nil && out.Failed[g.Name] != nil:
		return out.Failed[g.Name].String()
	case l.idle[j.Key()]:
		began := 0
		for _, a := range allocs {
			if a.Group.Name == g.Name {
				began++
			}
		}
		if began < g.Count {
			return notAsked(began, g.Count, "instances")
		}
	}
	return "its instances ended"
}

// notAsked is why what runs at the beginning in part stays so: work is laid there as
// the file says, and the scheduler looks at it once something happens to it.
func notAsked(began, wanted int, what string) string {
	return fmt.Sprintf("%d of %d %s ran at the beginning, and nothing has had it evaluated: an event that submits it would", began, wanted, what)
}

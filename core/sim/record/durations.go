package record

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A span is how long an instance runs, over all its allocations, in nanoseconds.
type span struct {
	exact int64 // of an instance that completed; 0: none did
	least int64 // that it has run without completing
}

// A recordedGroup collects the spans of the instances of a group.
type recordedGroup struct {
	stated     int64 // the duration that the job states; 0: none
	sum, count int64 // of the exact spans
	instances  []span
}

// usual returns the duration of an instance that did not complete, as far as it is known: the
// stated one, else the mean of those that did; 0: none.
func (g *recordedGroup) usual() int64 {
	if g.stated > 0 || g.count == 0 {
		return g.stated
	}
	return g.sum / g.count
}

// durations writes how long instances ran. Those that completed ran for exactly that long, and
// the others longer than they had run. The groups keep the durations that their jobs state,
// because policies and plays knew no others.
func (w *writer) durations() {
	groups := map[string]*recordedGroup{} // by job.group of the scenario
	for i := range w.file.Jobs {
		j := &w.file.Jobs[i]
		for k := range j.Groups {
			g, n := &j.Groups[k], 1
			if g.Count != nil {
				n = *g.Count
			}
			groups[j.ID+"."+g.Name] = &recordedGroup{stated: int64(g.Duration), instances: make([]span, n)}
		}
	}
	for a := range w.End.Allocs() {
		name, _, _ := strings.Cut(w.instances[a.ID], "[")
		if g := groups[name]; g != nil && a.Started && a.Index < len(g.instances) && !a.Job.Type.PerNode() {
			w.addRun(g, &g.instances[a.Index], a)
		}
	}
	for name, g := range groups {
		for i := range g.instances {
			d := g.duration(&g.instances[i])
			if d == g.stated {
				continue
			}
			if w.file.Durations == nil {
				w.file.Durations = map[string]scenario.Duration{}
			}
			w.file.Durations[fmt.Sprintf("%s[%d]", name, i)] = scenario.Duration(d)
			if g.instances[i].exact == 0 {
				w.notes.add("instances that did not complete: run for the mean duration of their group, or longer than they had run")
			}
		}
	}
}

// addRun adds the run of an allocation. Work that it continued counts.
func (w *writer) addRun(g *recordedGroup, s *span, a *model.Allocation) {
	end := a.EndTime
	if a.Live() {
		end = w.Ended
	}
	ran := end - a.StartTime + a.SavedWork
	switch {
	case ran <= 0:
	case !a.Completed():
		s.least = max(s.least, ran)
	case s.exact == 0:
		s.exact, g.sum, g.count = ran, g.sum+ran, g.count+1
	}
}

// duration returns the duration of an instance; 0: for ever.
func (g *recordedGroup) duration(s *span) int64 {
	if s.exact > 0 {
		return s.exact
	}
	if usual := g.usual(); usual == 0 || usual > s.least {
		return usual
	}
	return s.least + 1
}

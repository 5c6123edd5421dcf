package importer

import (
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// taskShape is the set of properties that all tasks of a group share.
type taskShape struct {
	cpu, memory int64
	duration    scenario.Duration
	clauses     string
}

// groups returns one group for each shape, in order of the first task index.
func (g *google) groups(tasks []googleTask) []scenario.Group {
	var groups []scenario.Group
	at := make(map[taskShape]int)
	for i := range tasks {
		s := g.shape(&tasks[i])
		j, known := at[s]
		if !known {
			j = len(groups)
			at[s] = j
			groups = append(groups, scenario.Group{
				Name: "g" + strconv.Itoa(j), Count: new(0), Duration: s.duration,
				Resources:   scenario.Quantities{"cpu": s.cpu, "memory": s.memory},
				Constraints: g.attributes.constraints[s.clauses],
			})
		}
		*groups[j].Count++
	}
	return groups
}

func (g *google) shape(t *googleTask) taskShape {
	if t.disk {
		g.Report.Note(1, "tasks with a disk request", "not imported: the trace has no disk capacities")
	}
	return taskShape{
		cpu:      g.request(t.cpu, googleCPU, "CPU", "1 millicore"),
		memory:   g.request(t.mem, googleMemory, "memory", "1 MiB"),
		duration: g.duration(t),
		clauses:  t.clauses,
	}
}

// request converts a fraction into an amount of at least 1.
func (g *google) request(fraction float64, unit int64, resource, least string) int64 {
	switch {
	case fraction < 0:
		g.Report.Note(1, "tasks with a "+resource+" request that the trace hides", least)
	case fraction == 0:
		g.Report.Note(1, "tasks with a "+resource+" request of zero", least)
	}
	return max(1, scale(max(0, fraction), unit))
}

// duration returns the run time of a task; 0 is unlimited.
func (g *google) duration(t *googleTask) scenario.Duration {
	switch {
	case t.kind == taskRunning:
		g.Report.Note(1, "tasks still running at the end of the window", "unlimited duration")
		return 0
	case t.kind == taskPending && t.run < 0:
		g.Report.Note(1, "tasks that never ran, pending at the end of the window", "unlimited duration")
		return 0
	case t.kind == taskPending:
		g.Report.Note(1, "tasks that ran and are pending at the end of the window", "unlimited duration")
		return 0
	case t.run < 0:
		g.Report.Note(1, "tasks killed before they ran", "duration from submission to kill")
		return wholeSeconds(t.end - t.submit)
	case t.run < int64(time.Second)/2:
		g.Report.Note(1, "tasks that ran for less than half a second", "duration 1s")
	}
	return wholeSeconds(t.run)
}

// wholeSeconds rounds to whole seconds, with a minimum of one. Submit times are in whole
// seconds as well, and concurrent tasks become equal: a job has half as many groups as
// with milliseconds.
func wholeSeconds(ns int64) scenario.Duration {
	const s = int64(time.Second)
	return scenario.Duration(max(s, (ns+s/2)/s*s))
}

package importer

import (
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// taskShape is what tasks of one group have in common.
type taskShape struct {
	cpu, memory int64
	duration    scenario.Duration
	clauses     string
}

// groups gathers tasks of one shape, in order of their first index.
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
		g.report.note(1, "tasks with a disk request", "not told: the trace has no disk capacities")
	}
	return taskShape{
		cpu:      g.request(t.cpu, googleCPU, "CPU", "1 millicore"),
		memory:   g.request(t.mem, googleMemory, "memory", "1 MiB"),
		duration: g.duration(t),
		clauses:  t.clauses,
	}
}

func (g *google) request(fraction float64, unit int64, what, least string) int64 {
	switch {
	case fraction < 0:
		g.report.note(1, "tasks whose "+what+" request the trace hides", least)
	case fraction == 0:
		g.report.note(1, "tasks with a "+what+" request of zero", least)
	}
	return max(1, scale(max(0, fraction), unit))
}

// duration is how long a task runs; 0 is for ever.
func (g *google) duration(t *googleTask) scenario.Duration {
	switch {
	case t.kind == taskRunning:
		g.report.note(1, "tasks still running at the end of the window", "they run for ever")
		return 0
	case t.kind == taskPending && t.run < 0:
		g.report.note(1, "tasks that never ran, pending at the end of the window", "they run for ever")
		return 0
	case t.kind == taskPending:
		g.report.note(1, "tasks that ran and are pending at the end of the window", "they run for ever")
		return 0
	case t.run < 0:
		g.report.note(1, "tasks killed before they ran", "they run as long as they were wanted")
		return wholeSeconds(t.end - t.submit)
	case t.run < int64(time.Second)/2:
		g.report.note(1, "tasks that ran for less than half a second", "1s")
	}
	return wholeSeconds(t.run)
}

// wholeSeconds rounds, and makes nothing vanish. Submissions are in whole
// seconds too, and tasks that ran side by side become equal: a job has half as
// many groups as it would have with milliseconds.
func wholeSeconds(ns int64) scenario.Duration {
	const s = int64(time.Second)
	return scenario.Duration(max(s, (ns+s/2)/s*s))
}

package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// Columns of the raw files. The names are used in messages.
var (
	taskEventColumns = []string{
		"time", "missing info", "job id", "task index", "machine id", "event type", "user", "scheduling class",
		"priority", "CPU request", "memory request", "disk request", "different machines",
	}
	machineEventColumns = []string{"time", "machine id", "event type", "platform", "CPUs", "memory"}
)

// Event types of a task, as numbered in the trace.
const (
	evSubmit = iota
	evSchedule
	evEvict
	evFail
	evFinish
	evKill
	evLost
	evUpdatePending
	evUpdateRunning
)

// Column numbers of task events.
const (
	tcTime, tcJob, tcIndex, tcType, tcClass, tcPriority = 0, 2, 3, 5, 7, 8
	tcCPU, tcMem, tcDisk, tcApart                       = 9, 10, 11, 12
)

// rawFiles returns the parts of one kind of event file. It supports both layouts: the
// folders of the publication, or all parts in one folder.
func rawFiles(src Source, kind string) ([]string, error) {
	files := src.Match(kind+"/part-*.csv", kind+"-part-*.csv")
	if len(files) == 0 {
		_, err := src.Must(kind + "-part-00000-of-00500.csv")
		return nil, fmt.Errorf("neither the derived files (tasks.csv, machines.csv) nor the raw files exist: %w", err)
	}
	return files, nil
}

// micros reads a time in microseconds as nanoseconds.
func micros(t *build.Table, col int) int64 {
	n, err := strconv.ParseInt(t.Text(col), 10, 64)
	if err != nil || n < 0 {
		t.Invalid(col, "microseconds, 0 or more")
		return 0
	}
	// The largest value stands for "after the window".
	return min(n, build.MaxSeconds*1e6) * int64(time.Microsecond)
}

// readMachineEvents adds the machines that exist at time 0.
func (g *google) readMachineEvents(src Source) error {
	files, err := rawFiles(src, "machine_events")
	if err != nil {
		return err
	}
	p := platforms{}
	for _, file := range files {
		if err := g.machineEvents(src, file, p); err != nil {
			return err
		}
	}
	return g.Shrink()
}

func (g *google) machineEvents(src Source, file string, p platforms) error {
	t, err := g.OpenTable(src, file, machineEventColumns...)
	if err != nil {
		return err
	}
	defer t.Close()
	for t.Next() {
		at, id, kind := micros(t, 0), t.ID(1), t.Small(2, 2)
		cpu, sized := t.Fraction(4)
		mem, _ := t.Fraction(5)
		if at > 0 || kind != 0 {
			g.Report.Note(1, "machines added, removed or changed later, over the whole trace", "not imported")
			continue
		}
		g.machine(t, id, cpu, mem, sized, p.short(t.Text(3)))
	}
	return t.Err()
}

// platforms numbers the hashed platforms of the trace in order of appearance, P0, P1 and
// so on, as machines.csv does.
type platforms map[string]string

func (p platforms) short(hash string) string {
	if _, known := p[hash]; !known {
		p[strings.Clone(hash)] = "P" + strconv.Itoa(len(p))
	}
	return p[hash]
}

// history accumulates the events of a task.
type history struct {
	googleTask
	started int64 // start of the running attempt; -1 if there is none
	longest int64 // longest attempt; -1 if there is none yet
	last    int64 // length of the last attempt; -1 if there is none yet
}

// readTaskEvents replays the raw events into one row per task.
func (g *google) readTaskEvents(src Source) error {
	files, err := rawFiles(src, "task_events")
	if err != nil {
		return err
	}
	byTask := make(map[taskKey]*history)
	for _, file := range files {
		if err := g.taskEvents(src, file, byTask); err != nil {
			return err
		}
	}
	for _, h := range byTask { // the tasks are sorted afterwards
		g.tasks = append(g.tasks, h.finish(g.window))
	}
	slices.SortFunc(g.tasks, func(a, b googleTask) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index))
	})
	g.window = millis(g.window)
	g.Report.TasksRead = len(g.tasks)
	return nil
}

func (g *google) taskEvents(src Source, file string, byTask map[taskKey]*history) error {
	t, err := g.OpenTable(src, file, taskEventColumns...)
	if err != nil {
		return err
	}
	defer t.Close()
	for t.Next() {
		at := micros(t, tcTime)
		if at < g.window {
			t.Fail("time decreases; expected events in ascending order")
		}
		if at >= build.MaxSeconds*int64(time.Second) {
			g.Report.Note(1, "events after the end of the window", "ignored")
			continue
		}
		g.window = at
		key := taskKey{t.ID(tcJob), t.ID(tcIndex)}
		h := byTask[key]
		if h == nil {
			h = &history{started: -1, longest: -1, last: -1}
			h.job, h.index, h.submit, h.end = key.job, key.index, at, -1
			h.cpu, h.mem, h.separate = -1, -1, separationUnknown
			byTask[key] = h
		}
		h.describe(t)
		h.event(t.Small(tcType, evUpdateRunning), at)
	}
	return t.Err()
}

// describe records the properties of the task in an event. The first known request
// applies, because the scenario submits the task then; if the first event hides it, a
// later one may contain it.
func (h *history) describe(t *build.Table) {
	h.class, h.priority = t.Small(tcClass, 3), t.Small(tcPriority, maxPriority)
	if f, given := t.Fraction(tcCPU); given && h.cpu < 0 {
		h.cpu = f
	}
	if f, given := t.Fraction(tcMem); given && h.mem < 0 {
		h.mem = f
	}
	if f, given := t.Fraction(tcDisk); given {
		h.disk = h.disk || f > 0
	}
	if a := parseSeparation(t, tcApart); h.separate == separationUnknown {
		h.separate = a
	}
}

// event updates the state of the task.
func (h *history) event(kind int, at int64) {
	switch kind {
	case evSubmit:
		h.kind, h.end = taskPending, -1
	case evSchedule:
		h.kind, h.end, h.started = taskRunning, -1, at
	case evEvict:
		h.endAttempt(at)
		h.kind, h.end = taskPending, -1
	case evFail:
		h.endAttempt(at)
		h.kind, h.end = taskFail, at
	case evFinish:
		h.endAttempt(at)
		h.kind, h.end = taskFinish, at
	case evKill, evLost:
		h.endAttempt(at)
		h.kind, h.end = taskKill, at
	}
}

// endAttempt ends the running attempt, if there is one.
func (h *history) endAttempt(at int64) {
	if h.started < 0 {
		return
	}
	h.last = at - h.started
	h.longest = max(h.longest, h.last)
	h.started = -1
}

// finish returns the row of the task at the end of the window, in whole milliseconds as
// in tasks.csv.
func (h *history) finish(window int64) googleTask {
	h.endAttempt(window)
	t := h.googleTask
	t.run = h.last
	if t.kind == taskPending {
		t.run = h.longest
	}
	t.submit, t.end, t.run = millis(t.submit), millis(t.end), millis(t.run)
	return t
}

// millis rounds a time to milliseconds; -1 is returned unchanged.
func millis(ns int64) int64 {
	if ns < 0 {
		return ns
	}
	const ms = int64(time.Millisecond)
	return (ns + ms/2) / ms * ms
}

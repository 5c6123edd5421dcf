package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The trace gives requests and capacities as fractions of its largest machine,
// with four significant digits. These sizes for that machine make the smallest
// request 40 millicores and the sums over all tasks exact to a few millionths.
const (
	googleCPU    = 64_000      // millicores that 1.0 stands for
	googleMemory = 1024 * 1024 // MiB that 1.0 stands for
)

// googleTask is one row of tasks.csv, or what the raw events say about a task.
type googleTask struct {
	job, index uint64
	priority   int
	class      int // of scheduling, 0..3
	submit     int64
	end        int64 // nanoseconds; -1: none
	run        int64 // length of the last attempt; -1: never ran
	kind       taskKind
	cpu, mem   float64 // fractions; -1: hidden
	disk       bool    // asks for disk
	apart      separation
	clauses    string // constraints as the trace writes them
}

// taskKind is the last state seen.
type taskKind uint8

const (
	taskPending taskKind = iota
	taskRunning
	taskFinish
	taskKill
	taskFail
)

var taskKinds = map[string]taskKind{
	"PENDING": taskPending, "RUNNING": taskRunning, "FINISH": taskFinish, "KILL": taskKill, "FAIL": taskFail,
}

// separation is whether tasks of a job must sit on different machines.
type separation int8

const (
	apartUnknown separation = iota - 1
	apartNo
	apartYes
)

// google is one import of the trace.
type google struct {
	*builder
	tasks      []googleTask
	attributes attributes
	window     int64 // end of what was observed
	apart      map[uint64]bool
}

// googleFiles is how the names of the trace's files start.
var googleFiles = []string{"tasks", "machines", "task_events", "machine_events", "constraints", "machine_attributes"}

// Google imports the Google cluster trace of 2011. The package documentation
// says how.
func Google(opts Options, src Source) (*scenario.File, *Report, error) {
	if src.File != "" && !slices.ContainsFunc(googleFiles, func(start string) bool { return strings.HasPrefix(src.File, start) }) {
		return nil, nil, fmt.Errorf("%s is none of the trace's files (%s); name the folder they are in",
			src.File, strings.Join(googleFiles, "…, ")+"…")
	}
	b, err := newBuilder("google", "Google cluster trace 2011-2", "google-2011", opts)
	if err != nil {
		return nil, nil, err
	}
	g := &google{builder: b, apart: make(map[uint64]bool)}
	if err := g.load(src); err != nil {
		return nil, b.report, err
	}
	if err := g.build(); err != nil {
		return nil, b.report, err
	}
	return b.finish()
}

// load reads the derived files, or the raw ones where those are absent.
func (g *google) load(src Source) error {
	var err error
	if src.find("machines.csv") != "" {
		err = g.readMachines(src)
	} else {
		err = g.readMachineEvents(src)
	}
	if err != nil {
		return err
	}
	if src.find("tasks.csv") != "" {
		err = g.readTasks(src)
	} else {
		err = g.readTaskEvents(src)
	}
	if err != nil {
		return err
	}
	return g.readConstraints(src)
}

// machine adds a machine of fractional size.
func (g *google) machine(t *table, id uint64, cpu, mem float64, sized bool, platform string) {
	if !sized || cpu == 0 {
		g.report.note(1, "machines without a capacity", "left out")
		return
	}
	n := scenario.Node{
		ID:       strconv.FormatUint(id, 10),
		Capacity: scenario.Quantities{"cpu": scale(cpu, googleCPU), "memory": scale(mem, googleMemory)},
	}
	if platform != "" {
		n.Attributes = map[string]string{"platform": platform}
	}
	if !g.node(n) {
		t.fail("machine %d is listed twice", id)
	}
}

func scale(fraction float64, unit int64) int64 {
	return int64(math.Round(fraction * float64(unit)))
}

// build turns tasks into scenario jobs.
func (g *google) build() error {
	bands := newBands(map[string]int32{"free": 20, "middle": 50, "production": 80}, g.opts.Bands)
	for i := range g.tasks {
		t := &g.tasks[i]
		g.apart[t.job] = g.apart[t.job] || t.apart == apartYes
		bands.seen[strconv.Itoa(t.priority)] = true
	}
	if err := bands.unused(); err != nil {
		return err
	}
	g.tasks = slices.DeleteFunc(g.tasks, func(t googleTask) bool { return !g.include(&t) })
	// Tasks of one scenario job lie together, in order of their index.
	slices.SortFunc(g.tasks, func(x, y googleTask) int {
		return cmp.Or(cmp.Compare(x.job, y.job), cmp.Compare(x.submit/int64(time.Second), y.submit/int64(time.Second)),
			cmp.Compare(x.priority, y.priority), cmp.Compare(x.index, y.index))
	})
	for len(g.tasks) > 0 {
		n := prefixLen(g.tasks, func(a, b *googleTask) bool { return a.job == b.job })
		g.job(g.tasks[:n], bands)
		g.tasks = g.tasks[n:]
	}
	if end := g.end(); end > 0 {
		g.file.Until = new(end)
	}
	return nil
}

// include is false for a task that is left out.
func (g *google) include(t *googleTask) bool {
	if !g.sampled(taskKey{t.job, t.index}.String()) || !g.inWindow(time.Duration(t.submit), 1) {
		return false
	}
	if t.run >= 0 {
		return true
	}
	if g.opts.NeverRan == NeverRanDrop {
		g.report.leaveOut(1, "tasks that never ran")
		return false
	}
	return true
}

// end is the end of the window: what ran then has an unknown rest. It does not
// come nearer when submissions are compressed, because durations stay.
func (g *google) end() scenario.Duration {
	end := time.Duration(g.window)
	if u := g.opts.Until; u != 0 && u < end {
		end = u
	}
	slow := g.pace(end)
	return max(slow, scenario.Duration(end-g.opts.From))
}

// prefixLen is how many leading tasks are like the first.
func prefixLen(tasks []googleTask, like func(a, b *googleTask) bool) int {
	n := 1
	for n < len(tasks) && like(&tasks[0], &tasks[n]) {
		n++
	}
	return n
}

// job turns the tasks of a job of the trace into one scenario job for each
// second and priority in which they were submitted.
func (g *google) job(tasks []googleTask, bands *bands) {
	same := func(a, b *googleTask) bool {
		return a.submit/int64(time.Second) == b.submit/int64(time.Second) && a.priority == b.priority
	}
	first, last := &tasks[0], &tasks[len(tasks)-1]
	times := first.submit/int64(time.Second) != last.submit/int64(time.Second)
	priorities := slices.ContainsFunc(tasks, func(t googleTask) bool { return t.priority != first.priority })
	alone := prefixLen(tasks, same) == len(tasks)
	for len(tasks) > 0 {
		n := prefixLen(tasks, same)
		id := fmt.Sprintf("j%d", tasks[0].job)
		if times {
			id += fmt.Sprintf("-%d", tasks[0].submit/int64(time.Second))
		}
		if priorities {
			id += fmt.Sprintf("-p%d", tasks[0].priority)
		}
		g.scenarioJob(id, tasks[:n], alone, bands)
		tasks = tasks[n:]
	}
}

// scenarioJob makes one scenario job; alone is whether the job of the trace has no
// other.
func (g *google) scenarioJob(id string, tasks []googleTask, alone bool, bands *bands) {
	t := &tasks[0]
	priority := g.priority(t, bands)
	j := scenario.Job{ID: id, Priority: &priority, Type: "batch", Groups: g.groups(tasks)}
	finite := slices.ContainsFunc(j.Groups, func(x scenario.Group) bool { return x.Duration > 0 })
	switch {
	case t.class >= 2 && !finite:
		j.Type = "service"
	case t.class >= 2:
		g.report.note(1, "latency-sensitive jobs (class 2, 3) of which tasks end in the window", "batch, not service")
	}
	if g.apart[t.job] {
		g.separateTasks(&j, t.job, alone)
	}
	w := submission{at: time.Duration(t.submit / int64(time.Second) * int64(time.Second)), job: j}
	if t.submit == 0 {
		// The burst of what was there before the window.
		w.rank[0] = -int64(priority)
	}
	w.rank[1] = int64(t.job)
	g.submit(w)
}

// priority maps 0..11 to three bands, or to itself in steps of ten.
func (g *google) priority(t *googleTask, bands *bands) int32 {
	band := "middle"
	switch {
	case t.priority <= 1:
		band = "free"
	case t.priority >= 9:
		band = "production"
	}
	word := strconv.Itoa(t.priority)
	if g.opts.RawPriority {
		if p, ok := bands.overrides[word]; ok {
			return p
		}
		return int32(t.priority) * 10
	}
	p, _ := bands.priority(word, band)
	return p
}

// separateTasks puts the tasks of a job on different machines. Within one group
// that is distinct_hosts; between groups, and between the scenario jobs that
// one job of the trace became, only a label can say it.
func (g *google) separateTasks(j *scenario.Job, job uint64, alone bool) {
	if alone && len(j.Groups) == 1 {
		j.Groups[0].Constraints = append(slices.Clone(j.Groups[0].Constraints),
			scenario.Constraint{Operator: string(model.OpDistinctHosts)})
		return
	}
	labels := map[string]string{"job": fmt.Sprintf("j%d", job)}
	for i := range j.Groups {
		j.Groups[i].Labels = labels
		j.Groups[i].Separate = []scenario.LabelTerm{{Labels: labels, TopologyKey: model.TopologyNode}}
	}
}

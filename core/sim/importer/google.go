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
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The trace expresses requests and capacities as fractions of its largest machine, with
// four significant digits. With these sizes of that machine the smallest request is 40
// millicores, and sums over all tasks are exact to a few millionths.
const (
	googleCPU    = 64_000      // millicores of 1.0
	googleMemory = 1024 * 1024 // MiB of 1.0
)

// googleTask is one row of tasks.csv, or the equivalent of a task's raw events.
type googleTask struct {
	job, index uint64
	priority   int
	class      int // scheduling class, 0 to 3
	submit     int64
	end        int64 // nanoseconds; -1 if it has not ended
	run        int64 // length of the last attempt; -1 if it never ran
	kind       taskKind
	cpu, mem   float64 // fractions; -1 if hidden
	disk       bool    // requests disk
	separate   machineSeparation
	clauses    string // constraints in the notation of the trace
}

// taskKind is the last observed state of a task.
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

// machineSeparation states if the tasks of a job must run on different machines.
type machineSeparation int8

const (
	separationUnknown machineSeparation = iota - 1
	separationOff
	separationOn
)

// google is one import of the trace.
type google struct {
	*build.Builder
	tasks      []googleTask
	attributes attributes
	window     int64 // end of the observed period, in nanoseconds
	separate   map[uint64]bool
}

// googleFiles lists the prefixes of the trace's file names.
var googleFiles = []string{"tasks", "machines", "task_events", "machine_events", "constraints", "machine_attributes"}

// Google imports the Google cluster trace of 2011. See the package documentation.
func Google(opts Options, src Source) (*scenario.File, *Report, error) {
	if src.File != "" && !slices.ContainsFunc(googleFiles, func(start string) bool { return strings.HasPrefix(src.File, start) }) {
		return nil, nil, fmt.Errorf("%s is not a file of the trace (%s); pass the folder of the trace",
			src.File, strings.Join(googleFiles, "…, ")+"…")
	}
	b, err := build.New("google", "Google cluster trace 2011-2", "google-2011", opts)
	if err != nil {
		return nil, nil, err
	}
	g := &google{Builder: b, separate: make(map[uint64]bool)}
	if err := g.load(src); err != nil {
		return nil, b.Report, err
	}
	if err := g.build(); err != nil {
		return nil, b.Report, err
	}
	return b.Finish()
}

// googleInputs lists the files that load reads.
func googleInputs(src Source) []string {
	list := append(src.Match("constraints*.csv"), src.Match("machine_attributes*.csv")...)
	for derived, kind := range map[string]string{"machines.csv": "machine_events", "tasks.csv": "task_events"} {
		if name := src.Find(derived); name != "" {
			list = append(list, name)
			continue
		}
		files, _ := rawFiles(src, kind) // reported when they are read
		list = append(list, files...)
	}
	return list
}

// load reads the derived files, or the raw ones if those do not exist.
func (g *google) load(src Source) error {
	src.Expect(googleInputs(src)...)
	var err error
	if src.Find("machines.csv") != "" {
		err = g.readMachines(src)
	} else {
		err = g.readMachineEvents(src)
	}
	if err != nil {
		return err
	}
	if src.Find("tasks.csv") != "" {
		err = g.readTasks(src)
	} else {
		err = g.readTaskEvents(src)
	}
	if err != nil {
		return err
	}
	return g.readConstraints(src)
}

// machine adds a machine. Its capacity is given as fractions; sized is false if it has none.
func (g *google) machine(t *build.Table, id uint64, cpu, mem float64, sized bool, platform string) {
	if !sized || cpu == 0 {
		g.Report.Note(1, "machines without a capacity", "left out")
		return
	}
	n := scenario.Node{
		ID:       strconv.FormatUint(id, 10),
		Capacity: scenario.Quantities{"cpu": scale(cpu, googleCPU), "memory": scale(mem, googleMemory)},
	}
	if platform != "" {
		n.Attributes = map[string]string{"platform": platform}
	}
	if !g.Node(n) {
		t.Fail("machine %d is listed twice", id)
	}
}

func scale(fraction float64, unit int64) int64 {
	return int64(math.Round(fraction * float64(unit)))
}

// build converts the tasks into scenario jobs.
func (g *google) build() error {
	bands := build.NewBands(map[string]int32{"free": 20, "middle": 50, "production": 80}, g.Opts.Bands)
	for i := range g.tasks {
		t := &g.tasks[i]
		g.separate[t.job] = g.separate[t.job] || t.separate == separationOn
		bands.See(strconv.Itoa(t.priority))
	}
	if err := bands.Unused(); err != nil {
		return err
	}
	g.tasks = slices.DeleteFunc(g.tasks, func(t googleTask) bool { return !g.include(&t) })
	// Sort so that the tasks of a scenario job are adjacent and ordered by index.
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
		g.File.Until = new(end)
	}
	return nil
}

// include reports whether a task is imported, and counts it if not.
func (g *google) include(t *googleTask) bool {
	if !g.Sampled(taskKey{t.job, t.index}.String()) || !g.InWindow(time.Duration(t.submit), 1) {
		return false
	}
	if t.run >= 0 {
		return true
	}
	if g.Opts.NeverRan == NeverRanDrop {
		g.Report.LeaveOut(1, "tasks that never ran")
		return false
	}
	return true
}

// end returns the end of the window, after which the rest of a task is unknown. It does
// not depend on Compress, because durations are not compressed.
func (g *google) end() scenario.Duration {
	end := time.Duration(g.window)
	if u := g.Opts.Until; u != 0 && u < end {
		end = u
	}
	slow := g.Pace(end)
	return max(slow, scenario.Duration(end-g.Opts.From))
}

// prefixLen returns the number of leading tasks that are like the first.
func prefixLen(tasks []googleTask, like func(a, b *googleTask) bool) int {
	n := 1
	for n < len(tasks) && like(&tasks[0], &tasks[n]) {
		n++
	}
	return n
}

// job converts the tasks of a job of the trace into one scenario job for each second and
// priority in which they were submitted.
func (g *google) job(tasks []googleTask, bands *build.Bands) {
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

// scenarioJob adds one scenario job. Alone is true if it holds all tasks of the job of
// the trace.
func (g *google) scenarioJob(id string, tasks []googleTask, alone bool, bands *build.Bands) {
	t := &tasks[0]
	priority := g.priority(t, bands)
	j := scenario.Job{ID: id, Priority: &priority, Type: "batch", Groups: g.groups(tasks)}
	finite := slices.ContainsFunc(j.Groups, func(x scenario.Group) bool { return x.Duration > 0 })
	switch {
	case t.class >= 2 && !finite:
		j.Type = "service"
	case t.class >= 2:
		g.Report.Note(1, "latency-sensitive jobs (class 2, 3) with tasks that end in the window", "imported as batch, not service")
	}
	if g.separate[t.job] {
		g.separateTasks(&j, t.job, alone)
	}
	w := build.Submission{At: time.Duration(t.submit / int64(time.Second) * int64(time.Second)), Job: j}
	if t.submit == 0 {
		// Tasks from before the window form the initial burst.
		w.Rank[0] = -int64(priority)
	}
	w.Rank[1] = int64(t.job)
	g.Submit(w)
}

// priority maps 0..11 to three bands, or to ten times the value if RawPriority is set.
func (g *google) priority(t *googleTask, bands *build.Bands) int32 {
	band := "middle"
	switch {
	case t.priority <= 1:
		band = "free"
	case t.priority >= 9:
		band = "production"
	}
	word := strconv.Itoa(t.priority)
	if g.Opts.RawPriority {
		if p, ok := g.Opts.Bands[word]; ok {
			return p
		}
		return int32(t.priority) * 10
	}
	p, _ := bands.Priority(word, band)
	return p
}

// separateTasks puts the tasks of a job on different machines. Within one group it uses
// distinct_hosts. Between groups, and between several scenario jobs of one job of the
// trace, only a label can express it.
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

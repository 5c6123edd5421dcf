package jobtrace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	gpuDevice = "nvidia/gpu" // prefix of the device IDs of GPUs

	maxNodes = 1 << 20         // of a cluster or a job: more is an input error
	maxGPUs  = 1 << 20         // of a job
	maxRun   = 1_000_000_000   // seconds: longer than any job, and valid in a scenario
	maxCPU   = 1_000_000       // cores of a job
	perNode  = 1 << 10         // GPUs of a node
	maxMiB   = model.MaxAmount // memory of a job
	milli    = 1000            // millicores of a core
)

// A record is one job of a log.
type record struct {
	id        string
	namespace string
	words     []string // that may select the priority, the most specific last
	submitted time.Time
	run       int64     // seconds
	state     runState  // of the run
	canceled  time.Time // end of a job that never ran
	nodes     int
	cpu       int64 // millicores of each instance
	memory    int64 // MiB of each instance; 0: unknown
	gpus      int   // of all instances
	gpuModel  string
	hosts     []int // GPUs of each instance, if the log states them; replaces nodes and gpus
	partition string
}

// runState states how much of a job's run the log contains.
type runState int

const (
	ran       runState = iota // from its start to its end
	running                   // it had not ended when the log was written
	neverRan                  // it was canceled, or was pending when the log was written
	backwards                 // it ended before it started
)

// tasks returns the number of instances.
func (r *record) tasks() int {
	if len(r.hosts) > 0 {
		return len(r.hosts)
	}
	return r.nodes
}

// A trace is an import of one log.
type trace struct {
	*build.Builder
	bands   *build.Bands
	noBands string // note on jobs without a priority; "": each band is noted
	records []record
	ids     map[string]bool
	shared  map[string]string // texts of the log, see intern
	parts   parts
}

// parts holds the parts of groups that jobs of the same size share. They are never modified.
type parts struct {
	counts      map[int]*int
	resources   map[[2]int64]scenario.Quantities // by CPU and memory
	devices     map[string][]scenario.DeviceRequest
	constraints map[string][]scenario.Constraint // by partition
}

// once returns the value of a key, which is created at its first use.
func once[K comparable, V any](values map[K]V, key K, create func() V) V {
	v, ok := values[key]
	if !ok {
		v = create()
		values[key] = v
	}
	return v
}

// intern returns a text that equals the one of a row and does not retain that row.
func (t *trace) intern(text string) string {
	if text == "" {
		return ""
	}
	shared, ok := t.shared[text]
	if !ok {
		shared = strings.Clone(text)
		t.shared[shared] = shared
	}
	return shared
}

func newTrace(format, title, stem string, opts build.Options, known map[string]int32) (*trace, error) {
	b, err := build.New(format, title, stem, opts)
	if err != nil {
		return nil, err
	}
	return &trace{
		Builder: b, bands: build.NewBands(known, opts.Bands), ids: map[string]bool{}, shared: map[string]string{},
		parts: parts{map[int]*int{}, map[[2]int64]scenario.Quantities{}, map[string][]scenario.DeviceRequest{}, map[string][]scenario.Constraint{}},
	}, nil
}

// add adds a record. It returns false if the id exists already.
func (t *trace) add(r record) (free bool) {
	if t.ids[r.id] {
		return false
	}
	r.id = strings.Clone(r.id)
	r.namespace, r.gpuModel, r.partition = t.intern(r.namespace), t.intern(r.gpuModel), t.intern(r.partition)
	for i := range r.words {
		r.words[i] = t.intern(r.words[i])
	}
	t.ids[r.id] = true
	t.records = append(t.records, r)
	return true
}

// finish converts the records into jobs. The nodes must be complete.
func (t *trace) finish() (*scenario.File, *build.Report, error) {
	if err := t.Shrink(); err != nil {
		return nil, t.Report, err
	}
	var first time.Time
	for i := range t.records {
		if at := t.records[i].submitted; i == 0 || at.Before(first) {
			first = at
		}
	}
	// In the order of submission, so that jobs beyond the limit are not created.
	slices.SortStableFunc(t.records, func(a, b record) int { return a.submitted.Compare(b.submitted) })
	t.ids = nil
	jobs := len(t.records)
	if t.Opts.Limit != 0 {
		jobs = min(jobs, t.Opts.Limit)
	}
	t.Expect(jobs)
	jobs = 0
	for i := range t.records {
		if t.submit(&t.records[i], first, t.Opts.Limit == 0 || jobs < t.Opts.Limit) {
			jobs++
		}
		t.records[i] = record{} // the memory is used by the jobs
	}
	t.records = nil
	if err := t.bands.Unused(); err != nil {
		return nil, t.Report, err
	}
	return t.Finish()
}

// submit adds a job. It returns false if the job is left out. Without hasSpace the limit of
// jobs is reached.
func (t *trace) submit(r *record, first time.Time, hasSpace bool) bool {
	tasks := r.tasks()
	t.Report.TasksRead += tasks
	w := build.Submission{At: r.submitted.Sub(first)}
	if !build.Sampled(r.id, t.Opts.Sample) {
		t.Report.LeaveOut(tasks, "tasks outside the sample")
		return false
	}
	if !t.InWindow(w.At, tasks) || !t.setRun(r, &w, first) {
		return false
	}
	if !hasSpace {
		t.Report.LeaveOut(tasks, build.BeyondLimit)
		return false
	}
	w.Job = scenario.Job{
		ID: r.id, Namespace: r.namespace, Type: "batch", AllAtOnce: tasks > 1,
		Priority: new(t.priority(r)), Groups: t.groups(r),
	}
	for i := range w.Job.Groups {
		if r.state == ran {
			w.Job.Groups[i].Duration = scenario.Duration(max(r.run, 1)) * scenario.Duration(time.Second)
		}
	}
	t.Submit(w)
	return true
}

// setRun checks the run of a job, and sets the end of one that never ran. It returns false
// if the job is left out.
func (t *trace) setRun(r *record, w *build.Submission, first time.Time) bool {
	tasks := r.tasks()
	switch r.state {
	case backwards:
		t.Report.LeaveOut(tasks, "tasks of jobs that ended before they started")
		return false
	case running:
		t.Report.Note(tasks, "tasks that were running when the log was written", "unlimited duration")
	case neverRan:
		if t.Opts.NeverRan != build.NeverRanKeep {
			t.Report.LeaveOut(tasks, "tasks of jobs that never ran and have no duration")
			return false
		}
		if r.canceled.IsZero() {
			t.Report.Note(tasks, "tasks that were pending when the log was written", "imported; unlimited duration")
			break
		}
		t.Report.Note(tasks, "tasks of jobs that never ran", "imported; stopped when the log cancels them")
		w.Quits = max(r.canceled.Sub(first), w.At+time.Second)
	case ran:
		if r.run == 0 {
			t.Report.Note(tasks, "tasks with a run time of 0", "duration 1s")
		}
	}
	return true
}

func (t *trace) priority(r *record) int32 {
	p, known := t.bands.Priority(r.words...)
	switch {
	case known:
	case t.noBands != "":
		t.Report.Note(1, t.noBands, fmt.Sprintf("priority %d, unless --band sets another", p))
	default:
		t.Report.Note(1, fmt.Sprintf("jobs of %.60s, which has no band", strings.Join(r.words, "/")), fmt.Sprintf("priority %d, unless --band sets another", p))
	}
	return p
}

// groups returns one group for each number of GPUs that an instance has.
func (t *trace) groups(r *record) []scenario.Group {
	byGPUs := map[int]int{} // number of instances
	switch each, more := r.gpus/max(r.nodes, 1), r.gpus%max(r.nodes, 1); {
	case len(r.hosts) > 0:
		for _, n := range r.hosts {
			byGPUs[n]++
		}
	default:
		byGPUs[each] = r.nodes - more
		if more > 0 {
			byGPUs[each+1] = more
			t.Report.Note(1, "jobs whose GPUs cannot be divided evenly over their nodes", "some instances have one more")
		}
	}
	var counts []int
	for n := range byGPUs {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	var groups []scenario.Group
	for i, n := range counts {
		count := byGPUs[n]
		g := scenario.Group{
			Name: t.intern("g" + strconv.Itoa(i)), Count: once(t.parts.counts, count, func() *int { return &count }),
			Resources: once(t.parts.resources, [2]int64{r.cpu, r.memory}, func() scenario.Quantities { return quantities(r) }),
		}
		if n > 0 {
			g.Devices = once(t.parts.devices, strconv.Itoa(n)+r.gpuModel, func() []scenario.DeviceRequest { return devices(r.gpuModel, n) })
		}
		if r.partition != "" {
			g.Constraints = once(t.parts.constraints, r.partition, func() []scenario.Constraint {
				return []scenario.Constraint{{Attribute: partitionAttribute(r.partition), Operator: string(model.OpIsSet)}}
			})
		}
		groups = append(groups, g)
	}
	return groups
}

// quantities returns the resources of an instance.
func quantities(r *record) scenario.Quantities {
	q := scenario.Quantities{}
	if r.cpu > 0 {
		q["cpu"] = r.cpu
	}
	if r.memory > 0 {
		q["memory"] = r.memory
	}
	return q
}

// devices returns a request for a number of GPUs; an empty model matches any.
func devices(gpuModel string, count int) []scenario.DeviceRequest {
	id := gpuDevice
	if gpuModel != "" {
		id += "/" + build.CleanName(gpuModel)
	}
	return []scenario.DeviceRequest{{ID: id, Count: new(int32(count))}}
}

// perInstance returns the share of an instance in a total, rounded up.
func perInstance(total int64, nodes int) int64 {
	n := int64(max(nodes, 1))
	return total/n + (total%n+n-1)/n
}

// gpuNode returns a node with GPUs.
func gpuNode(id string, gpus int, gpuModel string) scenario.Node {
	n := scenario.Node{ID: id, Capacity: scenario.Quantities{}}
	if gpus > 0 {
		n.Devices = []scenario.Device{{ID: gpuDevice + "/" + build.CleanName(gpuModel), Count: int32(gpus)}}
	}
	return n
}

// setRun sets the run from the times of its start and its end.
func (r *record) setRun(started time.Time, hasStart bool, ended time.Time, hasEnd bool) {
	switch {
	case !hasStart:
		r.state = neverRan
		if hasEnd {
			r.canceled = ended
		}
	case !hasEnd:
		r.state = running
	case ended.Before(started):
		r.state = backwards
	default:
		r.run = int64(ended.Sub(started) / time.Second)
	}
}

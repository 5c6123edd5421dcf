package build

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A Builder builds a scenario. Importers add nodes first, then jobs in any order. The
// builder alone applies the options for nodes, window, limit and pace.
type Builder struct {
	Opts        Options
	Report      *Report
	File        *scenario.File
	names       map[string]bool // names in use, by kind
	submissions []queued
	jobs        []scenario.Job // in order of addition
}

// A Submission is a job with the time in the trace at which it was submitted.
type Submission struct {
	At    time.Duration
	Rank  [2]int64      // order among jobs of the same time; ties in order of addition
	Quits time.Duration // the job is stopped; 0: it is not
	Job   scenario.Job
}

// queued is a submission. Its job is in the builder's list: jobs are large, and no second
// list of them is made.
type queued struct {
	at    time.Duration
	rank  [2]int64
	quits time.Duration
	tasks int
	job   int // position in the list
}

// New starts an import. Trace is the name for messages, stem the prefix of the
// scenario's name. It returns an error if the options are invalid.
func New(format, trace, stem string, opts Options) (*Builder, error) {
	if err := errors.Join(opts.Validate(), opts.RejectForeign(format)); err != nil {
		return nil, err
	}
	name := opts.Name
	if name == "" {
		name = CleanName(strings.Join(append([]string{stem}, opts.Selection("")...), "-"))
	}
	return &Builder{
		Opts:   opts,
		Report: &Report{Trace: trace},
		File:   &scenario.File{Version: 1, Name: name, Description: trace + ", " + opts.describe()},
		names:  make(map[string]bool),
	}, nil
}

// OpenTable opens a CSV file and records it in the report.
func (b *Builder) OpenTable(src Source, name string, columns ...string) (*Table, error) {
	b.Report.Files = append(b.Report.Files, name)
	t, err := src.Table(name, columns...)
	if err == nil {
		t.report = b.Report
	}
	return t, err
}

// OpenSeparated is Source.Separated, and records the file in the report.
func (b *Builder) OpenSeparated(src Source, name, sep string) (*Table, error) {
	b.Report.Files = append(b.Report.Files, name)
	t, err := src.Separated(name, sep)
	if err == nil {
		t.lines.report = b.Report
	}
	return t, err
}

// OpenLines is Source.Lines, and records the file in the report.
func (b *Builder) OpenLines(src Source, name string) (*Lines, error) {
	b.Report.Files = append(b.Report.Files, name)
	l, err := src.Lines(name)
	if err == nil {
		l.report = b.Report
	}
	return l, err
}

// Node adds a node. It returns false if a node of that name exists already.
func (b *Builder) Node(n scenario.Node) (free bool) {
	free = b.ReserveName("node ", n.ID)
	b.File.Nodes = append(b.File.Nodes, n)
	return free
}

// ReserveName reports whether a name of a kind was unused, and marks it as used.
func (b *Builder) ReserveName(kind, name string) bool {
	taken := b.names[kind+name]
	b.names[kind+name] = true
	return !taken
}

// Name returns a valid name for text, and counts it if that required a change.
func (b *Builder) Name(text string) string {
	n := CleanName(text)
	if n != text {
		b.Report.Note(1, "names with characters other than a-z, 0-9, dot and dash", "converted to lower case and dashes")
	}
	return n
}

// CleanName returns text with the characters that a name must not contain replaced.
func CleanName(text string) string {
	n := []byte(strings.ToLower(text))
	for i, c := range n {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			n[i] = '-'
		}
	}
	if len(n) == 0 {
		return "unnamed"
	}
	return string(n)
}

// Shrink removes the nodes that the options exclude. It must run after the last node.
func (b *Builder) Shrink() error {
	b.Report.NodesRead = len(b.File.Nodes)
	b.File.Nodes = b.Opts.shrink(b.File.Nodes)
	b.Report.Nodes = len(b.File.Nodes)
	switch {
	case b.Report.Nodes > 0 && b.Report.Nodes < b.Opts.Nodes:
		return fmt.Errorf("nodes %d: the trace has %d; use at most that number", b.Opts.Nodes, b.Report.Nodes)
	case b.Report.Nodes > 0:
		return nil
	case b.Report.NodesRead > 0:
		return fmt.Errorf("none of the %d nodes is in the sample; use a larger one", b.Report.NodesRead)
	}
	return b.FilesError(errors.New("no nodes"))
}

// InWindow reports whether the window contains a submit time, and counts the tasks if not.
func (b *Builder) InWindow(at time.Duration, tasks int) bool {
	if at < b.Opts.From || b.Opts.Until != 0 && at >= b.Opts.Until {
		b.Report.LeaveOut(tasks, "tasks submitted outside the chosen window")
		return false
	}
	return true
}

// Sampled reports whether the sample contains an id, and counts it if not.
func (b *Builder) Sampled(id string) bool {
	if !Sampled(id, b.Opts.Sample) {
		b.Report.LeaveOut(1, "tasks outside the sample")
		return false
	}
	return true
}

// Expect prepares for a number of jobs.
func (b *Builder) Expect(jobs int) {
	b.submissions, b.jobs = slices.Grow(b.submissions, jobs), slices.Grow(b.jobs, jobs)
}

// Submit adds a job.
func (b *Builder) Submit(w Submission) {
	q := queued{at: w.At, rank: w.Rank, quits: w.Quits, job: len(b.jobs)}
	for i := range w.Job.Groups {
		q.tasks += *w.Job.Groups[i].Count
	}
	b.submissions = append(b.submissions, q)
	b.jobs = append(b.jobs, w.Job)
}

// Pace returns the scenario time of a time of the trace.
func (b *Builder) Pace(at time.Duration) scenario.Duration {
	at -= b.Opts.From
	if k := b.Opts.Compress; k != 0 && k != 1 {
		// One division and one rounding to whole microseconds give the same
		// result on every platform, and readable times.
		at = time.Duration(math.Round(float64(at/time.Microsecond)/k)) * time.Microsecond
	}
	return scenario.Duration(at)
}

// BeyondLimit is the note on tasks that Options.Limit leaves out.
const BeyondLimit = "tasks beyond the limit of jobs"

// Finish sorts the jobs, adds the events, and completes the report.
func (b *Builder) Finish() (*scenario.File, *Report, error) {
	slices.SortStableFunc(b.submissions, func(x, y queued) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rank[0], y.rank[0]), cmp.Compare(x.rank[1], y.rank[1]))
	})
	b.sortJobs()
	if b.Opts.Limit != 0 && len(b.submissions) > b.Opts.Limit {
		for _, w := range b.submissions[b.Opts.Limit:] {
			b.Report.LeaveOut(w.tasks, BeyondLimit)
		}
		b.submissions, b.jobs = b.submissions[:b.Opts.Limit], slices.Clone(b.jobs[:b.Opts.Limit])
	}
	if len(b.submissions) == 0 {
		return nil, b.Report, fmt.Errorf("none of the %d tasks is imported:\n%s", b.Report.TasksRead, b.Report)
	}
	b.events()
	b.count()
	// Valid rows may still exceed the limits of a scenario, such as a node of
	// 2^60 bytes.
	if err := b.File.Validate(); err != nil {
		return nil, b.Report, b.FilesError(fmt.Errorf("the resulting scenario is invalid: %w", err))
	}
	return b.File, b.Report, nil
}

// sortJobs puts the jobs into the order of the submissions, in place: it follows each cycle of
// the permutation.
func (b *Builder) sortJobs() {
	for start := range b.submissions {
		first := b.jobs[start]
		for i := start; ; {
			from := b.submissions[i].job
			b.submissions[i].job = i
			if from == start {
				b.jobs[i] = first
				break
			}
			b.jobs[i] = b.jobs[from]
			i = from
		}
	}
}

func (b *Builder) events() {
	f := b.File
	f.Jobs = b.jobs
	f.Events = make([]scenario.Event, 0, len(b.submissions))
	var stops []scenario.Event
	for i := range b.submissions {
		w := &b.submissions[i]
		at, id := b.Pace(w.at), f.Jobs[i].ID
		f.Events = append(f.Events, scenario.Event{At: at, Submit: id})
		if w.quits > 0 {
			stops = append(stops, scenario.Event{At: at + scenario.Duration(w.quits-w.at), Stop: id})
		}
	}
	f.Events = append(f.Events, stops...)
	slices.SortStableFunc(f.Events, func(x, y scenario.Event) int { return cmp.Compare(x.At, y.At) })
}

func (b *Builder) count() {
	r := b.Report
	r.Jobs = len(b.File.Jobs)
	for i := range b.submissions {
		r.Tasks += b.submissions[i].tasks
		r.Groups += len(b.File.Jobs[i].Groups)
	}
	r.First, r.Last = b.Pace(b.submissions[0].at), b.Pace(b.submissions[len(b.submissions)-1].at)
	b.countUnfit()
}

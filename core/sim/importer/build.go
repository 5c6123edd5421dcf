package importer

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

// builder builds a scenario. Importers add nodes first, then jobs in any order. The
// builder alone applies the options for nodes, window, limit and pace.
type builder struct {
	opts        Options
	report      *Report
	file        *scenario.File
	names       map[string]bool // names in use, by kind
	submissions []submission
}

// submission is a job with the time in the trace at which it was submitted.
type submission struct {
	at    time.Duration
	rank  [2]int64 // order among jobs of the same time; ties in order of addition
	quits time.Duration
	job   scenario.Job
	tasks int
}

// newBuilder starts an import. Trace is the name for messages, stem the prefix of the
// scenario's name. It returns an error if the options are invalid.
func newBuilder(format, trace, stem string, opts Options) (*builder, error) {
	if err := errors.Join(opts.Validate(), opts.rejectForeign(format)); err != nil {
		return nil, err
	}
	name := opts.Name
	if name == "" {
		name = cleanName(strings.Join(append([]string{stem}, opts.selection("")...), "-"))
	}
	return &builder{
		opts:   opts,
		report: &Report{Trace: trace},
		file:   &scenario.File{Version: 1, Name: name, Description: trace + ", " + opts.describe()},
		names:  make(map[string]bool),
	}, nil
}

// openTable opens a CSV file and records it in the report.
func (b *builder) openTable(src Source, name string, columns ...string) (*table, error) {
	b.report.Files = append(b.report.Files, name)
	return src.table(name, columns...)
}

// node adds a node. It returns false if a node of that name exists already.
func (b *builder) node(n scenario.Node) (free bool) {
	free = b.reserveName("node ", n.ID)
	b.file.Nodes = append(b.file.Nodes, n)
	return free
}

// reserveName reports whether a name of a kind was unused, and marks it as used.
func (b *builder) reserveName(kind, name string) bool {
	taken := b.names[kind+name]
	b.names[kind+name] = true
	return !taken
}

// name returns a valid name for text, and counts it if that required a change.
func (b *builder) name(text string) string {
	n := cleanName(text)
	if n != text {
		b.report.note(1, "names with characters other than a-z, 0-9, dot and dash", "converted to lower case and dashes")
	}
	return n
}

// CleanName returns text with the characters that a name must not contain replaced.
func CleanName(text string) string { return cleanName(text) }

func cleanName(text string) string {
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

// shrink removes the nodes that the options exclude. It must run after the last node.
func (b *builder) shrink() error {
	b.report.NodesRead = len(b.file.Nodes)
	b.file.Nodes = b.opts.shrink(b.file.Nodes)
	b.report.Nodes = len(b.file.Nodes)
	switch {
	case b.report.Nodes > 0 && b.report.Nodes < b.opts.Nodes:
		return fmt.Errorf("nodes %d: the trace has %d; use at most that number", b.opts.Nodes, b.report.Nodes)
	case b.report.Nodes > 0:
		return nil
	case b.report.NodesRead > 0:
		return fmt.Errorf("none of the %d nodes is in the sample; use a larger one", b.report.NodesRead)
	}
	return b.filesError(errors.New("no nodes"))
}

// inWindow reports whether the window contains a submit time, and counts the tasks if not.
func (b *builder) inWindow(at time.Duration, tasks int) bool {
	if at < b.opts.From || b.opts.Until != 0 && at >= b.opts.Until {
		b.report.leaveOut(tasks, "tasks submitted outside the chosen window")
		return false
	}
	return true
}

// sampled reports whether the sample contains an id, and counts it if not.
func (b *builder) sampled(id string) bool {
	if !Sampled(id, b.opts.Sample) {
		b.report.leaveOut(1, "tasks outside the sample")
		return false
	}
	return true
}

func (b *builder) submit(w submission) {
	for i := range w.job.Groups {
		w.tasks += *w.job.Groups[i].Count
	}
	b.submissions = append(b.submissions, w)
}

// pace returns the scenario time of a time of the trace.
func (b *builder) pace(at time.Duration) scenario.Duration {
	at -= b.opts.From
	if k := b.opts.Compress; k != 0 && k != 1 {
		// One division and one rounding to whole microseconds give the same
		// result on every platform, and readable times.
		at = time.Duration(math.Round(float64(at/time.Microsecond)/k)) * time.Microsecond
	}
	return scenario.Duration(at)
}

// finish sorts the jobs, adds the events, and completes the report.
func (b *builder) finish() (*scenario.File, *Report, error) {
	slices.SortStableFunc(b.submissions, func(x, y submission) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rank[0], y.rank[0]), cmp.Compare(x.rank[1], y.rank[1]))
	})
	if b.opts.Limit != 0 && len(b.submissions) > b.opts.Limit {
		for _, w := range b.submissions[b.opts.Limit:] {
			b.report.leaveOut(w.tasks, "tasks beyond the limit of jobs")
		}
		b.submissions = b.submissions[:b.opts.Limit]
	}
	if len(b.submissions) == 0 {
		return nil, b.report, fmt.Errorf("none of the %d tasks is imported:\n%s", b.report.TasksRead, b.report)
	}
	b.events()
	b.count()
	// Valid rows may still exceed the limits of a scenario, such as a node of
	// 2^60 bytes.
	if err := b.file.Validate(); err != nil {
		return nil, b.report, b.filesError(fmt.Errorf("the resulting scenario is invalid: %w", err))
	}
	return b.file, b.report, nil
}

func (b *builder) events() {
	f := b.file
	f.Jobs = make([]scenario.Job, 0, len(b.submissions))
	f.Events = make([]scenario.Event, 0, len(b.submissions))
	var stops []scenario.Event
	for i := range b.submissions {
		w := &b.submissions[i]
		at := b.pace(w.at)
		f.Jobs = append(f.Jobs, w.job)
		f.Events = append(f.Events, scenario.Event{At: at, Submit: w.job.ID})
		if w.quits > 0 {
			stops = append(stops, scenario.Event{At: at + scenario.Duration(w.quits-w.at), Stop: w.job.ID})
		}
	}
	f.Events = append(f.Events, stops...)
	slices.SortStableFunc(f.Events, func(x, y scenario.Event) int { return cmp.Compare(x.At, y.At) })
}

func (b *builder) count() {
	r := b.report
	r.Jobs = len(b.file.Jobs)
	for i := range b.submissions {
		r.Tasks += b.submissions[i].tasks
		r.Groups += len(b.submissions[i].job.Groups)
	}
	r.First, r.Last = b.pace(b.submissions[0].at), b.pace(b.submissions[len(b.submissions)-1].at)
	b.countUnfit()
}

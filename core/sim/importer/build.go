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

// builder collects a scenario. Importers give it nodes first, then work in any
// order; what the options say about nodes, windows, limits and pace is its
// business alone.
type builder struct {
	opts        Options
	report      *Report
	file        *scenario.File
	names       map[string]bool // taken, per kind
	submissions []submission
}

// submission is a job with the time of the trace at which it was submitted.
type submission struct {
	at    time.Duration
	rank  [2]int64 // order among those of one instant; then as added
	quits time.Duration
	job   scenario.Job
	tasks int
}

// newBuilder starts an import; trace names it for people, stem for machines.
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

// openTable opens a CSV file and remembers that it was used.
func (b *builder) openTable(src Source, name string, columns ...string) (*table, error) {
	b.report.Files = append(b.report.Files, name)
	return src.table(name, columns...)
}

// node adds a node; free is false when there is one of that name already.
func (b *builder) node(n scenario.Node) (free bool) {
	free = b.reserveName("node ", n.ID)
	b.file.Nodes = append(b.file.Nodes, n)
	return free
}

func (b *builder) reserveName(kind, name string) bool {
	taken := b.names[kind+name]
	b.names[kind+name] = true
	return !taken
}

// name makes a text fit for a name and counts it when that changed it.
func (b *builder) name(text string) string {
	n := cleanName(text)
	if n != text {
		b.report.note(1, "names with other characters than a-z, 0-9, dot and dash", "written in lower case, with dashes")
	}
	return n
}

// CleanName replaces what a name must not have.
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

// shrink ends the nodes.
func (b *builder) shrink() error {
	b.report.NodesRead = len(b.file.Nodes)
	b.file.Nodes = b.opts.shrink(b.file.Nodes)
	b.report.Nodes = len(b.file.Nodes)
	switch {
	case b.report.Nodes > 0 && b.report.Nodes < b.opts.Nodes:
		return fmt.Errorf("nodes %d: there are %d; ask for no more", b.opts.Nodes, b.report.Nodes)
	case b.report.Nodes > 0:
		return nil
	case b.report.NodesRead > 0:
		return fmt.Errorf("none of the %d nodes is in the sample; ask for a larger one", b.report.NodesRead)
	}
	return b.filesError(errors.New("no nodes"))
}

// inWindow is whether work submitted at a time is wanted, and counts it when not.
func (b *builder) inWindow(at time.Duration, tasks int) bool {
	if at < b.opts.From || b.opts.Until != 0 && at >= b.opts.Until {
		b.report.leaveOut(tasks, "tasks submitted outside the chosen window")
		return false
	}
	return true
}

// sampled is whether work of this id is wanted, and counts it when not.
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

// pace is where a time of the trace lies in the scenario.
func (b *builder) pace(at time.Duration) scenario.Duration {
	at -= b.opts.From
	if k := b.opts.Compress; k != 0 && k != 1 {
		// One division and one rounding to whole microseconds: the same
		// everywhere, and readable.
		at = time.Duration(math.Round(float64(at/time.Microsecond)/k)) * time.Microsecond
	}
	return scenario.Duration(at)
}

// finish orders the work, writes the events, and counts.
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
		return nil, b.report, fmt.Errorf("no work is left of the %d tasks that were read:\n%s", b.report.TasksRead, b.report)
	}
	b.events()
	b.count()
	// What the readers let pass may still be more than a scenario can say,
	// such as a node of 2^60 bytes.
	if err := b.file.Validate(); err != nil {
		return nil, b.report, b.filesError(fmt.Errorf("the scenario would not be valid: %w", err))
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

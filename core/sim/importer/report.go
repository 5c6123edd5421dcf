package importer

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Report says what an import read, what became of it, and what of the trace
// the scenario does not tell.
//
// Invariant: TasksRead is Tasks plus the counts of the notes that are LeftOut.
type Report struct {
	Trace     string            `json:"trace"`
	Files     []string          `json:"files"`     // read, in order
	NodesRead int               `json:"nodesRead"` // in the trace
	Nodes     int               `json:"nodes"`     // in the scenario
	TasksRead int               `json:"tasksRead"`
	Tasks     int               `json:"tasks"`
	Jobs      int               `json:"jobs"` // in the scenario
	Groups    int               `json:"groups"`
	First     scenario.Duration `json:"first"` // submission
	Last      scenario.Duration `json:"last"`
	Running   int               `json:"running,omitempty"` // of Tasks, at the start: dumps of clusters
	Budgets   int               `json:"budgets,omitempty"`
	Notes     []Note            `json:"notes"`

	// What could not be read and is in none of the numbers above: how many objects
	// of a dump, and the first of them.
	Unread []Unread `json:"unread,omitempty"`
	Lost   int      `json:"lost,omitempty"`
}

// Unread is an object of a dump that could not be read.
type Unread struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Object string `json:"object"` // kind and name, or its number in the file
	Reason string `json:"why"`
}

// Note counts one oddity.
type Note struct {
	Count   int    `json:"count"`
	What    string `json:"what"`
	Done    string `json:"done"`              // with it
	LeftOut bool   `json:"leftOut,omitempty"` // Count is of tasks, and they are not in the scenario
}

// note counts n more of an oddity. Notes keep the order in which they were
// first made.
func (r *Report) note(n int, what, done string) { r.add(n, what, done, false) }

// leaveOut counts n tasks that are not imported.
func (r *Report) leaveOut(n int, what string) { r.add(n, what, "left out", true) }

func (r *Report) add(n int, what, done string, out bool) {
	if n == 0 {
		return
	}
	for i := range r.Notes {
		if x := &r.Notes[i]; x.What == what && x.Done == done {
			x.Count += n
			return
		}
	}
	r.Notes = append(r.Notes, Note{Count: n, What: what, Done: done, LeftOut: out})
}

// String is the report as a small table.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Trace, strings.Join(r.Files, ", "))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(n int, text string) { fmt.Fprintf(w, "%s\t\t%s\n", thousands(n), text) }
	line(r.Nodes, "nodes, of "+thousands(r.NodesRead))
	line(r.Tasks, "tasks, of "+thousands(r.TasksRead))
	if r.Running == 0 {
		line(r.Jobs, fmt.Sprintf("jobs with %s groups, submitted from %v to %v",
			thousands(r.Groups), r.First, r.Last))
	} else {
		line(r.Jobs, fmt.Sprintf("jobs with %s groups; %s tasks run at the start, %s are submitted then",
			thousands(r.Groups), thousands(r.Running), thousands(r.Tasks-r.Running)))
	}
	if r.Budgets > 0 {
		line(r.Budgets, "disruption budgets")
	}
	for _, n := range r.Notes {
		line(n.Count, n.What+": "+n.Done)
	}
	if r.Lost > 0 {
		line(r.Lost, "objects that could not be read: left out")
	}
	_ = w.Flush() // to memory
	for _, u := range r.Unread {
		fmt.Fprintf(&b, "  %s:%d: %s: %s\n", u.File, u.Line, u.Object, u.Reason)
	}
	if more := r.Lost - len(r.Unread); more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", thousands(more))
	}
	return b.String()
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

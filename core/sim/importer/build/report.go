package build

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Report summarizes an import: the input, the result, and the facts of the trace that the
// scenario does not contain.
//
// Invariant: TasksRead is Tasks plus the counts of the notes that are LeftOut.
type Report struct {
	Trace     string            `json:"trace"`
	Files     []string          `json:"files"`     // in order of reading
	NodesRead int               `json:"nodesRead"` // in the trace
	Nodes     int               `json:"nodes"`     // in the scenario
	TasksRead int               `json:"tasksRead"`
	Tasks     int               `json:"tasks"`
	Jobs      int               `json:"jobs"` // in the scenario
	Groups    int               `json:"groups"`
	First     scenario.Duration `json:"first"` // first submission
	Last      scenario.Duration `json:"last"`
	Running   int               `json:"running,omitempty"` // tasks that run at the start, for dumps
	Budgets   int               `json:"budgets,omitempty"`
	Notes     []Note            `json:"notes"`

	// Unread lists the first objects of a dump that could not be read, Lost is
	// their number. No other count includes them.
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

// Note counts one kind of deviation from the trace.
type Note struct {
	Count    int    `json:"count"`
	Subject  string `json:"what"`
	Handling string `json:"done"`              // how the import handles it
	LeftOut  bool   `json:"leftOut,omitempty"` // Count is a number of tasks that the scenario does not contain
}

// Note adds n to the count of a note. Notes are listed in order of first occurrence.
func (r *Report) Note(n int, subject, handling string) { r.Add(n, subject, handling, false) }

// LeaveOut counts n tasks that are not imported.
func (r *Report) LeaveOut(n int, subject string) { r.Add(n, subject, "left out", true) }

// Add adds n to the count of a note. LeftOut states if it counts tasks that are left out.
func (r *Report) Add(n int, subject, handling string, out bool) {
	if n == 0 {
		return
	}
	for i := range r.Notes {
		if x := &r.Notes[i]; x.Subject == subject && x.Handling == handling {
			x.Count += n
			return
		}
	}
	r.Notes = append(r.Notes, Note{Count: n, Subject: subject, Handling: handling, LeftOut: out})
}

// String returns the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Trace, strings.Join(r.Files, ", "))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(n int, text string) { fmt.Fprintf(w, "%s\t\t%s\n", thousands(n), text) }
	noun := func(n int, one, many string) string {
		if n == 1 {
			return one
		}
		return many
	}
	line(r.Nodes, noun(r.Nodes, "node", "nodes")+", of "+thousands(r.NodesRead))
	line(r.Tasks, noun(r.Tasks, "task", "tasks")+", of "+thousands(r.TasksRead))
	jobs := noun(r.Jobs, "job", "jobs") + " with " + thousands(r.Groups) + noun(r.Groups, " group", " groups")
	if r.Running == 0 {
		line(r.Jobs, fmt.Sprintf("%s, submitted from %v to %v", jobs, r.First, r.Last))
	} else {
		line(r.Jobs, fmt.Sprintf("%s; %s at the start, %s submitted then", jobs,
			thousands(r.Running)+noun(r.Running, " task runs", " tasks run"), thousands(r.Tasks-r.Running)+noun(r.Tasks-r.Running, " is", " are")))
	}
	if r.Budgets > 0 {
		line(r.Budgets, noun(r.Budgets, "disruption budget", "disruption budgets"))
	}
	for _, n := range r.Notes {
		line(n.Count, n.Subject+": "+n.Handling) // a category, whatever its number
	}
	if r.Lost > 0 {
		line(r.Lost, noun(r.Lost, "object", "objects")+" that could not be read: left out")
	}
	_ = w.Flush() // a strings.Builder never fails
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

package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	// maxProblems bounds the memory that a hostile file can occupy with problems.
	maxProblems = 200
	// maxPrinted is the number of problems that one message lists.
	maxPrinted = 50
)

// A Problem is one error in a job.
type Problem struct {
	File    string `json:"file,omitempty"` // the name passed by the caller
	Line    int    `json:"line,omitempty"` // from 1; 0 if the job was not read from a file
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // such as TaskGroups[0].Count; "" for the job itself
	Message string `json:"message"`        // the invalid value and the expected one
	Remedy  string `json:"remedy"`         // how to correct it

	inSyntax bySyntax // replaces Remedy if the job was read from a file; zero: the same
}

// A bySyntax holds a remedy in each syntax of job files.
type bySyntax struct {
	api  string // JSON with the names of the API
	json string // JSON with the names of scenarios; "": the same as api
	hcl  string
	yaml string
}

// String returns the problem in one line.
func (p *Problem) String() string {
	var b strings.Builder
	switch {
	case p.File != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		b.WriteString(p.File + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// Problems lists all errors of a job in the order of the file.
type Problems []Problem //nolint:errname // a list of problems, over which callers range

// Error returns the problems, one per line. Beyond maxPrinted it returns their number.
func (ps Problems) Error() string {
	var lines []string
	var lists suggest.Lists
	for i := range ps {
		if i == maxPrinted {
			lines = append(lines, "and "+model.Counted(len(ps)-i, "more problem", "more problems"))
			break
		}
		p := ps[i]
		p.Remedy = lists.Once(p.Remedy)
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// err sorts the problems by position and returns nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

// A position is a line and a column of a file, both from 1.
type position struct{ line, column int }

// A parser holds the state of reading one file: its problems, and the positions of
// the parts of the job.
type parser struct {
	file     string
	syntax   string // HCL, YAML or JSON; apiSyntax for the JSON of the API
	problems Problems
	// origins holds the position and the name in the file for each API path that was read.
	origins map[string]origin
	// rejected holds the API paths that have a problem. Validation skips them,
	// because their values differ from those in the file.
	rejected map[string]bool

	schedulingOnly bool
	ignored        map[string]int // by name; nil: nothing
	nodePool       string         // Nomad's node pool, where the file names one
}

// An origin is the position of a value, and the name of its field in the file.
type origin struct {
	at   position
	name string
}

func newParser(file string) *parser {
	return &parser{file: file, origins: map[string]origin{}, rejected: map[string]bool{}}
}

func (r *parser) add(at position, message, remedy string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{File: r.file, Line: max(at.line, 1), Column: max(at.column, 1), Message: message, Remedy: remedy})
	}
}

// remedyOf returns the remedy in the syntax of the file.
func (r *parser) remedyOf(s bySyntax) string {
	switch r.syntax {
	case HCL:
		return s.hcl
	case YAML:
		return s.yaml
	case JSON:
		return cmp.Or(s.json, s.api)
	}
	return s.api
}

// reject adds a problem and marks the path as rejected.
func (r *parser) reject(path string, at position, message, remedy string) {
	r.rejected[path] = true
	r.add(at, message, remedy)
}

// isFull reports whether the limit on problems is reached and reading can stop.
func (r *parser) isFull() bool { return len(r.problems) >= maxProblems }

// Warnings returns a message for each setting of a job that has no effect, or another one
// than in Nomad. The job m is the converted j.
func Warnings(j *client.Job, m *model.Job) (list []string) {
	if operators := JobWideCounts(j); len(operators) > 0 {
		verb := "counts"
		if len(operators) > 1 {
			verb = "count"
		}
		list = append(list, fmt.Sprintf("%s of the job %s the instances of each group separately: use separate, with a label of all groups, to keep the groups apart", strings.Join(operators, " and "), verb))
	}
	for _, g := range m.Groups {
		if g.MinCount > 0 && !m.AllOrNone {
			list = append(list, fmt.Sprintf("minCount of group %s has no effect: it requires disruptionMode all", g.Name))
		}
	}
	return list
}

// JobWideCounts returns the operators of those constraints of the job that Nomad applies to
// the instances of all groups together. It returns nil if the job has only one group.
func JobWideCounts(j *client.Job) (operators []string) {
	if len(j.TaskGroups) < 2 {
		return nil
	}
	for _, k := range j.Constraints {
		if k == nil {
			continue
		}
		if o := operatorOf(k.Operand); o.CountsAllocations() && !slices.Contains(operators, string(o)) {
			operators = append(operators, string(o))
		}
	}
	return operators
}

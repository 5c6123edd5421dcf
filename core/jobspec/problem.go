package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxProblems bounds what a hostile file makes us remember.
	maxProblems = 200
	// maxPrinted is how many problems a message lists: more than anybody reads.
	maxPrinted = 50
)

// Problem is one thing that is wrong with a job.
type Problem struct {
	File    string `json:"file,omitempty"` // as the caller named it
	Line    int    `json:"line,omitempty"` // from 1; 0 where the job came from no file
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // such as TaskGroups[0].Count; "" for the job itself
	Message string `json:"message"`        // what is there, and what was expected
	Remedy  string `json:"remedy"`         // what to do about it
}

// String is the problem in one line.
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

// Problems is everything that is wrong with a job, in the order of the file.
type Problems []Problem //nolint:errname // it is what it lists; callers read it as a list

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	var lines []string
	for i := range ps {
		if i == maxPrinted {
			lines = append(lines, fmt.Sprintf("and %d more problems", len(ps)-i))
			break
		}
		lines = append(lines, ps[i].String())
	}
	return strings.Join(lines, "\n")
}

// err is nil when there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

// position is where something stands in a file.
type position struct{ line, column int }

// parser is one file that is being read: what is wrong with it, and where the
// parts of the job stand.
type parser struct {
	file     string
	problems Problems
	// origins says where the value of a path of the API stands, and by what name
	// the file calls it.
	origins map[string]origin
	// rejected are the paths with a problem: what is checked later is silent
	// about them, since their values are not what was written.
	rejected map[string]bool

	schedulingOnly bool
	ignored        map[string]int // by name; nil: nothing
	nodePool       string         // Nomad's node pool, where the file names one
}

// origin is how a file says the value of a path.
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

// reject is add for the value of a path.
func (r *parser) reject(path string, at position, message, remedy string) {
	r.rejected[path] = true
	r.add(at, message, remedy)
}

// isFull is whether so much is wrong that reading on says nothing.
func (r *parser) isFull() bool { return len(r.problems) >= maxProblems }

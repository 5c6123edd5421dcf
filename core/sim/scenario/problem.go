package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxPrinted is how many problems a message lists: more than anybody reads.
	maxPrinted = 50
	// maxStored bounds what a hostile file makes us remember. Further problems
	// are counted.
	maxStored = 1000
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line    int    `json:"line,omitempty"` // from 1; 0 when the values came from no file
	Path    string `json:"path,omitempty"` // such as jobs[2].groups[0].resources.cpu; "" for the file itself
	Message string `json:"message"`        // what is there, and what was expected
	Remedy  string `json:"remedy"`         // what to do about it
}

// Error lists everything that is wrong with a file, in order of its lines.
type Error struct {
	File     string // as the caller named it; "" when the values came from no file
	Problems []Problem
	More     int   // problems beyond those listed
	Err      error // why the file could not be read to its end, where that is not the file's own fault
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	var b strings.Builder
	more := e.More
	for i := range e.Problems {
		if i == maxPrinted {
			more += len(e.Problems) - i
			break
		}
		e.line(&b, &e.Problems[i])
	}
	switch {
	case more == 1:
		b.WriteString("and 1 more problem\n")
	case more > 1:
		fmt.Fprintf(&b, "and %d more problems\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (e *Error) line(b *strings.Builder, p *Problem) {
	switch {
	case e.File != "" && p.Line > 0:
		fmt.Fprintf(b, "%s:%d: ", e.File, p.Line)
	case e.File != "":
		fmt.Fprintf(b, "%s: ", e.File)
	}
	if p.Path != "" {
		fmt.Fprintf(b, "%s: ", p.Path)
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		fmt.Fprintf(b, "; %s", p.Remedy)
	}
	b.WriteByte('\n')
}

// Unwrap gives the cause that lies outside the file.
func (e *Error) Unwrap() error { return e.Err }

// problems collects, up to a bound.
type problems struct {
	list []Problem
	more int
}

func (ps *problems) add(p Problem) {
	if len(ps.list) == maxStored {
		ps.more++
		return
	}
	ps.list = append(ps.list, p)
}

func (ps *problems) len() int { return len(ps.list) + ps.more }

// err is nil when there are none.
func (ps *problems) err(file string) error {
	if ps.len() == 0 {
		return nil
	}
	slices.SortStableFunc(ps.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{File: file, Problems: ps.list, More: ps.more}
}

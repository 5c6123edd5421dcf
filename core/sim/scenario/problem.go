package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

const (
	// maxPrinted is the number of problems that an error message lists.
	maxPrinted = 50
	// maxStored bounds the problems in memory; further problems are only counted.
	maxStored = 1000
)

// Problem is one defect of a file.
type Problem struct {
	Line    int    `json:"line,omitempty"` // from 1; 0 if the values were not read from a file
	Path    string `json:"path,omitempty"` // such as jobs[2].groups[0].resources.cpu; "" for the file itself
	Message string `json:"message"`        // the value found and the value expected
	Remedy  string `json:"remedy"`         // how to correct it
}

// Error lists the problems of a file, in the order of its lines.
type Error struct {
	File     string // as the caller named it; "" if the values were not read from a file
	Problems []Problem
	More     int   // problems beyond those listed
	Err      error // the I/O error, if the file could not be read to its end
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	var b strings.Builder
	more := e.More
	var lists suggest.Lists
	for i := range e.Problems {
		if i == maxPrinted {
			more += len(e.Problems) - i
			break
		}
		p := e.Problems[i]
		p.Remedy = lists.Once(p.Remedy)
		e.line(&b, &p)
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %s\n", model.Counted(more, "more problem", "more problems"))
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

// Unwrap returns the I/O error, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// problems collects up to maxStored problems.
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

// err returns an *Error, or nil if there are no problems.
func (ps *problems) err(file string) error {
	if ps.len() == 0 {
		return nil
	}
	slices.SortStableFunc(ps.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{File: file, Problems: ps.list, More: ps.more}
}

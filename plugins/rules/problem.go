package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// A Problem is an error in rules, with its position.
type Problem struct {
	Place  Place
	Entry  string // such as order[1]; "" if it concerns all rules
	Reason string
	Hint   string // remedy; may be empty
}

// A Place is a position in a text. Line and Column count from 1, Column in characters.
type Place struct {
	File         string // "" for the command line
	Line, Column int
	Source       string // the whole line; may be empty
}

// String returns the problem with its line and a mark beneath the position.
func (p *Problem) String() string {
	var b strings.Builder
	if p.Place.File != "" {
		fmt.Fprintf(&b, "%s:%d:%d: ", p.Place.File, p.Place.Line, p.Place.Column)
	} else if p.Place.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", p.Place.Line, p.Place.Column)
	}
	if p.Entry != "" {
		b.WriteString(p.Entry + ": ")
	}
	b.WriteString(p.Reason)
	if p.Place.Source != "" {
		b.WriteString("\n" + syntax.Excerpt(p.Place.Source, p.Place.Column-1))
	}
	if p.Hint != "" {
		b.WriteString("\n  " + p.Hint)
	}
	return b.String()
}

// An Error lists every problem of rules, in the order of their positions.
type Error struct{ Problems []Problem }

func newError(list []Problem) *Error {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return &Error{list}
}

func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i := range e.Problems {
		texts[i] = e.Problems[i].String()
	}
	return strings.Join(texts, "\n")
}

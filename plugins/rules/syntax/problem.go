package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
)

// A Problem is an error in an expression.
type Problem struct {
	Offset int // in characters, from 0
	Reason string
	Hint   string // remedy; may be empty
}

// An Explainer explains problems that depend on the names and types of an expression.
type Explainer interface {
	// Undeclared explains a name, or a function, without a declaration.
	Undeclared(name string, isFunction bool) (reason, hint string)
	// NoOverload returns a remedy for an operator that cannot be applied to types such as
	// (int, double).
	NoOverload(types string) (hint string)
}

// Problems returns the problems that cel-go found, each once, in the order of their
// positions.
func Problems(text string, issues *cel.Issues, explainer Explainer) []Problem {
	var list []Problem
	for _, err := range issues.Errors() {
		p := Problem{Offset: offsetOf(text, err.Location.Line(), err.Location.Column())}
		p.Reason, _, _ = strings.Cut(err.Message, "\n")
		switch {
		case strings.HasPrefix(p.Reason, "undeclared reference"):
			name, at, isFunction := Name(text, p.Offset)
			p.Offset = at
			p.Reason, p.Hint = explainer.Undeclared(name, isFunction)
		case strings.HasPrefix(p.Reason, "found no matching overload"):
			operator, types := overload(p.Reason)
			p.Reason, p.Hint = fmt.Sprintf("%s cannot be applied to %s", operator, types), explainer.NoOverload(types)
		case strings.HasPrefix(p.Reason, "Syntax error:"):
			p.Reason = "syntax error:" + strings.TrimPrefix(p.Reason, "Syntax error:")
		case strings.Contains(p.Reason, "limit") || strings.Contains(p.Reason, "depth"):
			p.Hint = fmt.Sprintf("an expression has at most %d operations, nested at most %d deep", MaxNodes, MaxDepth)
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	return list
}

// offsetOf returns the position of a line, from 1, and a column, from 0, in characters.
func offsetOf(text string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		before, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		offset += utf8.RuneCountInString(before) + 1
		text = rest
	}
	return offset + max(column, 0)
}

// overload returns the operator, and the types of its operands, of a message of cel-go.
func overload(message string) (operator, types string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(message, "found no matching overload for '"), "' applied to '")
	types = strings.NewReplacer("google.protobuf.", "", "Duration", "duration", "Timestamp", "timestamp").Replace(strings.TrimSuffix(rest, "'"))
	return strings.Trim(name, "_@"), types
}

// Name returns the dotted name around an offset, the offset at which it begins, and whether
// it is called.
func Name(text string, offset int) (name string, at int, isFunction bool) {
	runes := []rune(text)
	at = max(0, min(offset, len(runes)))
	isName := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '.' }
	for at > 0 && isName(runes[at-1]) {
		at--
	}
	end := at
	for end < len(runes) && isName(runes[end]) {
		end++
	}
	return string(runes[at:end]), at, end < len(runes) && runes[end] == '('
}

// excerptWidth is the width of the part of a line that is shown.
const excerptWidth = 100

// Excerpt returns the part of a line around an offset in characters, and a mark beneath it.
func Excerpt(source string, offset int) string {
	line := []rune(strings.ReplaceAll(source, "\t", " "))
	at := min(offset, len(line))
	from := 0
	if at > excerptWidth*3/4 {
		from = at - excerptWidth/2
	}
	shown := strings.TrimRight(string(line[from:min(from+excerptWidth, len(line))]), " ")
	trimmed := strings.TrimLeft(shown, " ")
	at -= from + utf8.RuneCountInString(shown) - utf8.RuneCountInString(trimmed)
	return "  " + trimmed + "\n  " + strings.Repeat(" ", max(at, 0)) + "^"
}

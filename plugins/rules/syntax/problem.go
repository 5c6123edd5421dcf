package syntax

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
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
// positions. It returns the first syntax error alone: further ones follow from it.
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
			p.Reason, p.Hint = syntaxError+parserReason(p.Reason), habitHint(text, p.Offset)
		case strings.HasPrefix(p.Reason, "invalid int literal"):
			p.Hint = "an int is at least -9223372036854775808 and at most 9223372036854775807"
		case strings.Contains(p.Reason, "recursion") || strings.Contains(p.Reason, "depth"):
			p.Reason = "the expression is nested too deeply"
			p.Hint = fmt.Sprintf("an expression has at most %d operations, nested at most %d deep; a sum of N terms is nested N deep without parentheses", MaxNodes, MaxDepth)
		case nodes.MatchString(p.Reason):
			count := nodes.FindStringSubmatch(p.Reason)[1]
			p.Reason = fmt.Sprintf("%s operations, names and constants; at most %d are allowed", count, MaxNodes)
			p.Hint = "shorten the expression"
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	failed := false
	return slices.DeleteFunc(list, func(p Problem) bool {
		follows := failed && strings.HasPrefix(p.Reason, syntaxError)
		failed = failed || strings.HasPrefix(p.Reason, syntaxError)
		return follows
	})
}

const syntaxError = "syntax error: "

// nodes matches the message about an expression that is too long.
var nodes = regexp.MustCompile(`^expression node count exceeds limit: count (\d+)`)

// parserForms maps the messages of the parser to those of this project. The first group
// is the text at which the parser stopped.
var parserForms = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`^(?:mismatched|extraneous) input '(.*)' expecting ('[^']*')$`), "unexpected '$1', expected $2"},
	{regexp.MustCompile(`^(?:mismatched|extraneous) input '(.*)' expecting .*$`), "unexpected '$1'"},
	{regexp.MustCompile(`^missing ('[^']*') at '(.*)'$`), "unexpected '$2', expected $1"},
	{regexp.MustCompile(`^no viable alternative at input '(.*)'$`), "unexpected '$1'"},
	{regexp.MustCompile(`^token recognition error at: '(["'].*)'$`), "the text $1 has no end"},
	{regexp.MustCompile(`^token recognition error at: '(.*?) *'$`), "unexpected '$1'"},
}

// parserReason returns a message of the parser, without the lists of its tokens.
func parserReason(message string) string {
	message = strings.TrimSpace(strings.TrimPrefix(message, "Syntax error:"))
	for _, f := range parserForms {
		if f.form.MatchString(message) {
			message = f.form.ReplaceAllString(message, f.as)
			break
		}
	}
	message = strings.NewReplacer("'<EOF>', expected", "end of the expression, expected", "'<EOF>'", "end of the expression",
		", expected <EOF>", "").Replace(message)
	return visible(message)
}

// visible replaces characters that a terminal does not show, such as a space without width, by
// their code points.
func visible(message string) string {
	var b strings.Builder
	for _, c := range message {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
			continue
		}
		fmt.Fprintf(&b, "%U", c)
	}
	return b.String()
}

// habits are forms of other languages, and their forms in CEL. The position of an error is
// that of the last group, or behind it.
var habits = []struct {
	form *regexp.Regexp
	hint string
}{
	{regexp.MustCompile(`(?i)\b(and)\b`), "write && in place of and"},
	{regexp.MustCompile(`(?i)\b(or)\b`), "write || in place of or"},
	{regexp.MustCompile(`(?i)\b(not)\b`), "write ! in place of not"},
	{regexp.MustCompile(`[^=!<>](=)(?:[^=]|$)`), "write == in place of ="},
	{regexp.MustCompile(`\b\d+(ms|h|m|s|d)\b`), "write a duration as duration('10m')"},
	{regexp.MustCompile(`\bin\s*(\()`), "write a list in brackets: x in ['a', 'b']"},
}

// texts matches texts in quotes, in which nothing is a form of another language.
var texts = regexp.MustCompile(`'[^'\n]*(?:'|$)|"[^"\n]*(?:"|$)`)

// withoutTexts replaces texts in quotes by spaces, also the last one if it has no end.
func withoutTexts(text string) string {
	return texts.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", utf8.RuneCountInString(s)) })
}

// habitHint returns a remedy if a form of another language precedes a syntax error.
func habitHint(text string, offset int) string {
	text = withoutTexts(text)
	nearest, hint := -1, ""
	for _, h := range habits {
		for _, at := range h.form.FindAllStringSubmatchIndex(text, -1) {
			if from := utf8.RuneCountInString(text[:at[2]]); from <= offset && from > nearest {
				nearest, hint = from, h.hint
			}
		}
	}
	return hint
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
	if name == operators.Conditional {
		return "? :", types
	}
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

// A Reference is a dotted name in an expression.
type Reference struct {
	Name   string
	Offset int // in characters, from 0
}

// References returns the dotted names of an expression outside of quotes, without the functions
// that are called on them. It needs no valid syntax.
func References(text string) (list []Reference) {
	text = withoutTexts(text)
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		if strings.HasPrefix(strings.TrimLeft(text[at[1]:], " "), "(") {
			name = name[:strings.LastIndexByte(name, '.')]
		}
		if strings.Contains(name, ".") {
			list = append(list, Reference{name, utf8.RuneCountInString(text[:at[0]])})
		}
	}
	return list
}

// dotted matches a name with at least one dot.
var dotted = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+`)

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

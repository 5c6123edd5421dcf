package rules

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	srules "github.com/cede-scheduler/cede/sdk/rules"
)

// Prefix marks rules in the place of a policy's name.
const Prefix = "rules:"

// A Source holds rules before they are compiled.
type Source struct {
	Name     string // of the policy
	Delta    int32
	Eligible *Expression
	Order    []Expression
	Option   []Expression
	Limits   policy.Limits // of a call; a zero field is that of policy.DefaultLimits
}

// An Expression is the text of an entry, and its position.
type Expression struct {
	Entry string // such as order[1]
	Text  string
	place func(offset int) Place // of a character
	// bare is set for an entry of a YAML list in brackets without quotes, which a comma ends.
	bare bool
	// quote is the quote that YAML removes around the text, if any.
	quote string
}

// ParseManifest reads the rules of a policy's manifest. Errors are of type *Error.
func ParseManifest(file, name string, text []byte) (*Source, error) {
	r := reader{file: file, lines: strings.Split(string(text), "\n")}
	root, err := r.parse(text)
	if err != nil {
		return nil, err
	}
	var rules *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch value := root.Content[i+1]; root.Content[i].Value {
		case "rules":
			rules = value
		case "limits":
			// Invalid limits are problems of the manifest, which package bundle reports.
			var l struct {
				Fuel       uint64 `yaml:"fuel"`
				FuelPerRow uint64 `yaml:"fuelPerRow"`
				Time       string `yaml:"time"`
			}
			if value.Decode(&l) == nil {
				r.limits = policy.Limits{Fuel: l.Fuel, FuelPerRow: l.FuelPerRow}
				if d, err := time.ParseDuration(l.Time); err == nil && d > 0 {
					r.limits.Time = d
				}
			}
		}
	}
	if rules != nil {
		return r.source(name, rules)
	}
	return nil, r.failed(root, "", "the manifest has no rules", "add rules: with eligible, order or option")
}

// ParseInline reads rules from a command line: entries such as order: EXPR, on lines of
// their own or separated by semicolons. Errors are of type *Error.
func ParseInline(name, text string) (*Source, error) {
	if rest, ok := strings.CutPrefix(text, Prefix); ok {
		text = strings.TrimLeft(rest, " \t") // columns are those of the line that is shown
	}
	r := reader{lines: strings.Split(text, "\n"), plain: true}
	root := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	for i, line := range r.lines {
		column := 1
		for _, entry := range splitEntries(strings.TrimSuffix(line, "\r")) {
			r.entry(root, entry, i+1, column)
			column += utf8.RuneCountInString(entry) + 1
		}
	}
	return r.source(name, root)
}

// entry adds NAME: EXPRESSION, at a position, to the rules.
func (r *reader) entry(rules *yaml.Node, text string, line, column int) {
	trimmed := strings.TrimSpace(text)
	at := column + leadOf(text)
	key, value, ok := strings.Cut(trimmed, ":")
	switch {
	case trimmed == "":
	case !ok || strings.HasPrefix(trimmed, "- "):
		r.problem(&yaml.Node{Line: line, Column: at}, "", "expected NAME: EXPRESSION", "write order: victim.priority, or order: [A, B] for several")
	default:
		rules.Content = append(rules.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(key), Line: line, Column: at},
			&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(value), Line: line, Column: at + utf8.RuneCountInString(key) + 1 + leadOf(value)})
	}
}

// leadOf returns the number of spaces at the beginning of a text.
func leadOf(text string) int {
	return utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " \t"))
}

// nextEntry matches a semicolon before another entry.
var nextEntry = regexp.MustCompile(`;\s*(?:` + strings.Join(ruleNames, "|") + `)\s*:`)

// splitEntries splits a line at semicolons outside of quotes. A quote without an end ends before
// the next entry that begins with the name of a rule, so that the problems of that entry are
// reported too.
func splitEntries(line string) []string {
	entries, _ := splitOutside(line, ';')
	last := entries[len(entries)-1]
	next := nextEntry.FindStringIndex(last)
	if next == nil || hasClosedQuotes(last) {
		return entries
	}
	return append(append(entries[:len(entries)-1:len(entries)-1], last[:next[0]]), splitEntries(last[next[0]+1:])...)
}

// hasClosedQuotes reports whether every quote of a text has an end.
func hasClosedQuotes(text string) bool {
	open, _ := splitOutside(text+";", ';')
	return len(open) > 1
}

// splitOutside splits a text at a separator outside of quotes and, unless it is a semicolon,
// of parentheses and brackets. It reports whether these are balanced.
func splitOutside(text string, separator rune) (list []string, balanced bool) {
	depth, lowest, from := 0, 0, 0
	quote, escaped := rune(0), false
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			escaped = c == '\\'
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
			lowest = min(lowest, depth)
		case c == separator && (depth == 0 || separator == ';'):
			list = append(list, text[from:i])
			from = i + 1
		}
	}
	return append(list, text[from:]), quote == 0 && depth == 0 && lowest == 0
}

// reader reads rules from YAML.
type reader struct {
	file  string
	lines []string
	// plain reports whether values are expressions without YAML, lists in brackets.
	plain    bool
	limits   policy.Limits
	problems []Problem
}

func (r *reader) parse(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %s", r.file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is not a manifest: expected a mapping", r.file)
	}
	return document.Content[0], nil
}

// ruleNames are the keys of rules.
var ruleNames = []string{"eligible", "order", "option", "delta"}

// source reads the entries of rules.
func (r *reader) source(name string, rules *yaml.Node) (*Source, error) {
	s := &Source{Name: name, Delta: srules.Delta, Limits: r.limits}
	rules = resolved(rules)
	if rules.Kind != yaml.MappingNode {
		return nil, r.failed(rules, "", "rules must be a mapping", "write eligible:, order: or option: beneath it")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(rules.Content); i += 2 {
		key, value := rules.Content[i], resolved(rules.Content[i+1])
		if r.plain && seen[key.Value] && slices.Contains(ruleNames, key.Value) { // package bundle reports those of a manifest
			r.problem(key, key.Value, "is given twice", "remove one")
		}
		seen[key.Value] = true
		switch key.Value {
		case "delta":
			s.Delta = r.delta(value)
		case "eligible":
			if list := r.expressions("eligible", value, 1); len(list) == 1 {
				s.Eligible = &list[0]
			}
		case "order":
			s.Order = r.expressions("order", value, ir.MaxOrderEntries)
		case "option":
			s.Option = r.expressions("option", value, ir.MaxOptionEntries)
		default:
			r.problem(key, "", fmt.Sprintf("unknown rule %q", key.Value), "rules are eligible, order, option and delta")
		}
	}
	if s.Eligible == nil && len(s.Order) == 0 && len(s.Option) == 0 && len(r.problems) == 0 {
		r.problem(rules, "", "there are no rules", "write eligible:, order: or option:")
	}
	if len(r.problems) == 0 {
		return s, nil
	}
	if _, err := Check(s); err != nil { // those of the other entries
		if invalid, ok := errors.AsType[*Error](err); ok {
			r.problems = append(r.problems, invalid.Problems...)
		}
	}
	return nil, newError(r.problems)
}

// resolved returns the node to which an alias refers, or the node itself.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (r *reader) delta(value *yaml.Node) int32 {
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		r.problem(value, "delta", fmt.Sprintf("invalid value %q: must be a whole number between 0 and %d", value.Value, math.MaxInt32), "")
		return 0
	}
	return int32(n)
}

// maxText is the maximum length of an expression in bytes.
const maxText = 4096

// expressions reads one expression or a list of them.
func (r *reader) expressions(entry string, value *yaml.Node, most int) []Expression {
	nodes := []*yaml.Node{value}
	isList := value.Kind == yaml.SequenceNode
	if isList {
		nodes = value.Content
	} else if r.plain && most > 1 && strings.HasPrefix(value.Value, "[") {
		nodes, isList = listed(value), true
	}
	switch {
	case len(nodes) == 0:
		r.problem(value, entry, "the list is empty", "remove "+entry+", or add an expression")
	case len(nodes) > most:
		r.problem(value, entry, fmt.Sprintf("%d entries; at most %d are allowed", len(nodes), most), "")
		return nil
	}
	var list []Expression
	for i, n := range nodes {
		n = resolved(n)
		name := entry
		if isList {
			name = fmt.Sprintf("%s[%d]", entry, i)
		}
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "":
			hint := "quote an expression that begins with a character that YAML reserves, such as ! or [, or contains a colon and a space"
			if r.plain {
				hint = "write " + entry + ": EXPRESSION"
			}
			r.problem(n, name, "expected an expression", hint)
		case len(n.Value) > maxText:
			r.problem(n, name, fmt.Sprintf("%d bytes; at most %d are allowed", len(n.Value), maxText), "")
		default:
			quote := quoteOf(n)
			bare := value.Style&yaml.FlowStyle != 0 && quote == ""
			list = append(list, Expression{Entry: name, Text: n.Value, place: r.placer(n), bare: bare, quote: quote})
		}
	}
	return list
}

// quoteOf returns the quote around a scalar in YAML, or "".
func quoteOf(n *yaml.Node) string {
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		return "'"
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return `"`
	}
	return ""
}

// listed splits [EXPR, EXPR] at commas outside of parentheses, brackets and quotes. The last
// comma may be followed by nothing. It returns one element if the brackets do not enclose
// the whole value.
func listed(value *yaml.Node) []*yaml.Node {
	inner, ok := strings.CutSuffix(value.Value[1:], "]")
	parts, balanced := splitOutside(inner, ',')
	if !ok || !balanced {
		return []*yaml.Node{value}
	}
	if strings.TrimSpace(parts[len(parts)-1]) == "" {
		parts = parts[:len(parts)-1]
	}
	var list []*yaml.Node
	column := value.Column + 1
	for _, part := range parts {
		list = append(list, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(part), Line: value.Line, Column: column + leadOf(part)})
		column += utf8.RuneCountInString(part) + 1
	}
	return list
}

// placer returns a function that locates the characters of a scalar.
func (r *reader) placer(n *yaml.Node) func(offset int) Place {
	text := []rune(n.Value)
	return func(offset int) Place { return r.locate(n, text, max(0, min(offset, len(text)))) }
}

func (r *reader) at(line, column int) Place {
	p := Place{File: r.file, Line: line, Column: column}
	if line >= 1 && line <= len(r.lines) {
		p.Source = strings.TrimRight(r.lines[line-1], "\r")
	}
	return p
}

func (r *reader) problem(n *yaml.Node, entry, reason, hint string) {
	r.problems = append(r.problems, Problem{Place: r.at(n.Line, n.Column), Entry: entry, Reason: reason, Hint: hint})
}

func (r *reader) failed(n *yaml.Node, entry, reason, hint string) error {
	r.problem(n, entry, reason, hint)
	return newError(r.problems)
}

// Entries returns rules as they are written in a manifest.
func (s *Source) Entries() map[string]any {
	entries := map[string]any{"delta": s.Delta}
	if s.Eligible != nil {
		entries["eligible"] = s.Eligible.Text
	}
	for key, list := range map[string][]Expression{"order": s.Order, "option": s.Option} {
		var texts []string
		for i := range list {
			texts = append(texts, list[i].Text)
		}
		if len(texts) > 0 {
			entries[key] = texts
		}
	}
	return entries
}

// ErrTooLarge is returned if rules do not fit into a module.
var ErrTooLarge = errors.New("the rules are too large: shorten texts and expressions")

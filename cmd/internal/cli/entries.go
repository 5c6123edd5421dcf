package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Files of small things, priority classes or budgets: one of them, a list, or
// either below the name that scenarios give the list.

// entryKind is what a file holds.
type entryKind struct {
	one     string // with its article
	many    string // what scenarios call the list
	example string
}

// entryProblem is one thing that is wrong with a file.
type entryProblem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

type entryProblems []entryProblem

func (ps *entryProblems) add(line int, format string, args ...any) {
	*ps = append(*ps, entryProblem{max(line, 1), fmt.Sprintf(format, args...)})
}

// entries are the mappings of a file, each of which is a thing of the kind.
func (ps *entryProblems) entries(text []byte, kind entryKind) []*yaml.Node {
	var document yaml.Node
	switch err := yaml.Unmarshal(text, &document); {
	case err != nil:
		ps.add(1, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	case len(document.Content) == 0:
		ps.add(1, "it is empty: expected %s; write %s", kind.one, kind.example)
		return nil
	}
	n := document.Content[0]
	if list := fieldOf(n, kind.many); list != nil {
		n = list
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
		if len(nodes) == 0 {
			ps.add(n.Line, "the file holds no %s; write %s", kind.many, kind.example)
		}
	}
	return slices.DeleteFunc(nodes, func(n *yaml.Node) bool {
		if n.Kind != yaml.MappingNode {
			ps.add(n.Line, "expected %s; write %s", kind.one, kind.example)
		}
		return n.Kind != yaml.MappingNode
	})
}

// err is every problem at once, in the order of the file; nil: there is none.
func (ps *entryProblems) err(file, hint string) error {
	if len(*ps) == 0 {
		return nil
	}
	if file == stdin {
		file = standardInput
	}
	slices.SortStableFunc(*ps, func(a, b entryProblem) int { return a.Line - b.Line })
	lines := make([]string, len(*ps))
	for i, p := range *ps {
		lines[i] = fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
	}
	return &Error{
		Exit: ExitUsage, Code: codeInvalid, lines: lines, Details: *ps, Hint: hint,
		Message: fmt.Sprintf("%s has %s", file, count(len(*ps), "problem", "problems")),
	}
}

// uncapital is a field's name in a file's own words: names may begin with
// capitals, as the API prints them.
func uncapital(name string) string {
	first := []rune(name)
	if len(first) > 0 {
		first[0] = unicode.ToLower(first[0])
	}
	return string(first)
}

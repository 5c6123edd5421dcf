package cmdutil

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/plainyaml"
)

// Files of small resources such as priority classes and budgets contain one object, a
// list, or either below the key that scenarios use. A file may contain several YAML
// documents, as those of kubectl do.

// A FileKind describes the entries of a file.
type FileKind struct {
	Command  string // that applies the file, without cede and apply
	Singular string // with its article
	Plural   string // key of the list in scenarios
	Example  string
	UniqueIn string // where names are unique: " in a namespace"; "": in the file
}

// ReadEntries reads and validates a file of named objects. decode adds the problems of one
// object; key returns its name, and the scope in which that must be unique.
func ReadEntries[T any](file string, text []byte, kind FileKind, decode func(*FileProblems, *yaml.Node) T, key func(T) (name, scope string)) ([]T, error) {
	ps := &FileProblems{}
	var list []T
	seen := map[[2]string]bool{}
	for _, n := range ps.ParseEntries(text, kind) {
		x := decode(ps, n)
		name, scope := key(x)
		if seen[[2]string{scope, name}] && name != "" {
			ps.Add(n.Line, "duplicate name %q; names must be unique%s", name, kind.UniqueIn)
		}
		seen[[2]string{scope, name}] = true
		list = append(list, x)
	}
	return list, ps.Err(file, "`cede "+kind.Command+" apply --help` describes the file")
}

// A FileProblem is one problem of a file.
type FileProblem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// FileProblems lists the problems of one file.
type FileProblems []FileProblem

// Add adds a problem at a line, counted from 1.
func (ps *FileProblems) Add(line int, format string, args ...any) {
	*ps = append(*ps, FileProblem{max(line, 1), fmt.Sprintf(format, args...)})
}

// AddField adds a problem of a field of an entry, if there is one. An entry without the field
// has its own line.
func (ps *FileProblems) AddField(entry *yaml.Node, field string, p fieldcheck.Problem) {
	if !p.Found() {
		return
	}
	line := entry.Line
	for i := 0; i+1 < len(entry.Content); i += 2 {
		if LowerFirst(entry.Content[i].Value) == field {
			line = entry.Content[i+1].Line
		}
	}
	ps.Add(line, "%s; %s", p.Text, p.Remedy)
}

// ParseEntries returns the mappings of a file, each of which is an entry of the kind.
func (ps *FileProblems) ParseEntries(text []byte, kind FileKind) []*yaml.Node {
	var nodes []*yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p := plainyaml.Syntax(err, text)
			ps.Add(p.Line, "not valid YAML: %s", p.Message)
			return nil
		}
		if len(document.Content) > 0 && document.Content[0].Tag != "!!null" { // an empty document before or after a separator
			nodes = append(nodes, ps.parseDocument(document.Content[0], kind)...)
		}
	}
	if len(nodes) == 0 && len(*ps) == 0 {
		ps.Add(1, "the file is empty: expected %s, such as %s", kind.Singular, kind.Example)
	}
	return nodes
}

// parseDocument returns the mappings of one YAML document.
func (ps *FileProblems) parseDocument(n *yaml.Node, kind FileKind) []*yaml.Node {
	if list := FieldOf(n, kind.Plural); list != nil {
		n = list
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
		if len(nodes) == 0 {
			ps.Add(n.Line, "%s is empty; add an entry such as %s", kind.Plural, kind.Example)
		}
	}
	for _, n := range nodes {
		for _, p := range plainyaml.RemoveDuplicates(n) {
			ps.Add(p.Line, "%s", p.Message)
		}
	}
	return slices.DeleteFunc(nodes, func(n *yaml.Node) bool {
		if n.Kind != yaml.MappingNode {
			ps.Add(n.Line, "expected %s, such as %s", kind.Singular, kind.Example)
		}
		return n.Kind != yaml.MappingNode
	})
}

// Err returns all problems in the order of the file, or nil.
func (ps *FileProblems) Err(file, hint string) error {
	if len(*ps) == 0 {
		return nil
	}
	if file == Stdin {
		file = StandardInput
	}
	slices.SortStableFunc(*ps, func(a, b FileProblem) int { return a.Line - b.Line })
	lines := make([]string, len(*ps))
	for i, p := range *ps {
		lines[i] = fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
	}
	return &Error{
		Exit: ExitUsage, Code: CodeInvalid, Lines: lines, Details: *ps, Hint: hint,
		Message: fmt.Sprintf("%s has %s", file, Count(len(*ps), "problem", "problems")),
	}
}

// LowerFirst returns the name of a field with a lower-case initial: files may use the
// names of the API.
func LowerFirst(name string) string {
	first := []rune(name)
	if len(first) > 0 {
		first[0] = unicode.ToLower(first[0])
	}
	return string(first)
}

// FieldOf returns the value of a field of a mapping, or nil.
func FieldOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/suggest"
)

// maxSpec bounds the size of a spec in bytes.
const maxSpec = 1 << 20

// Open returns the spec of a preset, or of a file. It returns an error that wraps
// fs.ErrNotExist or a *scenario.Error.
func Open(name string) (*Spec, error) {
	if data, ok := preset(name); ok {
		return Parse(name, data)
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./\\") {
		var names []string
		for _, p := range Presets() {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("%s: no such file or preset; presets: %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse parses a spec in YAML or JSON and validates it. It returns a *scenario.Error
// with every problem and its line. File is used in messages only.
func Parse(file string, data []byte) (*Spec, error) {
	if len(data) > maxSpec {
		return nil, &scenario.Error{File: file, Problems: []scenario.Problem{{
			Line: 1, Message: fmt.Sprintf("more than %d bytes: too large for a spec", maxSpec),
			Remedy: "check that this is a spec; `cede sim run` runs a scenario",
		}}}
	}
	s, problems := decode(data)
	if len(problems) > 0 {
		return nil, &scenario.Error{File: file, Problems: problems}
	}
	s.file = file
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// decode decodes exactly one document.
func decode(data []byte) (*Spec, []scenario.Problem) {
	if p := invalidByte(data); p != nil {
		return nil, []scenario.Problem{*p}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, yamlProblems(err)
	}
	s := &Spec{lines: make(map[string]int)}
	if len(root.Content) == 0 {
		return nil, []scenario.Problem{{
			Line: 1, Message: "the file is empty: expected a spec", Remedy: "start with `name: ...`, or copy a preset",
		}}
	}
	s.indexLines(root.Content[0], "")
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		return nil, yamlProblems(err)
	}
	var second yaml.Node
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, []scenario.Problem{{Line: max(second.Line, 1), Message: "more than one document", Remedy: "remove the rest after the line ---"}}
	}
	return s, nil
}

// invalidByte returns a problem for the first byte that is not valid text, or nil. The
// YAML library reports no position for it.
func invalidByte(data []byte) *scenario.Problem {
	line := 1
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && n == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &scenario.Problem{
				Line: line, Message: fmt.Sprintf("expected text, found the byte 0x%02x", rest[0]),
				Remedy: "save it as UTF-8 text; check that this is a spec",
			}
		}
		rest = rest[n:]
	}
	return nil
}

// indexLines records the line of every path, such as classes[2].duration.
func (s *Spec) indexLines(n *yaml.Node, path string) {
	s.lines[path] = n.Line
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			s.indexLines(item, path+"["+strconv.Itoa(i)+"]")
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.indexLines(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."))
		}
	}
}

// line returns the line of a path, or of the nearest enclosing path.
func (s *Spec) line(path string) int {
	for {
		if l, ok := s.lines[path]; ok || path == "" {
			return l
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// yamlProblems converts the errors of the YAML library into problems.
func yamlProblems(err error) []scenario.Problem {
	var problems []scenario.Problem
	for _, p := range plainyaml.Problems(err, &Spec{}) {
		problem := scenario.Problem{Line: max(p.Line, 1), Message: p.Message}
		switch {
		case p.Syntax:
			problem.Remedy = "check indentation, quotes and brackets around this line"
		case p.Unknown:
			problem.Remedy = suggest.Field(p.Field, p.Fields)
		}
		problems = append(problems, problem)
	}
	return problems
}

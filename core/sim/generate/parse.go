package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// maxSpec is far more than a small spec has.
const maxSpec = 1 << 20

// Open reads a preset by its name, or a file.
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
		return nil, fmt.Errorf("%s: no such file, and no such preset; there is %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse reads a spec in YAML or JSON and validates it. Every problem is in the
// error, which is a *scenario.Error, with its line. File is for messages.
func Parse(file string, data []byte) (*Spec, error) {
	if len(data) > maxSpec {
		return nil, &scenario.Error{File: file, Problems: []scenario.Problem{{
			Message: fmt.Sprintf("a spec of %d bytes; expected at most %d", len(data), maxSpec), Remedy: "is this a scenario?",
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

func decode(data []byte) (*Spec, []scenario.Problem) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, yamlProblems(err)
	}
	s := &Spec{lines: make(map[string]int)}
	if len(root.Content) == 0 {
		return nil, []scenario.Problem{{Message: "empty", Remedy: "see the presets for what a spec looks like"}}
	}
	s.index(root.Content[0], "")
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		return nil, yamlProblems(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, []scenario.Problem{{Message: "more than one document", Remedy: "remove what follows the line ---"}}
	}
	return s, nil
}

// index notes the line of every path, such as classes[2].duration.
func (s *Spec) index(n *yaml.Node, path string) {
	s.lines[path] = n.Line
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			s.index(item, path+"["+strconv.Itoa(i)+"]")
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.index(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."))
		}
	}
}

// line is that of a path, or of what it lies in.
func (s *Spec) line(path string) int {
	for {
		if l, ok := s.lines[path]; ok || path == "" {
			return l
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

var (
	yamlLine     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (.*) not found in type generate\.(\w+)$`)
	wrongType    = regexp.MustCompile("^cannot unmarshal !!(\\w+) (`.*` )?into (.*)$")
)

// yamlProblems takes the library's errors apart.
func yamlProblems(err error) []scenario.Problem {
	texts := []string{err.Error()}
	if all, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = all.Errors
	}
	var problems []scenario.Problem
	for _, text := range texts {
		p := scenario.Problem{Message: strings.TrimPrefix(text, "yaml: ")}
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			p.Line, _ = strconv.Atoi(m[1])
			p.Message = m[2]
		}
		if m := unknownField.FindStringSubmatch(p.Message); m != nil {
			p.Message, p.Remedy = fmt.Sprintf("unknown field %.60q", m[1]), "expected one of "+strings.Join(fieldsOf(m[2]), ", ")
		} else if m := wrongType.FindStringSubmatch(p.Message); m != nil {
			p.Message = fmt.Sprintf("expected %s, found %s %.60s", goWords(m[3]), yamlWords[m[1]], strings.Trim(m[2], "` "))
		}
		p.Message = strings.TrimSpace(p.Message)
		problems = append(problems, p)
	}
	slices.SortStableFunc(problems, func(a, b scenario.Problem) int { return a.Line - b.Line })
	return problems
}

var yamlWords = map[string]string{
	"str": "the text", "int": "the number", "float": "the number", "bool": "the truth value",
	"seq": "a list", "map": "a set of fields", "null": "nothing",
}

// goWords says a Go type as a person would.
func goWords(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["), strings.HasPrefix(t, "generate."):
		return "fields"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case t == "bool":
		return "true or false"
	}
	return "a text"
}

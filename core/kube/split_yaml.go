package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
)

// A yamlSplitter splits a YAML dump into objects by its lines: at document
// separators, and at the items of block lists as kubectl writes them. It holds one
// object at a time. Lists in another style, such as flow style, are read as one
// piece.
type yamlSplitter struct {
	r    *bufio.Reader
	line int
	emit func(piece) error

	doc          []byte // current document without its items
	docLine      int
	item         []byte // current item
	itemAt       int
	items        bool // current line is within the items of a list
	indent       int  // of the dashes; -1: unknown
	hasItems     bool // the document is a list
	unterminated int  // lists without the kind that kubectl writes after the items
}

func (s *yamlSplitter) fail(format string, args ...any) error {
	return &SyntaxError{Line: s.line, Err: fmt.Errorf(format, args...)}
}

func (s *yamlSplitter) run() error {
	s.line = 0
	for {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return s.endDocument()
		}
		if err != nil {
			return err
		}
		if err := s.addLine(line); err != nil {
			return err
		}
	}
}

// next returns the next line with its terminator.
func (s *yamlSplitter) next() ([]byte, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > maxObject {
				return nil, s.fail("line exceeds %d MiB: not a dump of a cluster", maxObject>>20)
			}
			continue
		}
		if len(line) > 0 {
			s.line++
			return line, nil
		}
		return nil, err
	}
}

// addLine processes one line.
func (s *yamlSplitter) addLine(line []byte) error {
	text := bytes.TrimRight(line, "\r\n \t")
	if bytes.Equal(text, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.Equal(text, []byte("...")) {
		return s.endDocument()
	}
	if s.items {
		if ended, err := s.addItemLine(line, text); err != nil || !ended {
			return err
		}
	}
	if bytes.Equal(text, []byte("items:")) {
		s.items, s.hasItems, s.indent = true, true, -1
		return nil
	}
	if len(s.doc) == 0 {
		s.docLine = s.line
	}
	if s.doc = append(s.doc, line...); len(s.doc) > maxObject {
		return s.fail("object exceeds %d MiB: not a dump of a cluster", maxObject>>20)
	}
	return nil
}

// addItemLine processes a line within a list. It returns ended = true if the line is
// the first one after the items.
func (s *yamlSplitter) addItemLine(line, text []byte) (ended bool, err error) {
	depth := len(text) - len(bytes.TrimLeft(text, " "))
	dash := depth < len(text) && text[depth] == '-' && (depth+1 == len(text) || text[depth+1] == ' ')
	switch {
	case len(text) == 0 || text[depth] == '#': // may be part of a block scalar
	case dash && (s.indent < 0 || depth == s.indent):
		if err := s.endItem(); err != nil {
			return false, err
		}
		s.indent, s.itemAt = depth, s.line
		line = bytes.Clone(line)
		line[depth] = ' '
	case depth <= s.indent || s.indent < 0:
		s.items = false
		return true, s.endItem()
	}
	if s.item = append(s.item, line...); len(s.item) > maxObject {
		return false, s.fail("object exceeds %d MiB: not a dump of a cluster", maxObject>>20)
	}
	return false, nil
}

func (s *yamlSplitter) endItem() error {
	text := s.item
	s.item = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return s.emit(piece{line: s.itemAt, text: text, yaml: true, item: true})
}

func (s *yamlSplitter) endDocument() error {
	if err := s.endItem(); err != nil {
		return err
	}
	text, list := s.doc, s.hasItems
	s.doc, s.items, s.hasItems = nil, false, false
	if list && !bytes.HasPrefix(text, []byte("kind:")) && !bytes.Contains(text, []byte("\nkind:")) {
		s.unterminated++
	}
	if list || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return s.emit(piece{line: s.docLine, text: text, yaml: true})
}

// fromYAML converts an object, or the items of a list, to JSON. It returns an error
// per value that is not an object.
func fromYAML(text []byte) ([][]byte, []error) {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, []error{errors.New(plainyaml.Syntax(err, text).String())}
	}
	switch v := value.(type) {
	case nil:
		return nil, nil // comments only
	case map[string]any:
		if items, ok := v["items"].([]any); ok {
			return marshalAll(ofKind(v["kind"], items))
		}
		return marshalAll([]any{v})
	case []any:
		return marshalAll(v)
	}
	return marshalAll([]any{value})
}

// ofKind sets the kind of the list's items on items without a kind.
func ofKind(list any, items []any) []any {
	name, _ := list.(string)
	kind, is := strings.CutSuffix(name, "List")
	if !is || kind == "" {
		return items
	}
	for _, item := range items {
		if v, ok := item.(map[string]any); ok && v["kind"] == nil {
			v["kind"] = kind
		}
	}
	return items
}

func marshalAll(values []any) (list [][]byte, errs []error) {
	for _, v := range values {
		if _, ok := v.(map[string]any); !ok {
			text := "null"
			if v != nil {
				text = strconv.Quote(fmt.Sprint(v))
			}
			errs = append(errs, notAnObject(text))
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, text)
	}
	return list, errs
}

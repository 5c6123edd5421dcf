package jobspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// readJSON reads a document into a tree. It returns nil after a problem.
func (r *parser) readJSON(src []byte) *value {
	t := &jsonTree{parser: r, d: json.NewDecoder(bytes.NewReader(src)), src: src, place: position{1, 1}}
	t.d.UseNumber()
	v, err := t.value(0)
	if err == nil {
		if _, err = t.d.Token(); errors.Is(err, io.EOF) {
			return v
		}
		r.add(t.next(), "unexpected content after the job: a file holds one job", "remove it")
		return nil
	}
	t.failed(err)
	return nil
}

// A jsonTree converts JSON tokens into a tree of values.
type jsonTree struct {
	*parser
	d      *json.Decoder
	src    []byte
	values int
	last   int // offset of the last call of at
	place  position
}

// errStopped reports that reading ended after a problem that has been added.
var errStopped = errors.New("stopped")

func (t *jsonTree) failed(err error) {
	at := t.next()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = t.at(max(int(syntax.Offset)-1, 0))
	}
	switch {
	case errors.Is(err, errStopped):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		t.add(t.at(len(t.src)), "unexpected end of file", "the file seems to be truncated")
	default:
		t.add(at, "not valid JSON: "+err.Error(), "check the commas, brackets and quotes just before")
	}
}

// at returns the position of an offset. Offsets mostly increase, so it counts on from
// the last one: otherwise a file of a single line would take quadratic time.
func (t *jsonTree) at(offset int) position {
	offset = min(offset, len(t.src))
	if offset < t.last {
		t.last, t.place = 0, position{1, 1}
	}
	passed := t.src[t.last:offset]
	if n := bytes.Count(passed, []byte{'\n'}); n > 0 {
		t.place = position{t.place.line + n, 1}
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	t.place.column += utf8.RuneCount(passed)
	t.last = offset
	return t.place
}

// next returns the position of the next token.
func (t *jsonTree) next() position {
	at := int(t.d.InputOffset())
	for at < len(t.src) && bytes.IndexByte([]byte(" \t\r\n,:"), t.src[at]) >= 0 {
		at++
	}
	return t.at(at)
}

func (t *jsonTree) value(depth int) (*value, error) {
	v := &value{at: t.next()}
	if t.values++; t.values > maxValues || depth > maxDepth {
		t.add(v.at, fmt.Sprintf("more than %d values, or nested more than %d deep", maxValues, maxDepth), "check that this is a job file")
		return nil, errStopped
	}
	token, err := t.d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			v.kind = kindObject
			return v, t.object(v, depth)
		}
		v.kind = kindList
		for t.d.More() {
			e, err := t.value(depth + 1)
			if err != nil {
				return nil, err
			}
			v.list = append(v.list, e)
		}
		_, err = t.d.Token()
		return v, err
	case string:
		v.kind, v.text = kindText, token
	case json.Number:
		v.kind, v.text = kindNumber, token.String()
		t.checkFinite(v)
	case bool:
		v.kind, v.text = kindBool, fmt.Sprint(token)
	}
	return v, nil
}

func (t *jsonTree) object(v *value, depth int) error {
	have := map[string]position{}
	for t.d.More() {
		at := t.next()
		token, err := t.d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // keys are always strings
		member, err := t.value(depth + 1)
		if err != nil {
			return err
		}
		if first, twice := have[name]; twice {
			t.add(at, fmt.Sprintf("duplicate field %.100q: first defined on line %d", name, first.line), "remove one of the two")
			continue
		}
		have[name] = at
		v.fields = append(v.fields, &field{name: name, at: at, value: member})
	}
	_, err := t.d.Token()
	return err
}

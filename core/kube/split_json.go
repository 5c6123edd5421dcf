package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxObject bounds one object of a dump. etcd refuses objects of more than a few
// MiB.
const maxObject = 16 << 20

// piece is the text of one object, as JSON or as YAML.
type piece struct {
	line int // at which it begins, from 1
	kind string
	text []byte
	yaml bool
	item bool // of a list in YAML: it may not be empty
}

// jsonSplitter finds the objects of a JSON dump without understanding them: what
// stands in a list's items, documents one after another, and arrays of objects.
// It keeps one object at a time, so that a dump may be of any length.
type jsonSplitter struct {
	r    io.Reader
	buf  []byte
	pos  int
	line int
	emit func(piece) error
}

// errTruncated means that the text ends in the middle of something.
var errTruncated = errors.New("the dump ends in the middle of an object: it was cut off; make it anew")

func (s *jsonSplitter) fail(format string, args ...any) error {
	return &SyntaxError{Line: s.line, Err: fmt.Errorf(format, args...)}
}

// peek is the next byte; io.EOF at the end.
func (s *jsonSplitter) peek() (byte, error) {
	if s.pos == len(s.buf) {
		n, err := s.r.Read(s.buf[:cap(s.buf)])
		for n == 0 && err == nil {
			n, err = s.r.Read(s.buf[:cap(s.buf)])
		}
		s.buf, s.pos = s.buf[:n], 0
		if n == 0 {
			return 0, err
		}
	}
	return s.buf[s.pos], nil
}

// space skips white space and returns the byte after it.
func (s *jsonSplitter) space() (byte, error) {
	for {
		c, err := s.peek()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r', 0x1e: // a record separator begins the texts of a JSON sequence
		default:
			return c, nil
		}
		s.pos++
	}
}

// need is space where the text may not end.
func (s *jsonSplitter) need() (byte, error) {
	c, err := s.space()
	return c, s.unexpected(err)
}

func (s *jsonSplitter) unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return &SyntaxError{Line: s.line, Err: errTruncated}
	}
	return err
}

// run splits the whole dump.
func (s *jsonSplitter) run() error {
	for {
		c, err := s.space()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch c {
		case '{':
			err = s.document()
		case '[':
			err = s.items("")
		default:
			err = s.fail("expected an object, found %q", c)
		}
		if err != nil {
			return err
		}
	}
}

// document is one object, or a list of them.
func (s *jsonSplitter) document() error {
	line, head := s.line, []byte{'{'}
	list, kind := false, ""
	s.pos++
	for {
		c, err := s.need()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			s.pos++
			if list {
				return nil
			}
			return s.emit(piece{line: line, text: append(head, '}')})
		case ',':
			s.pos++
			continue
		case '"':
		default:
			return s.fail("expected a field, found %q", c)
		}
		key, err := s.copy(nil)
		if err != nil {
			return err
		}
		if c, err = s.need(); err != nil {
			return err
		}
		if c != ':' {
			return s.fail("expected a colon after %.40s, found %q", key, c)
		}
		s.pos++
		if c, err = s.need(); err != nil {
			return err
		}
		if string(key) == `"items"` && c == '[' {
			list = true
			if err := s.items(strings.TrimSuffix(kind, "List")); err != nil {
				return err
			}
			continue
		}
		if len(head) > 1 {
			head = append(head, ',')
		}
		head = append(append(head, key...), ':')
		from := len(head)
		if head, err = s.copy(head); err != nil {
			return err
		}
		if string(key) == `"kind"` {
			kind = strings.Trim(string(head[from:]), `"`)
		}
	}
}

// items splits an array of objects, which are of a kind where they do not say.
func (s *jsonSplitter) items(kind string) error {
	s.pos++
	for {
		c, err := s.need()
		if err != nil {
			return err
		}
		switch c {
		case ']':
			s.pos++
			return nil
		case ',':
			s.pos++
			continue
		}
		line := s.line
		text, err := s.copy(make([]byte, 0, 4096))
		if err != nil {
			return err
		}
		if len(text) == 0 {
			return s.fail("expected an object in the list, found %q", c)
		}
		if err := s.emit(piece{line: line, kind: kind, text: text}); err != nil {
			return err
		}
	}
}

// copy appends the value that begins here to what is there.
func (s *jsonSplitter) copy(to []byte) ([]byte, error) {
	depth, quoted, escaped := 0, false, false
	from := len(to)
	for {
		if _, err := s.peek(); err != nil {
			if errors.Is(err, io.EOF) && depth == 0 && !quoted && len(to) > from {
				return to, nil
			}
			return nil, s.unexpected(err)
		}
		start := s.pos
		done := false
		for s.pos < len(s.buf) {
			c := s.buf[s.pos]
			if quoted {
				switch {
				case escaped:
					escaped = false
				case c == '\\':
					escaped = true
				case c == '"':
					quoted = false
					done = depth == 0
				}
			} else {
				switch c {
				case '"':
					quoted = true
				case '{', '[':
					depth++
				case '}', ']':
					if depth == 0 { // the end of what is around a number or a word
						return append(to, s.buf[start:s.pos]...), nil
					}
					depth--
					done = depth == 0
				case ',', ' ', '\t', '\r', '\n':
					if depth == 0 {
						return append(to, s.buf[start:s.pos]...), nil
					}
				}
			}
			s.pos++
			if done {
				break
			}
		}
		part := s.buf[start:s.pos]
		s.line += bytes.Count(part, newline)
		if to = append(to, part...); len(to)-from > maxObject {
			return nil, s.fail("an object of more than %d MiB", maxObject>>20)
		}
		if done {
			return to, nil
		}
	}
}

var newline = []byte{'\n'}

// kindOf is the kind that an object's text names, without reading the rest of it
// more closely than it must.
func kindOf(text []byte) string {
	depth, field := 0, false // field: the next text at depth 1 is a field's name
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			field = depth == 1
		case '}', ']':
			depth--
		case ',':
			field = depth == 1
		case '"':
			end := endOfString(text, i)
			if end < 0 {
				return ""
			}
			if field && depth == 1 && string(text[i:end]) == `"kind"` {
				return stringAfter(text[end:])
			}
			if depth == 1 {
				field = false
			}
			i = end - 1
		}
	}
	return ""
}

// endOfString is the position after the text that begins at i; -1 without an end.
func endOfString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// stringAfter is the text after a colon.
func stringAfter(text []byte) string {
	from := bytes.IndexByte(text, '"')
	if from < 0 || len(bytes.Trim(text[:from], " \t\r\n:")) > 0 {
		return ""
	}
	end := endOfString(text, from)
	if end < 0 {
		return ""
	}
	return string(text[from+1 : end-1])
}

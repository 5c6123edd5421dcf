package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxObject bounds the size of one object in bytes. etcd rejects objects of more than
// a few MiB.
const maxObject = 16 << 20

// A piece is the text of one object in JSON or YAML.
type piece struct {
	line int // first line, from 1
	kind string
	text []byte
	yaml bool
	item bool // item of a YAML list: must not be empty
}

// A jsonSplitter splits a JSON dump into objects without parsing them: the items of
// lists, consecutive documents, and arrays of objects. It holds one object at a time,
// so that the size of a dump is not limited.
type jsonSplitter struct {
	r    io.Reader
	buf  []byte
	pos  int
	line int
	emit func(piece) error
}

// errTruncated means that the text ends inside an object.
var errTruncated = errors.New("unexpected end of the dump: it was truncated; create it again")

func (s *jsonSplitter) fail(format string, args ...any) error {
	return &SyntaxError{Line: s.line, Err: fmt.Errorf(format, args...)}
}

// peek returns the next byte, or io.EOF at the end.
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

// space skips white space and returns the next byte.
func (s *jsonSplitter) space() (byte, error) {
	for {
		c, err := s.peek()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r', 0x1e: // record separator of JSON text sequences
		default:
			return c, nil
		}
		s.pos++
	}
}

// need is like space but returns a SyntaxError at the end of the text.
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

// document splits one object or list.
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

// items splits an array. Objects without a kind get the given one.
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

// copy appends the value at the current position to the buffer.
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
					if depth == 0 { // end of the value that encloses a number or word
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
			return nil, s.fail("object exceeds %d MiB", maxObject>>20)
		}
		if done {
			return to, nil
		}
	}
}

var newline = []byte{'\n'}

// kindOf returns the kind of an object, or "" if there is none. It scans only the
// fields at the top level and does not validate the text.
func kindOf(text []byte) string {
	depth, field := 0, false // field: the next string at depth 1 is a key
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

// endOfString returns the position after the string that begins at i, or -1.
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

// stringAfter returns the string after a colon.
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

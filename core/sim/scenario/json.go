package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonSource reads JSON as a stream, a window at a time. Files of importers
// have tens of thousands of jobs; encoding/json would either hold them several
// times over or, token by token, take seconds and know no lines.
type jsonSource struct {
	r    io.Reader
	buf  []byte // buf[pos:] is unread
	pos  int
	err  error // why r gave no more; io.EOF at its end
	line int

	open    []byte // '{' or '[' of what is open, outermost first
	want    expect
	scratch []byte
}

// expect is what the grammar allows next.
type expect uint8

const (
	wantValue      expect = iota
	wantFirstKey          // or }
	wantFirstValue        // or ]
	wantComma             // or the end of what is open
	wantEnd               // of the document
)

const (
	jsonWindow = 64 << 10
	// maxText bounds a single text, so that one missing quote does not pull the
	// whole file into memory.
	maxText = 1 << 20
)

func newJSONSource(r io.Reader) *jsonSource {
	return &jsonSource{r: r, buf: make([]byte, 0, jsonWindow), line: 1}
}

func (s *jsonSource) fail(message, remedy string) {
	panic(fatal{problem: Problem{Line: s.line, Message: message, Remedy: remedy}})
}

// refill reads on and reports whether there was anything. What is unread moves
// to the front, so positions in buf change.
func (s *jsonSource) refill() bool {
	if s.err != nil {
		return false
	}
	if s.pos > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
		s.pos = 0
	}
	if len(s.buf) == cap(s.buf) {
		grown := make([]byte, len(s.buf), 2*cap(s.buf))
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 { // readers that give nothing and no error are broken
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.err = s.buf[:len(s.buf)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// peek skips white space and returns the next byte without taking it; ok is
// false at the end.
func (s *jsonSource) peek() (c byte, ok bool) {
	for {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case '\n':
				s.line++
				s.pos++
			case ' ', '\t', '\r':
				s.pos++
			default:
				return c, true
			}
		}
		if !s.refill() {
			return 0, false
		}
	}
}

// peekRequired is peek where the document may not end.
func (s *jsonSource) peekRequired() byte {
	c, ok := s.peek()
	if !ok {
		s.failEOF()
	}
	return c
}

func (s *jsonSource) failEOF() {
	if !errors.Is(s.err, io.EOF) {
		panic(fatalRead(s.line, s.err))
	}
	what := "in the middle of a value"
	if n := len(s.open); n > 0 {
		what = map[byte]string{'{': "before the } that closes a mapping", '[': "before the ] that closes a list"}[s.open[n-1]]
	}
	s.fail("the file ends "+what, "it seems to be cut off: write or copy it again")
}

func (s *jsonSource) next() event {
	switch s.want {
	case wantEnd:
		if c, ok := s.peek(); ok {
			s.fail(fmt.Sprintf("expected the end of the file after the closing }, found %s", describeByte(c)), "remove what follows: a file is one scenario")
		}
		if !errors.Is(s.err, io.EOF) {
			panic(fatalRead(s.line, s.err))
		}
		return event{kind: kindEnd, line: s.line}
	case wantFirstKey:
		if s.peekRequired() == '}' {
			return s.end()
		}
		return s.key()
	case wantFirstValue:
		if s.peekRequired() == ']' {
			return s.end()
		}
	case wantComma:
		return s.afterValue()
	}
	return s.value()
}

// afterValue reads what may come after a value.
func (s *jsonSource) afterValue() event {
	inObject := s.open[len(s.open)-1] == '{'
	c := s.peekRequired()
	switch {
	case c == ',':
		s.pos++
		if inObject {
			return s.key()
		}
		return s.value()
	case c == '}' && inObject, c == ']' && !inObject:
		return s.end()
	}
	closing := "]"
	if inObject {
		closing = "}"
	}
	s.fail(fmt.Sprintf("expected , or %s, found %s", closing, describeByte(c)), "check the commas, brackets and quotes just before")
	panic("unreachable")
}

func (s *jsonSource) end() event {
	s.pos++
	last := len(s.open) - 1
	k := kindObjectEnd
	if s.open[last] == '[' {
		k = kindListEnd
	}
	s.open = s.open[:last]
	s.expectAfterValue()
	return event{kind: k, line: s.line}
}

// expectAfterValue sets what may follow a complete value.
func (s *jsonSource) expectAfterValue() {
	s.want = wantComma
	if len(s.open) == 0 {
		s.want = wantEnd
	}
}

func (s *jsonSource) key() event {
	if c := s.peekRequired(); c != '"' {
		s.fail(fmt.Sprintf("expected a field name in double quotes, found %s", describeByte(c)), "JSON allows no comma before a closing bracket, no comments and no bare names; YAML does")
	}
	ev := event{kind: kindKey, line: s.line, text: s.text()}
	// The colon may lie beyond the window, whose refill would overwrite text.
	if s.pos == len(s.buf) || s.buf[s.pos] != ':' {
		s.scratch = append(s.scratch[:0], ev.text...)
		ev.text = s.scratch
		if c := s.peekRequired(); c != ':' {
			s.fail(fmt.Sprintf("expected : after a field name, found %s", describeByte(c)), "write \"field\": value")
		}
	}
	s.pos++
	s.want = wantValue
	return ev
}

func (s *jsonSource) value() event {
	c := s.peekRequired()
	ev := event{line: s.line}
	switch {
	case c == '{' || c == '[':
		s.pos++
		if len(s.open) == maxDepth {
			panic(tooDeep(s.line))
		}
		s.open = append(s.open, c)
		ev.kind, s.want = kindObject, wantFirstKey
		if c == '[' {
			ev.kind, s.want = kindList, wantFirstValue
		}
		return ev
	case c == '"':
		ev.kind, ev.text = kindString, s.text()
	case c == '-' || c >= '0' && c <= '9':
		ev.kind, ev.text = kindNumber, s.word()
		if !validNumber(ev.text) {
			s.fail(fmt.Sprintf("%.40q is not a number", ev.text), "write digits, such as 5, -5, 0.5 or 1e3, or put the text in quotes")
		}
	default:
		ev.text = s.word()
		switch string(ev.text) {
		case "true", "false":
			ev.kind = kindBool
		case "null":
			ev.kind = kindNull
		case "":
			s.fail(fmt.Sprintf("expected a value, found %s", describeByte(c)), "check the commas, brackets and quotes just before")
		default:
			s.fail(fmt.Sprintf("expected a value, found %.40q", ev.text), "put texts in double quotes")
		}
	}
	s.expectAfterValue()
	return ev
}

// word takes the run of bytes that may make up a number or a literal.
func (s *jsonSource) word() []byte {
	n := 0
	for {
		for s.pos+n < len(s.buf) {
			c := s.buf[s.pos+n]
			if c <= ' ' || c == ',' || c == ']' || c == '}' || c == ':' || c == '{' || c == '[' || c == '"' || n == maxText {
				s.pos += n
				return s.buf[s.pos-n : s.pos]
			}
			n++
		}
		if !s.refill() {
			s.failEOF() // nothing but } may end a document
		}
	}
}

// text takes a string and resolves its escapes. The opening quote is next.
func (s *jsonSource) text() []byte {
	n, ascii := 1, true
	for {
		for s.pos+n < len(s.buf) {
			switch c := s.buf[s.pos+n]; {
			case c == '"':
				raw := s.buf[s.pos+1 : s.pos+n]
				s.pos += n + 1
				if !ascii {
					return s.resolve(raw)
				}
				return raw
			case c == '\\':
				ascii = false
				n++ // whatever follows is no closing quote
			case c < ' ':
				s.fail(fmt.Sprintf("%s within a text", describeByte(c)), "close the quotes, or write the character as an escape such as \\n")
			case c >= utf8.RuneSelf:
				ascii = false
			}
			n++
		}
		if n > maxText {
			s.fail("a text of more than 1 MiB", "a closing quote seems to be missing")
		}
		if !s.refill() {
			s.failEOF()
		}
	}
}

// resolve checks UTF-8 and replaces escapes, into scratch.
func (s *jsonSource) resolve(raw []byte) []byte {
	if !utf8.Valid(raw) {
		s.fail("a text is not valid UTF-8", "save the file as UTF-8")
	}
	out := s.scratch[:0]
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			break
		}
		out = append(out, raw[:i]...)
		var r rune
		if r, raw = s.escape(raw[i+1:]); r < 0 {
			s.fail("unknown escape in a text", `use \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`)
		}
		out = utf8.AppendRune(out, r)
	}
	out = append(out, raw...)
	s.scratch = out
	return out
}

// escape reads what follows a backslash. Half a surrogate pair becomes the
// replacement character, as in encoding/json.
func (s *jsonSource) escape(raw []byte) (rune, []byte) {
	if raw[0] != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), raw[0])
		if i < 0 {
			return -1, raw
		}
		return rune("\"\\/\b\f\n\r\t"[i]), raw[1:]
	}
	r := hex4(raw[1:])
	if r < 0 {
		return -1, raw
	}
	raw = raw[5:]
	if !utf16.IsSurrogate(r) {
		return r, raw
	}
	if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(raw[2:])); pair != utf8.RuneError {
			return pair, raw[6:]
		}
	}
	return utf8.RuneError, raw
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// validNumber is JSON's grammar for numbers.
func validNumber(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("-"))
	whole := leadingDigits(b)
	if whole == 0 || whole > 1 && b[0] == '0' {
		return false
	}
	b = b[whole:]
	if len(b) > 0 && b[0] == '.' {
		n := leadingDigits(b[1:])
		if n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n := leadingDigits(b)
		return n > 0 && n == len(b)
	}
	return len(b) == 0
}

func leadingDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}

// describeByte names a byte for people.
func describeByte(c byte) string {
	switch {
	case c == '\n':
		return "a line break"
	case c == '\t':
		return "a tab"
	case c < ' ' || c >= 0x7f:
		return fmt.Sprintf("the byte 0x%02x", c)
	}
	return string(rune(c))
}

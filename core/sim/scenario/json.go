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

// jsonSource reads JSON as a stream through a fixed window. Imported files hold tens
// of thousands of jobs: encoding/json would keep several copies of them, or take
// seconds token by token, and does not report line numbers.
type jsonSource struct {
	r    io.Reader
	buf  []byte // buf[pos:] is unread
	pos  int
	err  error // error of r that ended reading; io.EOF at its end
	line int

	open    []byte // '{' or '[' of each open value, outermost first
	want    expect
	scratch []byte
}

// expect is the set of tokens that the grammar allows next.
type expect uint8

const (
	wantValue      expect = iota
	wantFirstKey          // or }
	wantFirstValue        // or ]
	wantComma             // or the closing bracket
	wantEnd               // of the document
)

const (
	jsonWindow = 64 << 10
	// maxText bounds a single string, so that a missing quote does not load the
	// whole file into memory.
	maxText = 1 << 20
)

func newJSONSource(r io.Reader) *jsonSource {
	return &jsonSource{r: r, buf: make([]byte, 0, jsonWindow), line: 1}
}

// fail ends decoding with a syntax error at the current line.
func (s *jsonSource) fail(message, remedy string) {
	panic(fatal{problem: Problem{Line: s.line, Message: message, Remedy: remedy}})
}

// refill reads more input and reports whether there was any. Unread bytes move to the
// front of buf, so positions in buf change.
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
	for range 100 { // a reader that repeatedly returns neither data nor an error is broken
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.err = s.buf[:len(s.buf)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// peek skips white space and returns the next byte without consuming it. It returns
// false at the end of the input.
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

// peekRequired is like peek but fails at the end of the input.
func (s *jsonSource) peekRequired() byte {
	c, ok := s.peek()
	if !ok {
		s.failEOF()
	}
	return c
}

// failEOF reports an input that ends inside a value.
func (s *jsonSource) failEOF() {
	if !errors.Is(s.err, io.EOF) {
		panic(fatalRead(s.line, s.err))
	}
	where := "in the middle of a value"
	if n := len(s.open); n > 0 {
		where = map[byte]string{'{': "before the } that closes a mapping", '[': "before the ] that closes a list"}[s.open[n-1]]
	}
	s.fail("the file ends "+where, "the file may be truncated: write or copy it again")
}

func (s *jsonSource) next() event {
	switch s.want {
	case wantEnd:
		if c, ok := s.peek(); ok {
			s.fail(fmt.Sprintf("expected the end of the file after the closing }, found %s", describeByte(c)), "remove the rest: a file holds one scenario")
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

// afterValue returns the event after a complete value: the next element, or the end of
// the enclosing value.
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

// end closes the innermost open value.
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

// expectAfterValue sets the tokens that may follow a complete value.
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
	// The colon may lie beyond the window. Refilling would overwrite text.
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
			s.fail(fmt.Sprintf("%.40q is not a number", ev.text), "write digits, such as 5, -5, 0.5 or 1e3, or put the string in quotes")
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
			s.fail(fmt.Sprintf("expected a value, found %.40q", ev.text), "put strings in double quotes")
		}
	}
	s.expectAfterValue()
	return ev
}

// word returns the run of bytes that may form a number or a literal.
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
			s.failEOF() // only } may end a document
		}
	}
}

// text returns a string with its escapes resolved. The next byte is its opening quote.
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
				n++ // an escaped byte never closes the string
			case c < ' ':
				s.fail(fmt.Sprintf("%s within a string", describeByte(c)), "close the quotes, or write the character as an escape such as \\n")
			case c >= utf8.RuneSelf:
				ascii = false
			}
			n++
		}
		if n > maxText {
			s.fail("a string of more than 1 MiB", "a closing quote may be missing")
		}
		if !s.refill() {
			s.failEOF()
		}
	}
}

// resolve validates UTF-8 and replaces escapes. The result may alias scratch.
func (s *jsonSource) resolve(raw []byte) []byte {
	if !utf8.Valid(raw) {
		s.fail("a string is not valid UTF-8", "save the file as UTF-8")
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
			s.fail("unknown escape in a string", `use \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`)
		}
		out = utf8.AppendRune(out, r)
	}
	out = append(out, raw...)
	s.scratch = out
	return out
}

// escape decodes the escape after a backslash and returns the rest. An unpaired
// surrogate becomes the replacement character, as in encoding/json.
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

// hex4 returns the value of four hexadecimal digits, or -1 if b does not start with them.
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

// validNumber reports whether b matches JSON's grammar of numbers.
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

// describeByte returns a printable description of a byte, for messages.
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

package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSON bounds the size of one object.
const maxJSON = 16 << 20

// Objects reads the objects of a JSON array, or consecutive objects, one by one.
type Objects struct {
	Problems
	Object []byte // the text of the current object; valid until the next call of Next

	dec    *json.Decoder
	at     *newlines
	array  bool
	closer *Reader
}

// Objects opens a file of JSON objects.
func (s Source) Objects(name string) (*Objects, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	o := &Objects{Problems: Problems{file: name, line: 1}, at: &newlines{r: r}, closer: r}
	o.dec = json.NewDecoder(o.at)
	for {
		c, err := r.Peek(1)
		if err != nil || c[0] != ' ' && c[0] != '\n' && c[0] != '\r' && c[0] != '\t' {
			o.array = err == nil && c[0] == '['
			break
		}
		var one [1]byte
		_, _ = o.at.Read(one[:])
		o.at.skipped++
	}
	if o.array {
		_, _ = o.dec.Token()
	}
	return o, nil
}

// Close closes the file.
func (o *Objects) Close() error { return o.closer.Close() }

// Next reads an object. It returns false at the end or if reading cannot continue.
func (o *Objects) Next() bool {
	if !o.start() {
		return false
	}
	if o.array && !o.dec.More() {
		_, err := o.dec.Token()
		o.line = o.at.line(o.dec.InputOffset())
		if err != nil {
			o.unreadable(err)
		} else if _, err := o.dec.Token(); !errors.Is(err, io.EOF) {
			o.stop("the list is followed by other text; expected one list")
		}
		return false
	}
	var text json.RawMessage
	before := o.dec.InputOffset()
	err := o.dec.Decode(&text)
	if err == nil {
		o.line = o.at.line(o.dec.InputOffset() - int64(len(text)))
	} else {
		o.line = o.at.line(before)
	}
	switch {
	case errors.Is(err, io.EOF) && !o.array:
		return false
	case err != nil:
		o.line = o.at.line(o.syntaxError())
		o.unreadable(err)
		return false
	case len(text) > maxJSON:
		o.stop("an object of %d bytes; expected at most %d", len(text), maxJSON)
		return false
	}
	o.Object = text
	return true
}

// syntaxError returns the offset at which the current object is invalid. The offsets of the
// decoder's own errors do not count the separators between objects.
func (o *Objects) syntaxError() int64 {
	var text json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.NewDecoder(o.dec.Buffered()).Decode(&text)); ok {
		return o.dec.InputOffset() + syntax.Offset - 1
	}
	return o.dec.InputOffset()
}

func (o *Objects) unreadable(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file ends inside an object or a list: %w", io.ErrUnexpectedEOF)
	}
	o.stop("not valid JSON: %w", err)
}

// newlines is a reader that records the offsets of line ends, to number the lines of
// objects. Offsets before the last requested one are forgotten.
type newlines struct {
	r       io.Reader
	read    int64
	skipped int64   // bytes that the decoder did not receive
	ends    []int64 // offsets after line ends
	passed  int
}

func (n *newlines) Read(p []byte) (int, error) {
	count, err := n.r.Read(p)
	for i, c := range p[:count] {
		if c == '\n' {
			n.ends = append(n.ends, n.read+int64(i)+1)
		}
	}
	n.read += int64(count)
	return count, err
}

// line returns the line of an offset in the text of the decoder. Offsets must not decrease.
func (n *newlines) line(offset int64) int {
	i := 0
	for i < len(n.ends) && n.ends[i] <= offset+n.skipped {
		i++
	}
	n.passed += i
	n.ends = append(n.ends[:0], n.ends[i:]...)
	return n.passed + 1
}

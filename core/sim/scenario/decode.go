package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
)

// MaxSize is the largest file that Decode reads, in bytes.
const MaxSize = 512 << 20

var errTooLarge = errors.New("the file is larger than 512 MiB")

// Decode reads and validates a scenario. Name is used in messages only. A document
// that starts with { and a quoted key is parsed as JSON, regardless of its name;
// everything else as YAML. Decode returns an *Error that lists all problems of the file.
func Decode(name string, r io.Reader) (*File, error) {
	f, _, err := DecodeLines(name, r)
	return f, err
}

// Lines maps the values of a file to line numbers.
type Lines struct{ at positions }

// Of returns the line of the value at a path, such as jobs[2].policy. If that value
// has no line of its own, it returns the line of the nearest enclosing value.
func (l *Lines) Of(path string) int { return l.at.line(path) }

// DecodeLines is like Decode and also returns the lines, for callers that report
// further problems of the file.
func DecodeLines(name string, r io.Reader) (*File, *Lines, error) {
	if size, ok := sizeOf(r); ok && size > MaxSize {
		return nil, nil, &Error{File: name, Problems: []Problem{fatalRead(1, errTooLarge).problem}}
	}
	input := &limited{r: r, left: MaxSize}
	d := &decoder{input: input, interned: map[string]string{}}
	f, err := d.decode(bufio.NewReaderSize(input, 4096))
	if err != nil {
		err.File = name
		return nil, nil, err
	}
	d.check(f)
	if err := d.problems.err(name); err != nil {
		return nil, nil, err
	}
	return f, &Lines{at: d.lines}, nil
}

// sizeOf returns the size of a regular file, so that Decode can reject a file that is
// too large without reading it. It returns false if r is not a regular file.
func sizeOf(r io.Reader) (int64, bool) {
	file, ok := r.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return 0, false
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// limited is a reader that fails after MaxSize bytes.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// read returns the number of bytes read so far.
func (l *limited) read() int64 { return MaxSize - l.left }

// fatalRead returns the error of a file that cannot be read to its end.
func fatalRead(line int, err error) fatal {
	if errors.Is(err, errTooLarge) {
		return fatal{problem: Problem{
			Line:    line,
			Message: err.Error(),
			Remedy:  "split the scenario, or import less of the trace",
		}}
	}
	return fatal{err: err, problem: Problem{
		Line:    line,
		Message: fmt.Sprintf("cannot read the file: %v", err),
		Remedy:  "check the file and its permissions",
	}}
}

// decoder converts the events of a document into a File. The Go types of this package
// are the schema.
type decoder struct {
	input    *limited
	src      source
	path     []step
	lines    positions
	problems problems
	// refused holds the paths with a problem. Later checks skip them, because their
	// values are not those of the file.
	refused  map[string]bool
	keys     []keyLine // of the open mappings with free keys
	spent    int       // estimated memory of the decoded values, in bytes
	interned map[string]string
}

// decode returns the file, or the error that ended decoding. It recovers the panics of
// sources (fatal) and of the problem limit (decodeLimit) and re-panics on any other.
func (d *decoder) decode(r *bufio.Reader) (f *File, err *Error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatal:
			f, err = nil, &Error{Problems: []Problem{p.problem}, Err: p.err}
		case decodeLimit:
			first := Problem{
				Line:    1,
				Message: fmt.Sprintf("more than %d problems up to line %d, where reading stopped", maxProblems, p.line),
				Remedy:  "check that this is a scenario file",
			}
			f, err = nil, &Error{Problems: append([]Problem{first}, d.problems.list...), More: d.problems.more}
		default:
			panic(p)
		}
	}()
	if isJSON(r) {
		d.src = newJSONSource(r)
	} else {
		d.src = newYAMLSource(r)
	}
	ev := d.src.next()
	if ev.kind != kindObject {
		panic(notAScenario(ev.line, found(ev)))
	}
	f = &File{}
	filePlan.decode(d, reflect.ValueOf(f).Elem(), ev)
	d.src.next() // fails if the document continues
	return f, nil
}

// check validates the decoded file and adds line numbers to the problems.
func (d *decoder) check(f *File) {
	if d.problems.more > 0 {
		return // the problem limit is already exceeded
	}
	if f.Version != formatVersion && !d.refused["version"] {
		d.problems = problems{} // the fields of another version have other meanings
	}
	c := newChecker(f)
	c.skipRefused(d.refused)
	c.check()
	for _, p := range c.problems.list {
		p.Line = d.lines.line(p.Path)
		d.problems.add(p)
	}
	d.problems.more += c.problems.more
}

// isJSON reports whether the input starts with {" or {} after white space. Other
// documents that start with { are YAML flow mappings.
func isJSON(r *bufio.Reader) bool {
	head, _ := r.Peek(1024)
	mark := []byte("\ufeff")
	if bytes.HasPrefix(head, mark) {
		_, _ = r.Discard(len(mark)) // Peek above guarantees these bytes
		head = head[len(mark):]
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	head = bytes.TrimLeft(head[1:], " \t\r\n")
	return len(head) == 0 || head[0] == '"' || head[0] == '}'
}

// maxProblems is the number of problems after which decoding or checking stops.
const maxProblems = 10_000

// spend adds the estimated memory of a value and fails if the total is out of
// proportion to the bytes read. A typical file needs four to eight times its size; a
// file of tiny elements twenty to a hundred times, which would allow a small hostile
// file to exhaust memory.
func (d *decoder) spend(bytes int) {
	if d.spent += bytes; int64(d.spent) > 128<<20+12*d.input.read() {
		panic(fatal{problem: Problem{
			Line:    d.lines.last(),
			Message: "the file requires far more memory than its size suggests: its elements are almost empty, or aliases repeat them",
			Remedy:  "check that this is a scenario file; write equal nodes and instances with count",
		}})
	}
}

// push enters a value: it extends the path and opens the value's line record.
func (d *decoder) push(s step, line int) int {
	d.path = append(d.path, s)
	return d.lines.open(s, line)
}

// pop leaves the value that push returned the mark of.
func (d *decoder) pop(mark int) {
	d.lines.close(mark)
	d.path = d.path[:len(d.path)-1]
}

// problem records a problem of the value at the current path.
func (d *decoder) problem(line int, message, remedy string) {
	at := ""
	if len(d.problems.list) < maxStored {
		at = d.where(len(d.path))
		if d.refused == nil {
			d.refused = map[string]bool{}
		}
		d.refused[at] = true
	}
	d.problems.add(Problem{Line: line, Path: at, Message: message, Remedy: remedy})
	if d.problems.len() > maxProblems {
		panic(decodeLimit{line})
	}
}

// where returns the first steps of the current path as text.
func (d *decoder) where(steps int) string {
	var b []byte
	for _, s := range d.path[:steps] {
		b = s.append(b)
	}
	return string(b)
}

// A decodeLimit is the panic that ends decoding if a file has too many problems.
type decodeLimit struct{ line int }

// wrongType records a value of the wrong type and skips it.
func (d *decoder) wrongType(ev event, expected, remedy string) {
	d.problem(ev.line, "expected "+expected+", found "+found(ev), remedy)
	d.skip(ev)
}

// skip consumes the rest of a value.
func (d *decoder) skip(ev event) {
	depth := 0
	for {
		switch ev.kind {
		case kindObject, kindList:
			depth++
		case kindObjectEnd, kindListEnd:
			depth--
		}
		if depth == 0 {
			return
		}
		ev = d.src.next()
	}
}

// intern returns text as a string and shares equal strings. Most strings of a large
// file are the same few names.
func (d *decoder) intern(text []byte) string {
	if len(text) > 64 {
		return string(text)
	}
	if s, ok := d.interned[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(d.interned) < 1<<14 {
		d.interned[s] = s
	}
	return s
}

// found describes the value of an event, for messages of the form "expected X, found Y".
func found(ev event) string {
	switch ev.kind {
	case kindNull:
		return "nothing (null)"
	case kindBool:
		return string(ev.text)
	case kindNumber:
		return fmt.Sprintf("the number %.40s", ev.text)
	case kindString:
		return fmt.Sprintf("the string %.40q", ev.text)
	case kindObject:
		return "a mapping"
	case kindList:
		return "a list"
	}
	return "the end of the file"
}

// nameFields lists the fields that must be unique within a list, by element type.
var nameFields = map[reflect.Type]string{
	reflect.TypeFor[PolicyVariant](): "name",
	reflect.TypeFor[Namespace]():     "name",
	reflect.TypeFor[PriorityClass](): "name",
	reflect.TypeFor[Node]():          "id",
	reflect.TypeFor[Job]():           "id",
	reflect.TypeFor[Group]():         "name",
	reflect.TypeFor[Running]():       "id",
	reflect.TypeFor[Cluster]():       "id",
	reflect.TypeFor[Binding]():       "id",
}

// longList is the length above which names are compared while the list is read.
const longList = 10_000

// duplicateNames detects duplicate names while a long list is read. Validation finds
// them as well, but only after reading a list that may have millions of equal
// elements. The name is the first field of the struct.
type duplicateNames struct {
	list  reflect.Value
	field string // "" if the elements have no names
	first map[string]int
}

// checkLast compares the element that was read last with the earlier ones.
func (r *duplicateNames) checkLast(d *decoder, i, line int) {
	if r.field == "" || i+1 < longList {
		return
	}
	if i == maxNodes && r.list.Type().Elem() == reflect.TypeFor[Node]() {
		panic(fatal{problem: Problem{Line: line, Path: d.where(len(d.path)), Message: tooManyNodes, Remedy: "use fewer nodes"}})
	}
	if r.first == nil {
		r.first = make(map[string]int, 2*longList)
		for k := range i {
			if name := r.name(k); name != "" {
				if _, ok := r.first[name]; !ok {
					r.first[name] = k
				}
			}
		}
	}
	name := r.name(i)
	if name == "" {
		return // the decoder has reported the missing name
	}
	first, ok := r.first[name]
	if !ok {
		r.first[name] = i
		return
	}
	list := d.where(len(d.path) - 1)
	mark := d.push(step{key: r.field, index: -1}, line)
	d.problem(line, fmt.Sprintf("duplicate %s %.100q: already used by %s[%d]", r.field, name, list, first), "use a unique "+r.field)
	d.pop(mark)
}

func (r *duplicateNames) name(i int) string { return r.list.Index(i).Field(0).String() }

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

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 512 << 20

var errTooLarge = errors.New("the file is larger than 512 MiB")

// Decode reads a scenario and checks it. The name is for messages. A document
// that starts with { and a quoted key is read as JSON, whatever its name;
// everything else as YAML. All problems of the file are reported at once, as
// an *Error.
func Decode(name string, r io.Reader) (*File, error) {
	f, _, err := DecodeLines(name, r)
	return f, err
}

// Lines tells on which lines of a file its values stand.
type Lines struct{ at positions }

// Of is the line of the value at a path, such as jobs[2].policy, or of the
// nearest value around it that has a line of its own.
func (l *Lines) Of(path string) int { return l.at.line(path) }

// DecodeLines is Decode for callers that may find more to say about the file.
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

// sizeOf asks a regular file how large it is, so that one that is too large is
// refused unread.
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

// limited fails once too much was read.
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

func (l *limited) read() int64 { return MaxSize - l.left }

// fatalRead is the end of a file that could not be read on.
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
		Message: fmt.Sprintf("the file could not be read: %v", err),
		Remedy:  "check the file and its permissions",
	}}
}

// decoder turns the events of a document into a File, by the schema that the
// types are.
type decoder struct {
	input    *limited
	src      source
	path     []step
	lines    positions
	problems problems
	// refused are the paths with a problem; what is checked later stays silent
	// about them, since their values are not what was written.
	refused  map[string]bool
	keys     []keyLine // of the mappings with free keys that are open
	spent    int       // memory, roughly
	interned map[string]string
}

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
	d.src.next() // a document that goes on is an error
	return f, nil
}

// check validates what was decoded, and finds the lines.
func (d *decoder) check(f *File) {
	if d.problems.more > 0 {
		return // enough is wrong
	}
	if f.Version != formatVersion && !d.refused["version"] {
		d.problems = problems{} // of another version's file nothing else means anything
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

// isJSON looks at the first bytes that are no white space: {" or {}. Other
// things that start with { are YAML's flow mappings.
func isJSON(r *bufio.Reader) bool {
	head, _ := r.Peek(1024)
	mark := []byte("\ufeff")
	if bytes.HasPrefix(head, mark) {
		_, _ = r.Discard(len(mark)) // it was peeked
		head = head[len(mark):]
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	head = bytes.TrimLeft(head[1:], " \t\r\n")
	return len(head) == 0 || head[0] == '"' || head[0] == '}'
}

// maxProblems is how many problems make a file rubbish, not worth reading on.
const maxProblems = 10_000

// spend counts memory that a value is about to take, roughly. A real file
// takes four to eight times its size. A hostile one may be all tiny elements
// that take twenty to a hundred times theirs; it is stopped once that has become much.
func (d *decoder) spend(bytes int) {
	if d.spent += bytes; int64(d.spent) > 128<<20+12*d.input.read() {
		panic(fatal{problem: Problem{
			Line:    d.lines.last(),
			Message: "the file takes far more memory than its size suggests: its elements say almost nothing, or aliases repeat them",
			Remedy:  "check that this is a scenario file; write equal nodes and instances with count",
		}})
	}
}

// push and pop keep the path and the lines.
func (d *decoder) push(s step, line int) int {
	d.path = append(d.path, s)
	return d.lines.open(s, line)
}

func (d *decoder) pop(mark int) {
	d.lines.close(mark)
	d.path = d.path[:len(d.path)-1]
}

// problem refuses the value at the current path.
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

// where is the current path, or its first so many steps.
func (d *decoder) where(steps int) string {
	var b []byte
	for _, s := range d.path[:steps] {
		b = s.append(b)
	}
	return string(b)
}

// decodeLimit ends decoding of a file with too many problems.
type decodeLimit struct{ line int }

// wrongType refuses a value of the wrong type, and steps over it.
func (d *decoder) wrongType(ev event, expected, remedy string) {
	d.problem(ev.line, "expected "+expected+", found "+found(ev), remedy)
	d.skip(ev)
}

// skip steps over the rest of a value.
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

// intern makes a string, or finds the one made before: most texts of a large
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

// found names what stands in place of what was expected.
func found(ev event) string {
	switch ev.kind {
	case kindNull:
		return "nothing (null)"
	case kindBool:
		return string(ev.text)
	case kindNumber:
		return fmt.Sprintf("the number %.40s", ev.text)
	case kindString:
		return fmt.Sprintf("the text %.40q", ev.text)
	case kindObject:
		return "a mapping"
	case kindList:
		return "a list"
	}
	return "the end of the file"
}

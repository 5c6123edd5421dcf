package kube

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/model"
)

// ErrEmpty means that a dump has nothing in it that bears on scheduling.
var ErrEmpty = errors.New("there is no node and no pod in it")

// SyntaxError is a dump that cannot be read further.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap gives what is wrong.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ObjectError is one object of a dump that is not as its kind is.
type ObjectError struct {
	File   int // which of the readers, from 0
	Line   int
	Object int // which one of the file, from 1
	Kind   string
	Name   string // with the namespace; "" where it could not be read
	Err    error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("line %d: %s: %v", e.Line, e.Describe(), e.Err)
}

// Describe is the object by its name, or by its number where it tells none.
func (e *ObjectError) Describe() string {
	if e.Name != "" {
		return e.Kind + " " + e.Name
	}
	if e.Kind == anyObject {
		return fmt.Sprintf("object %d", e.Object)
	}
	return fmt.Sprintf("%s (object %d)", e.Kind, e.Object)
}

// anyObject is the kind of what tells none.
const anyObject = "object"

// Unwrap gives what is wrong.
func (e *ObjectError) Unwrap() error { return e.Err }

// Dump is what was read of a cluster, each kind in the order of the dump. Of an
// object that comes several times the last counts, in the place of the first.
type Dump struct {
	Nodes      []*Node
	Pods       []*Pod
	Budgets    []*Budget
	Classes    []*PriorityClass
	Namespaces []*Namespace
	Workloads  []*Workload
	Other      map[string]int // kinds that do not bear on scheduling
	Deleted    []any          // of a watch: objects that are gone
	Objects    int            // in all
	Bytes      int64

	Invalid           []*ObjectError // of Salvage: what is left out, maxProblems of it
	InvalidCount      int            // all of it
	InvalidFiles      []int          // the readers of which nothing but that came
	UnterminatedLists int            // lists in YAML without what kubectl writes at their end: maybe cut off
	Duplicates        []Duplicate    // objects that came several times, maxProblems of them
}

// Duplicate is an object that came again, at another line.
type Duplicate struct {
	Object       string
	First, Again int // lines
}

// maxProblems is how many objects that are not as they should be are told.
const maxProblems = 20

// Read reads what `kubectl get … -o json` or `-o yaml` writes, whole or as a
// watch goes on, also packed with gzip; of several files one cluster is made. The
// text is not kept. The error lists objects that are not as their kind is, each
// with its line.
func Read(readers ...io.Reader) (*Dump, error) {
	d, err := read(newCollector(maxProblems), readers)
	var problems []error
	for _, e := range d.Invalid {
		problems = append(problems, e)
	}
	if err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return d, nil
}

// ReadPartial reads as Read does, but leaves out the objects that are not as their kind
// is: Unread names them. The error is of a dump that cannot be read further.
func ReadPartial(readers ...io.Reader) (*Dump, error) {
	d, err := read(newCollector(math.MaxInt), readers)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func read(c *collector, readers []io.Reader) (d *Dump, err error) {
	var bytes int64
	for i, r := range readers {
		c.file, c.first = i, c.next
		counted := &counter{r: r}
		if err = readOne(counted, c); err != nil {
			break
		}
		bytes += counted.n
	}
	d = c.end()
	d.Bytes, d.UnterminatedLists = bytes, c.unterminated
	return d, err
}

// readOne reads one file of a dump.
func readOne(r io.Reader, c *collector) error {
	in := bufio.NewReaderSize(r, 1<<18)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return split(in, c)
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("not a gzip file: %w", err)
	}
	return split(bufio.NewReaderSize(z, 1<<18), c)
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// split finds out whether a dump is JSON or YAML and splits it.
func split(in *bufio.Reader, c *collector) error {
	head, _ := in.Peek(512)
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) {
		return &SyntaxError{Line: 1, Err: errors.New("this is no text: expected JSON or YAML, as kubectl writes it")}
	}
	if first := bytes.TrimLeft(head, " \t\r\n\x1e"); len(first) > 0 && (first[0] == '{' || first[0] == '[') {
		s := &jsonSplitter{r: skipMark(in), buf: make([]byte, 0, 1<<16), line: 1, emit: c.add}
		return s.run()
	}
	s := &yamlSplitter{r: bufio.NewReader(skipMark(in)), emit: c.add}
	err := s.run()
	c.unterminated += s.unterminated
	return err
}

// skipMark skips a byte order mark.
func skipMark(in *bufio.Reader) io.Reader {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	return in
}

// collector decodes objects side by side and puts them in order.
type collector struct {
	work     chan numbered
	wg       sync.WaitGroup
	next     int
	decoders []*decoder
	stop     chan struct{} // closed when there are too many problems
	once     sync.Once

	file, first  int // being read, and the number of its first object
	unterminated int
}

type numbered struct {
	seq, file, object int
	depth             int // of lists within lists
	piece
}

// decoder is what one goroutine has decoded.
type decoder struct {
	found        []decoded
	problems     []*ObjectError // the first of them
	problemCount int            // all of them
	invalidFiles map[int]bool   // readers with them
	validFiles   map[int]bool   // readers with others
	other        map[string]int
	objects      int
	pruned       []byte // scratch of object
}

type decoded struct {
	seq     int
	line    int
	deleted bool
	object  any
}

// newCollector makes one that stops when so many objects are wrong.
func newCollector(enough int) *collector {
	c := &collector{work: make(chan numbered, 64), stop: make(chan struct{})}
	for range max(1, min(4, runtime.GOMAXPROCS(0))) {
		d := &decoder{other: map[string]int{}, invalidFiles: map[int]bool{}, validFiles: map[int]bool{}}
		c.decoders = append(c.decoders, d)
		c.wg.Go(func() {
			for p := range c.work {
				if d.decode(p); d.problemCount >= enough {
					c.once.Do(func() { close(c.stop) })
				}
			}
		})
	}
	return c
}

// errTooManyProblems ends the reading of a dump of which too much is wrong.
var errTooManyProblems = errors.New("too many objects are wrong")

func (c *collector) add(p piece) error {
	select {
	case <-c.stop:
		return errTooManyProblems
	case c.work <- numbered{seq: c.next, file: c.file, object: c.next - c.first + 1, piece: p}:
		c.next++
		return nil
	}
}

// end waits for what is being decoded.
func (c *collector) end() *Dump {
	close(c.work)
	c.wg.Wait()
	d := &Dump{Other: map[string]int{}}
	var all []decoded
	bad, good := map[int]bool{}, map[int]bool{}
	for _, w := range c.decoders {
		all = append(all, w.found...)
		d.Invalid = append(d.Invalid, w.problems...)
		d.InvalidCount += w.problemCount
		maps.Copy(bad, w.invalidFiles)
		maps.Copy(good, w.validFiles)
		d.Objects += w.objects
		for kind, n := range w.other {
			d.Other[kind] += n
		}
	}
	slices.SortFunc(all, func(a, b decoded) int { return cmp.Compare(a.seq, b.seq) })
	slices.SortFunc(d.Invalid, func(a, b *ObjectError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, file := range slices.Sorted(maps.Keys(bad)) {
		if !good[file] {
			d.InvalidFiles = append(d.InvalidFiles, file)
		}
	}
	d.Invalid = d.Invalid[:min(len(d.Invalid), maxProblems)]
	d.sort(all)
	return d
}

// sort puts objects into the lists of their kinds.
func (d *Dump) sort(all []decoded) {
	s := &objectIndex{dump: d, at: make(map[[3]string]indexedObject, len(all))}
	for _, x := range all {
		if x.deleted {
			d.Deleted = append(d.Deleted, x.object)
			continue
		}
		switch o := x.object.(type) {
		case *Node:
			d.Nodes = put(d.Nodes, s, x.line, [3]string{"Node", "", o.Metadata.Name}, o)
		case *Pod:
			d.Pods = put(d.Pods, s, x.line, o.Metadata.key("Pod"), o)
		case *Budget:
			d.Budgets = put(d.Budgets, s, x.line, o.Metadata.key("PodDisruptionBudget"), o)
		case *PriorityClass:
			d.Classes = put(d.Classes, s, x.line, [3]string{"PriorityClass", "", o.Metadata.Name}, o)
		case *Namespace:
			d.Namespaces = put(d.Namespaces, s, x.line, [3]string{"Namespace", "", o.Metadata.Name}, o)
		case *Workload:
			d.Workloads = put(d.Workloads, s, x.line, o.Metadata.key(o.Kind), o)
		}
	}
}

// objectIndex is where in the lists objects are, by kind, namespace and name.
type objectIndex struct {
	dump *Dump
	at   map[[3]string]indexedObject
}

type indexedObject struct{ index, line int }

func put[T any](list []T, s *objectIndex, line int, key [3]string, o T) []T {
	if taken, ok := s.at[key]; ok {
		if len(s.dump.Duplicates) < maxProblems {
			named := Metadata{Namespace: key[1], Name: key[2]}
			s.dump.Duplicates = append(s.dump.Duplicates, Duplicate{Object: key[0] + " " + named.full(), First: taken.line, Again: line})
		}
		list[taken.index] = o
		return list
	}
	s.at[key] = indexedObject{len(list), line}
	return append(list, o)
}

// decode decodes one piece.
func (d *decoder) decode(p numbered) {
	texts := [][]byte{p.text}
	if p.yaml {
		var errs []error
		texts, errs = fromYAML(p.text)
		if p.item && len(texts)+len(errs) == 0 {
			errs = append(errs, notAnObject("null"))
		}
		for _, err := range errs {
			d.addProblem(p, anyObject, "", err)
		}
	}
	for _, text := range texts {
		d.object(p, text)
	}
}

func (d *decoder) addProblem(p numbered, kind, name string, err error) {
	d.invalidFiles[p.file] = true
	if d.problemCount++; len(d.problems) < maxProblems { // a decoder meets its own in the order of the dump
		d.problems = append(d.problems, &ObjectError{File: p.file, Line: p.line, Object: p.object, Kind: kind, Name: name, Err: explain(err)})
	}
}

// explain says a decoder's error in words of the object.
func explain(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		article := "a"
		if strings.HasPrefix(e.Value, "a") || strings.HasPrefix(e.Value, "o") {
			article = "an"
		}
		return fmt.Errorf("%s is %s %s, which it cannot be", e.Field, article, e.Value)
	}
	return err
}

func (d *decoder) object(p numbered, text []byte) {
	if of, is := strings.CutSuffix(kindOf(text), "List"); is && d.list(p, of, text) {
		return
	}
	d.objects++
	if text[0] != '{' {
		d.addProblem(p, anyObject, "", notAnObject(string(text)))
		return
	}
	kind := cmp.Or(kindOf(text), p.kind)
	pruned := filterFields(kind, text, d.pruned)
	if len(pruned) < len(text) {
		d.pruned = pruned
	}
	object, err := decodeObject(kind, pruned)
	switch {
	case err == nil && object == nil && kind == "":
		d.event(p, text)
	case err == nil && object == nil:
		d.validFiles[p.file] = true
		if d.other[short(kind)]++; !json.Valid(text) {
			d.addProblem(p, short(kind), "", errors.New("it is no JSON"))
		}
	case err != nil:
		var named struct{ Metadata Metadata }
		_ = json.Unmarshal(text, &named) // as far as it goes
		d.addProblem(p, short(kind), named.Metadata.full(), err)
	default:
		if name := nameOf(object); !isValidName(name) {
			d.addProblem(p, kind, "", errors.New("it has no name, or one that Kubernetes would not take"))
			return
		}
		d.validFiles[p.file] = true
		d.found = append(d.found, decoded{seq: p.seq, line: p.line, object: object})
	}
}

// list decodes the objects of a list within a list, which are of a kind where they do
// not say; false where it is none.
func (d *decoder) list(p numbered, kind string, text []byte) bool {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(text, &list) != nil || list.Items == nil {
		return false
	}
	if p.depth++; p.depth > maxDepth {
		d.addProblem(p, kind+"List", "", errors.New("lists within lists within lists"))
		return true
	}
	p.kind = kind
	for _, item := range list.Items {
		d.object(p, item)
	}
	return true
}

// maxDepth is how many lists may be within one another.
const maxDepth = 4

func short(kind string) string {
	if len(kind) > 60 {
		return kind[:60] + "…"
	}
	return kind
}

// event is what a watch tells, or nothing that is known.
func (d *decoder) event(p numbered, text []byte) {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	err := json.Unmarshal(text, &event)
	switch {
	case err == nil && event.Type == "BOOKMARK":
	case err == nil && isSet(event.Object) && kindOf(event.Object) != "":
		p.text, p.yaml = event.Object, false
		before := len(d.found)
		d.objects--
		d.object(p, event.Object)
		if event.Type == "DELETED" && len(d.found) > before {
			d.found[before].deleted = true
		}
	case err != nil:
		d.addProblem(p, anyObject, "", err)
	default:
		d.addProblem(p, anyObject, "", errors.New("it has no kind, as every object of Kubernetes has, and no items, as a list has"))
	}
}

// decodeObject decodes an object of a kind that bears on scheduling; nil for others.
func decodeObject(kind string, text []byte) (any, error) {
	var to any
	switch kind {
	case "Node":
		to = &Node{}
	case "Pod":
		to = &Pod{}
	case "PodDisruptionBudget":
		to = &Budget{}
	case "PriorityClass":
		to = &PriorityClass{}
	case "Namespace":
		to = &Namespace{}
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet", "Job":
		to = &Workload{Kind: kind}
	default:
		return nil, nil
	}
	return to, json.Unmarshal(text, to)
}

func nameOf(object any) string {
	switch o := object.(type) {
	case *Node:
		return o.Metadata.Name
	case *Pod:
		return o.Metadata.Name
	case *Budget:
		return o.Metadata.Name
	case *PriorityClass:
		return o.Metadata.Name
	case *Namespace:
		return o.Metadata.Name
	case *Workload:
		return o.Metadata.Name
	}
	return ""
}

// isValidName is whether a name is as Kubernetes has them: lower-case letters,
// digits, dots and dashes.
func isValidName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 253
}

// full is the name with the namespace.
func (m *Metadata) full() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// key is what tells an object of a kind from others: without a namespace it is in
// default, as kubectl puts it there.
func (m *Metadata) key(kind string) [3]string {
	return [3]string{kind, cmp.Or(m.Namespace, model.DefaultNamespace), m.Name}
}

// notAnObject is what is said of a value in the place of an object.
func notAnObject(value string) error { return fmt.Errorf("expected an object, found %.40s", value) }

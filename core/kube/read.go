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
	"time"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/core/model"
)

// ErrEmpty means that a dump contains neither nodes nor pods.
var ErrEmpty = errors.New("no nodes and no pods found")

// A SyntaxError means that a dump cannot be read beyond a line.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// An ObjectError means that one object of a dump is invalid for its kind.
type ObjectError struct {
	File   int // index of the reader
	Line   int
	Object int // number in the file, from 1
	Kind   string
	Name   string // with the namespace; "" if it could not be read
	Err    error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("line %d: %s: %v", e.Line, e.Describe(), e.Err)
}

// Describe returns the kind and the name of the object, or its number if it has no name.
func (e *ObjectError) Describe() string {
	if e.Name != "" {
		return e.Kind + " " + e.Name
	}
	if e.Kind == anyObject {
		return fmt.Sprintf("object %d", e.Object)
	}
	return fmt.Sprintf("%s (object %d)", e.Kind, e.Object)
}

// anyObject is the kind of objects without a readable kind.
const anyObject = "object"

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// A Dump holds the objects of a cluster by kind, in the order of the dump. If an
// object occurs several times, the last occurrence replaces the first.
type Dump struct {
	Nodes      []*Node
	Pods       []*Pod
	Budgets    []*Budget
	Classes    []*PriorityClass
	Namespaces []*Namespace
	Workloads  []*Workload
	PodGroups  []*PodGroup
	Devices    dra.Objects
	Other      map[string]int // counts of kinds irrelevant to scheduling
	Deleted    []any          // objects of DELETED watch events
	Objects    int            // total
	// Time is when the objects were read; zero: unknown. The latest timestamp of an object is
	// used if it is later.
	Time  time.Time
	Bytes int64

	Invalid           []*ObjectError // of ReadPartial: objects left out, at most maxProblems
	InvalidCount      int            // all of them
	InvalidFiles      []int          // indices of readers with invalid objects only
	UnterminatedLists int            // YAML lists without the kind that kubectl writes at the end: may be truncated
	Duplicates        []Duplicate    // at most maxProblems

	lines map[*Metadata]int // line numbers of nodes and pods
}

// A Duplicate is an object that occurs more than once.
type Duplicate struct {
	Object       string
	First, Again int // line numbers
}

// maxProblems bounds the number of problems that are listed.
const maxProblems = 20

// Read reads the output of `kubectl get … -o json` or `-o yaml`, including watches
// and gzip-compressed files. Several readers are merged into one dump. If objects are
// invalid for their kind, the error lists them with their lines.
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

// ReadPartial is like Read but leaves out invalid objects, which Dump.Invalid lists.
// It returns an error only if a file cannot be read to its end.
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

// split detects whether a file is JSON or YAML and splits it into objects.
func split(in *bufio.Reader, c *collector) error {
	head, _ := in.Peek(512)
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) {
		return &SyntaxError{Line: 1, Err: errors.New("not a text file: expected the JSON or YAML output of kubectl")}
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

// A collector decodes objects concurrently and restores their order.
type collector struct {
	work     chan numbered
	wg       sync.WaitGroup
	next     int
	decoders []*decoder
	stop     chan struct{} // closed if there are too many problems
	once     sync.Once

	file, first  int // current file, and the number of its first object
	unterminated int
}

type numbered struct {
	seq, file, object int
	depth             int // nesting depth of lists
	piece
}

// A decoder holds the results of one goroutine.
type decoder struct {
	found        []decoded
	problems     []*ObjectError // the first maxProblems
	problemCount int            // all of them
	invalidFiles map[int]bool   // files with invalid objects
	validFiles   map[int]bool   // files with valid objects
	other        map[string]int
	objects      int
	pruned       []byte // scratch buffer of object
}

type decoded struct {
	seq     int
	line    int
	deleted bool
	object  any
}

// newCollector returns a collector that stops after the given number of problems.
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

// errTooManyProblems stops reading after too many problems.
var errTooManyProblems = errors.New("too many invalid objects")

func (c *collector) add(p piece) error {
	select {
	case <-c.stop:
		return errTooManyProblems
	case c.work <- numbered{seq: c.next, file: c.file, object: c.next - c.first + 1, piece: p}:
		c.next++
		return nil
	}
}

// end waits for the decoders and merges their results.
func (c *collector) end() *Dump {
	close(c.work)
	c.wg.Wait()
	d := &Dump{Other: map[string]int{}, lines: map[*Metadata]int{}}
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
	d.distribute(all)
	return d
}

// distribute distributes objects to the lists of their kinds.
func (d *Dump) distribute(all []decoded) {
	s := &objectIndex{dump: d, at: make(map[[3]string]indexedObject, len(all))}
	for _, x := range all {
		if x.deleted {
			d.Deleted = append(d.Deleted, x.object)
			continue
		}
		switch o := x.object.(type) {
		case *Node:
			d.lines[&o.Metadata] = x.line
			d.Nodes = upsert(d.Nodes, s, x.line, [3]string{"Node", "", o.Metadata.Name}, o)
		case *Pod:
			d.lines[&o.Metadata] = x.line
			d.Pods = upsert(d.Pods, s, x.line, o.Metadata.key("Pod"), o)
		case *Budget:
			d.Budgets = upsert(d.Budgets, s, x.line, o.Metadata.key("PodDisruptionBudget"), o)
		case *PriorityClass:
			d.Classes = upsert(d.Classes, s, x.line, [3]string{"PriorityClass", "", o.Metadata.Name}, o)
		case *Namespace:
			d.Namespaces = upsert(d.Namespaces, s, x.line, [3]string{"Namespace", "", o.Metadata.Name}, o)
		case *PodGroup:
			d.PodGroups = upsert(d.PodGroups, s, x.line, o.Metadata.key("PodGroup"), o)
		case *dra.Slice:
			d.Devices.Slices = upsert(d.Devices.Slices, s, x.line, [3]string{"ResourceSlice", "", o.Metadata.Name}, o)
		case *dra.Class:
			d.Devices.Classes = upsert(d.Devices.Classes, s, x.line, [3]string{"DeviceClass", "", o.Metadata.Name}, o)
		case *dra.Claim:
			d.Devices.Claims = upsert(d.Devices.Claims, s, x.line, [3]string{"ResourceClaim", o.Metadata.Namespace, o.Metadata.Name}, o)
		case *dra.Template:
			d.Devices.Templates = upsert(d.Devices.Templates, s, x.line, [3]string{"ResourceClaimTemplate", o.Metadata.Namespace, o.Metadata.Name}, o)
		case *Workload:
			d.Workloads = upsert(d.Workloads, s, x.line, o.Metadata.key(o.Kind), o)
		}
	}
}

// An objectIndex maps kind, namespace and name to the position in a list.
type objectIndex struct {
	dump *Dump
	at   map[[3]string]indexedObject
}

type indexedObject struct{ index, line int }

func upsert[T any](list []T, s *objectIndex, line int, key [3]string, o T) []T {
	if existing, ok := s.at[key]; ok {
		if len(s.dump.Duplicates) < maxProblems {
			named := Metadata{Namespace: key[1], Name: key[2]}
			s.dump.Duplicates = append(s.dump.Duplicates, Duplicate{Object: key[0] + " " + named.full(), First: existing.line, Again: line})
		}
		list[existing.index] = o
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
	if d.problemCount++; len(d.problems) < maxProblems { // a decoder receives its pieces in the order of the dump
		d.problems = append(d.problems, &ObjectError{File: p.file, Line: p.line, Object: p.object, Kind: kind, Name: name, Err: explain(err)})
	}
}

// explain rephrases type errors of encoding/json in terms of the object's fields.
func explain(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		article := "a"
		if strings.HasPrefix(e.Value, "a") || strings.HasPrefix(e.Value, "o") {
			article = "an"
		}
		return fmt.Errorf("%s must not be %s %s", e.Field, article, e.Value)
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
			d.addProblem(p, short(kind), "", errors.New("not valid JSON"))
		}
	case err != nil:
		var named struct{ Metadata Metadata }
		_ = json.Unmarshal(text, &named) // best effort, for the name
		d.addProblem(p, short(kind), named.Metadata.full(), err)
	default:
		if name := nameOf(object); !isValidName(name) {
			d.addProblem(p, kind, "", errors.New("missing or invalid name"))
			return
		}
		d.validFiles[p.file] = true
		d.found = append(d.found, decoded{seq: p.seq, line: p.line, object: object})
	}
}

// list decodes the items of a nested list. Items without a kind get the kind of the
// list. It returns false if the object is not a list.
func (d *decoder) list(p numbered, kind string, text []byte) bool {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(text, &list) != nil || list.Items == nil {
		return false
	}
	if p.depth++; p.depth > maxDepth {
		d.addProblem(p, kind+"List", "", errors.New("lists are nested too deeply"))
		return true
	}
	p.kind = kind
	for _, item := range list.Items {
		d.object(p, item)
	}
	return true
}

// maxDepth bounds the nesting of lists.
const maxDepth = 4

func short(kind string) string {
	if len(kind) > 60 {
		return kind[:60] + "…"
	}
	return kind
}

// event decodes a watch event, or reports an object without a kind.
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
		d.addProblem(p, anyObject, "", errors.New("missing kind (of an object) or items (of a list)"))
	}
}

// decodeObject decodes an object if its kind is relevant to scheduling; otherwise it
// returns nil.
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
	case "PodGroup":
		var g struct {
			APIVersion string `json:"apiVersion"`
			PodGroup
		}
		err := json.Unmarshal(text, &g)
		if err == nil && !strings.HasPrefix(g.APIVersion, "scheduling.k8s.io/") {
			return nil, nil // of another scheduler
		}
		return &g.PodGroup, err
	case "ResourceSlice":
		to = &dra.Slice{}
	case "DeviceClass":
		to = &dra.Class{}
	case "ResourceClaim":
		to = &dra.Claim{}
	case "ResourceClaimTemplate":
		to = &dra.Template{}
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
	case *PodGroup:
		return o.Metadata.Name
	case *dra.Slice:
		return o.Metadata.Name
	case *dra.Class:
		return o.Metadata.Name
	case *dra.Claim:
		return o.Metadata.Name
	case *dra.Template:
		return o.Metadata.Name
	}
	return ""
}

// isValidName reports whether a name consists of lower-case letters, digits, dots and
// dashes, as Kubernetes requires.
func isValidName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 253
}

// full returns the name with the namespace.
func (m *Metadata) full() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// key returns the identity of an object. An empty namespace is "default", as in
// kubectl.
func (m *Metadata) key(kind string) [3]string {
	return [3]string{kind, cmp.Or(m.Namespace, model.DefaultNamespace), m.Name}
}

// notAnObject returns the error for a value that should be an object.
func notAnObject(value string) error { return fmt.Errorf("expected an object, found %.40s", value) }

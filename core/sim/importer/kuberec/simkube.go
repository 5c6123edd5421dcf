package kuberec

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// simkubeNodes are the names of the file with the nodes, next to the trace.
var simkubeNodes = []string{"nodes.json", "nodes.yaml"}

// errTrailing is returned for files that were concatenated or damaged.
var errTrailing = errors.New("the trace is followed by other data; expected one trace")

// simkubeEvent is one event of a trace.
type simkubeEvent struct {
	TS      int64             `json:"ts"`
	Applied []json.RawMessage `json:"applied_objs"`
	Deleted []json.RawMessage `json:"deleted_objs"`
}

// SimKube imports a trace of SimKube, version 2 or 3, as MessagePack or converted to JSON.
// See the package documentation.
func SimKube(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	file, err := simkubeFile(src)
	if err != nil {
		return nil, nil, err
	}
	stem := build.Stem(build.Stem(build.Stem(file, ".msgpack"), ".mp"), ".json")
	r, err := newRecording("simkube", "SimKube trace "+stem, stem, opts)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range simkubeNodes {
		if name = src.Find(name); name == "" {
			continue
		}
		src.Expect(name, file)
		if err := r.readNodes(src, name); err != nil {
			return nil, r.Report, err
		}
	}
	r.Report.Files = append(r.Report.Files, file)
	if err := r.readSimKube(src, file); err != nil {
		return nil, r.Report, &build.FileError{File: file, Err: err}
	}
	return r.finish("no nodes: a trace of SimKube contains none; write the output of `kubectl get nodes -o json` to nodes.json next to the trace")
}

func simkubeFile(src build.Source) (string, error) {
	if src.File != "" {
		return src.File, nil
	}
	var files []string
	for _, f := range src.Match("*.msgpack", "*.mp", "*.json") {
		if build.Stem(f, "") != simkubeNodes[0] {
			files = append(files, f)
		}
	}
	if len(files) == 1 {
		return files[0], nil
	}
	return "", fmt.Errorf("expected one trace with the extension .msgpack, .mp or .json; pass the file (found: %s)", src.Listing())
}

// readNodes reads the nodes and priority classes of a dump of kubectl.
func (r *recording) readNodes(src build.Source, name string) error {
	r.Report.Files = append(r.Report.Files, name)
	f, err := src.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := kube.Read(f)
	if err != nil {
		return &build.FileError{File: name, Err: err}
	}
	for _, n := range d.Nodes {
		r.nodes[n.Metadata.Name] = true
	}
	r.dump.Nodes, r.dump.Classes = append(r.dump.Nodes, d.Nodes...), append(r.dump.Classes, d.Classes...)
	return nil
}

// simkubeReader processes the parts of a trace.
type simkubeReader struct {
	*recording
	version int64
	start   int64 // ts of the first event; -1: none yet
	events  int
	index   map[string]*meanLife

	wrongLives []string // problems of lifetimes
}

// meanLife is the sum of the lifetimes of the pods of one owner.
type meanLife struct {
	seconds float64
	pods    int
}

func (r *recording) readSimKube(src build.Source, file string) error {
	f, err := src.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := &simkubeReader{recording: r, start: -1, index: map[string]*meanLife{}}
	if head, _ := f.Peek(1); len(head) == 1 && head[0] == '{' {
		err = s.readJSON(f)
	} else {
		err = s.readMessagePack(f.Reader)
	}
	switch {
	case err != nil:
		return err
	case s.version != 2 && s.version != 3:
		return fmt.Errorf("version %d; expected a trace of version 2 or 3", s.version)
	case s.events == 0:
		return errors.New("the trace has no events")
	case len(s.wrongLives) > 0:
		return s.lifetimeError()
	}
	for _, l := range r.lives {
		if l.workload == nil || l.workload.Kind != "Job" {
			continue
		}
		if m := s.index[l.workload.Metadata.Namespace+"/"+l.workload.Metadata.Name]; m != nil {
			l.duration = time.Duration(m.seconds / float64(m.pods) * float64(time.Second))
			r.Report.Note(1, "Jobs with recorded lifetimes of their pods", "the mean is the duration of each pod")
		}
	}
	return nil
}

// lifetimeError returns an error that lists the problems of lifetimes.
func (s *simkubeReader) lifetimeError() error {
	const most = 20
	slices.Sort(s.wrongLives) // maps have no order
	list := s.wrongLives[:min(len(s.wrongLives), most)]
	if more := len(s.wrongLives) - len(list); more > 0 {
		list = append(slices.Clip(list), fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(list, "\n"))
}

// event processes one event.
func (s *simkubeReader) event(e *simkubeEvent) error {
	s.events++
	if s.start < 0 {
		s.start = e.TS
	}
	seconds := e.TS - s.start
	if e.TS < 0 || seconds < 0 || seconds > int64(maxTime/time.Second) {
		return fmt.Errorf("ts is %d; expected Unix seconds that do not precede those of the first event (%d)", e.TS, s.start)
	}
	at := time.Duration(seconds) * time.Second
	for i, text := range e.Applied {
		if err := s.apply(at, text); err != nil {
			return fmt.Errorf("applied_objs %d: %w", i, err)
		}
	}
	for i, text := range e.Deleted {
		var o object
		if err := plainjson.Unmarshal(text, &o); err != nil {
			return fmt.Errorf("deleted_objs %d: %w", i, err)
		}
		s.remove(at, &o)
	}
	return nil
}

// addLives adds the lifetimes below a part of the index. They have the form
// {"Finished": [start, end]} or {"start_ts": start, "end_ts": end}.
func (s *simkubeReader) addLives(owner string, v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			s.addLives(owner, one)
		}
	case map[string]any:
		start, end := v["start_ts"], v["end_ts"]
		if f, ok := v["Finished"].([]any); ok && len(f) == 2 {
			start, end = f[0], f[1]
		}
		from, ok1 := number(start)
		to, ok2 := number(end)
		if ok1 && ok2 && (to < from || to-from >= maxTime.Seconds()) {
			s.wrongLives = append(s.wrongLives, fmt.Sprintf("lifetime of %s from %.0f to %.0f: the end must not precede the start or be more than %d years later; correct it, or remove it",
				owner, from, to, maxTime/(365*24*time.Hour)))
			return
		}
		if ok1 && ok2 {
			m := s.index[owner]
			if m == nil {
				m = &meanLife{}
				s.index[owner] = m
			}
			m.seconds, m.pods = m.seconds+to-from, m.pods+1
			return
		}
		for _, below := range v {
			s.addLives(owner, below)
		}
	case map[any]any:
		for _, below := range v {
			s.addLives(owner, below)
		}
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// readJSON reads a trace that was converted to JSON.
func (s *simkubeReader) readJSON(r io.Reader) error {
	dec := json.NewDecoder(r)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err == nil {
			switch key {
			case "version":
				err = dec.Decode(&s.version)
			case "events":
				err = s.jsonEvents(dec)
			case "index":
				var index map[string]map[string]any
				if err = dec.Decode(&index); err == nil {
					for _, objects := range index {
						for owner, below := range objects {
							s.addLives(owner, below)
						}
					}
				}
			default:
				var skipped json.RawMessage
				err = dec.Decode(&skipped)
			}
		}
		if err != nil {
			return s.invalid(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return s.invalid(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

func (s *simkubeReader) jsonEvents(dec *json.Decoder) error {
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return cmpError(err, "events is not a list")
	}
	for dec.More() {
		var e simkubeEvent
		if err := dec.Decode(&e); err != nil {
			return err
		}
		if err := s.event(&e); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func cmpError(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

// invalid adds the position to an error.
func (s *simkubeReader) invalid(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends too early; it was truncated")
	}
	return fmt.Errorf("at event %d: %w", s.events, plainjson.Explain(err))
}

// readMessagePack reads a trace as SimKube writes it. The headers of maps and lists are read
// here, so that events are decoded one by one.
func (s *simkubeReader) readMessagePack(r *bufio.Reader) error {
	h := &codec.MsgpackHandle{}
	h.RawToString, h.WriteExt = true, true
	h.MapType = reflect.TypeFor[map[string]any]()
	dec := codec.NewDecoder(r, h)
	n, err := header(r, 0x80, 0xde)
	if err != nil {
		return fmt.Errorf("expected a map with version, config, events and index: %w; traces before version 2 are a list, export them with a newer SimKube", err)
	}
	for range n {
		var key string
		if err := dec.Decode(&key); err != nil {
			return s.invalid(err)
		}
		switch key {
		case "version":
			err = dec.Decode(&s.version)
		case "events":
			err = s.packedEvents(r, dec)
		case "index":
			err = s.packedIndex(r, dec, true)
		case "pod_lifecycles":
			err = s.packedIndex(r, dec, false)
		default:
			var skipped any
			err = dec.Decode(&skipped)
		}
		if err != nil {
			return s.invalid(err)
		}
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

func (s *simkubeReader) packedEvents(r *bufio.Reader, dec *codec.Decoder) error {
	n, err := header(r, 0x90, 0xdc)
	if err != nil {
		return err
	}
	for range n {
		var packed struct {
			TS      int64 `codec:"ts"`
			Applied []any `codec:"applied_objs"`
			Deleted []any `codec:"deleted_objs"`
		}
		if err := dec.Decode(&packed); err != nil {
			return err
		}
		e := simkubeEvent{TS: packed.TS}
		for _, list := range []struct {
			from []any
			to   *[]json.RawMessage
		}{{packed.Applied, &e.Applied}, {packed.Deleted, &e.Deleted}} {
			for _, v := range list.from {
				text, err := json.Marshal(v)
				if err != nil {
					return fmt.Errorf("not a Kubernetes object: %w", err)
				}
				*list.to = append(*list.to, text)
			}
		}
		if err := s.event(&e); err != nil {
			return err
		}
	}
	return nil
}

// packedIndex reads a map from kinds to maps from owners to lifetimes (version 3), or from
// pairs of a kind and an owner to lifetimes (version 2).
func (s *simkubeReader) packedIndex(r *bufio.Reader, dec *codec.Decoder, nested bool) error {
	n, err := header(r, 0x80, 0xde)
	if err != nil {
		return err
	}
	for range n {
		var key, value any
		if err := dec.Decode(&key); err != nil {
			return err
		}
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if pair, ok := key.([]any); ok && !nested && len(pair) == 2 {
			if owner, ok := pair[1].(string); ok {
				s.addLives(owner, value)
			}
			continue
		}
		if owners, ok := value.(map[string]any); ok {
			for owner, below := range owners {
				s.addLives(owner, below)
			}
		}
	}
	return nil
}

// header reads the header of a map or a list: fix is its first short form, and wide that
// with 16 bits; that with 32 bits follows.
func header(r *bufio.Reader, fix, wide byte) (int, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	var b [4]byte
	switch {
	case c&0xf0 == fix:
		return int(c & 0x0f), nil
	case c == wide:
		_, err = io.ReadFull(r, b[2:])
	case c == wide+1:
		_, err = io.ReadFull(r, b[:])
	default:
		return 0, fmt.Errorf("unexpected byte 0x%02x", c)
	}
	return int(binary.BigEndian.Uint32(b[:])), err
}

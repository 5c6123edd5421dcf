package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagEvents = "events"

func eventRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/event/stream", name: "event_stream", tag: tagEvents, roles: []acl.Role{acl.Read}, scope: scopeNamespace, isBinary: true,
		doc: "Streams events in log order: as server-sent events if Accept is text/event-stream, with the index as id, " +
			"otherwise as one JSON object per line, with {} as keep-alive. Resume an interrupted stream with Last-Event-ID or index. If events were missed that are " +
			"no longer stored, the stream reports it: an event named lost, or an object with Lost. If it starts at an index later than the newest, it " +
			"waits, and reports that first: an event named ahead, or an object with Newest.",
		params: []param{
			{"topic", "string", "TOPIC or TOPIC:KEY; repeatable; absent or *: all topics"},
			{"index", "integer", "start at this index; 0: only new events"},
			{"namespace", "string", "only events of this namespace; *: all"},
		},
		response: client.Events{}, handle: streamEvents,
	}}
}

// eventFilter selects the events of a stream that its client receives.
type eventFilter struct {
	c    *call
	keys map[events.Topic][]string // "" in the list: all keys
}

// filterOf returns the filter of a request, and its topics. Topics that exist only in
// Nomad match nothing. Other unknown topics are an error.
func filterOf(c *call) (*eventFilter, []string, error) {
	f := &eventFilter{c: c, keys: map[events.Topic][]string{}}
	for _, text := range c.r.URL.Query()["topic"] {
		name, key, _ := strings.Cut(text, ":")
		if key == "*" {
			key = ""
		}
		switch topic := events.Topic(name); {
		case name == "*":
			for _, t := range events.Topics {
				f.keys[t] = append(f.keys[t], key)
			}
		case slices.Contains(events.Topics, topic):
			f.keys[topic] = append(f.keys[topic], key)
		case !slices.Contains(nomadTopics, name):
			return nil, nil, rest.Invalid("unknown topic %s", rest.Quote(name)).WithHint("use * or one of %s", strings.Join(topicNames(), ", ")).With("Parameter", "topic")
		default:
			f.keys[topic] = append(f.keys[topic], key) // matches nothing
		}
	}
	var topics []string
	for _, t := range slices.Sorted(maps.Keys(f.keys)) {
		topics = append(topics, string(t))
	}
	return f, topics, nil
}

func topicNames() []string {
	names := make([]string, len(events.Topics))
	for i, t := range events.Topics {
		names[i] = string(t)
	}
	return names
}

// nomadTopics are the topics of Nomad without an equivalent.
var nomadTopics = []string{"Deployment", "NodePool", "Service", "ACLToken", "ACLPolicy", "ACLRole"}

func (f *eventFilter) matches(e *events.Event) bool {
	if e.Namespace != "" {
		if ns := f.c.namespace(); ns != allNamespaces && ns != e.Namespace {
			return false
		}
	}
	// A token that is restricted to a namespace receives no events of other
	// namespaces or of the cluster.
	if f.c.token != nil && f.c.token.Namespace != "" && e.Namespace != f.c.token.Namespace {
		return false
	}
	keys, asked := f.keys[e.Topic]
	return len(f.keys) == 0 || asked && (slices.Contains(keys, "") || slices.Contains(keys, e.Key))
}

// A position identifies the progress of a client: the number of events of an index,
// after filtering, that it has received. Messages carry it as their ID, so that an
// interrupted stream resumes within an index.
type position struct {
	index uint64
	sent  int // 0 in a request: all events of the index
}

func (p position) String() string { return fmt.Sprintf("%d.%d", p.index, p.sent) }

func parsePosition(text string) (position, error) {
	index, sent, parts := strings.Cut(text, ".")
	var p position
	var err error
	if p.index, err = strconv.ParseUint(index, 10, 64); err == nil && parts {
		p.sent, err = strconv.Atoi(sent)
	}
	if err != nil || p.sent < 0 {
		return p, rest.Invalid("invalid Last-Event-ID %s: it must be the ID of a message, or an index", rest.Quote(text))
	}
	return p, nil
}

// streamStart returns the index at which the stream starts, 0 for new events only,
// and the number of events of that index to skip.
func streamStart(c *call) (from uint64, skip int, err error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		from, err = queryNumber(c, "index")
		return from, 0, err
	}
	p, err := parsePosition(text)
	if p.sent == 0 {
		return p.index + 1, 0, err
	}
	return p.index, p.sent, err
}

// stream is one wire format of events.
type stream interface {
	begin(h http.Header)
	events(at position, e *client.Events) error
	lost(gap *client.EventsLost) error
	alive() error
	// ahead reports that the stream starts after the newest index.
	ahead(newest uint64) error
}

func streamEvents(a *API, c *call) (any, error) {
	from, skip, err := streamStart(c)
	if err != nil {
		return nil, err
	}
	f, topics, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	sub, err := a.cfg.Server.Events(c.r.Context(), from, topics)
	if err != nil {
		return nil, err
	}
	var out stream = lineStream{c}
	if strings.Contains(c.r.Header.Get("Accept"), "text/event-stream") {
		out = sseStream{c}
	}
	snap := a.cfg.Server.Snapshot()
	c.setStateHeaders(snap)
	out.begin(c.w.Header())
	begin := out.alive
	if from > snap.Index()+1 { // valid on a server that lags behind
		begin = func() error { return out.ahead(snap.Index()) }
	}
	if begin() == nil {
		r := &streamReader{filter: f, out: out, first: from, skip: skip}
		a.writeEvents(c.r.Context(), sub, r)
	}
	return responded, nil
}

// writeEvents writes events until the client disconnects, its token expires or is deleted, or
// the server stops. The token is verified before each message, so that an idle stream ends
// with its next keep-alive.
func (a *API) writeEvents(ctx context.Context, sub *events.Subscription, r *streamReader) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		batch, err := a.next(ctx, sub)
		switch {
		case ctx.Err() != nil || a.authorize(r.filter.c) != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			err = r.out.alive()
		case err == nil:
			err = r.batch(batch)
		}
		if err != nil {
			return
		}
	}
}

// next waits for events, at most until the next keep-alive is due.
func (a *API) next(ctx context.Context, sub *events.Subscription) (events.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Limits.Beat)
	defer cancel()
	return sub.Next(ctx)
}

// streamReader is the client of a stream and its progress.
type streamReader struct {
	filter *eventFilter
	out    stream
	at     position
	first  uint64 // the index that it requested
	skip   int    // number of events of that index that it has received before
}

// batch writes a batch: first the gap, if events were lost, then one message per
// index.
func (r *streamReader) batch(b events.Batch) error {
	if b.Lost != nil {
		if err := r.out.lost(&client.EventsLost{From: b.Lost.From, To: b.Lost.To}); err != nil {
			return err
		}
	}
	var pending client.Events
	flush := func() error {
		if len(pending.Events) == 0 {
			return nil
		}
		list := pending
		pending = client.Events{}
		return r.out.events(r.at, &list)
	}
	for i := range b.Events {
		e := &b.Events[i]
		if !r.filter.matches(e) {
			continue
		}
		if e.Index != r.at.index {
			if err := flush(); err != nil {
				return err
			}
			r.at = position{index: e.Index}
		}
		if r.at.sent++; e.Index == r.first && r.at.sent <= r.skip {
			continue
		}
		pending.Index = e.Index
		pending.Events = append(pending.Events, eventOf(redacted(r.filter.c, e)))
	}
	return flush()
}

// redacted returns an event without the identity of objects that the caller may not see.
func redacted(c *call, e *events.Event) *events.Event {
	payload, ok := e.Payload.(events.DecisionPayload)
	if !ok {
		return e
	}
	out := *e
	if shown := decision.Redact(&payload, e.Namespace, c.canSee); shown != nil {
		out.Payload = *shown
	}
	return &out
}

func eventOf(e *events.Event) client.Event {
	return client.Event{
		Index: e.Index, Time: e.Time, Topic: string(e.Topic), Type: e.Type, Namespace: e.Namespace, Key: e.Key, Payload: mustMarshal(e.Payload),
	}
}

// maxObjectBytes bounds the texts of an objectTexts.
const maxObjectBytes = 8 << 20

// objectTexts holds the JSON of objects that event streams send. Each stream of Nomad's form
// sends the current object with an event. Without the texts, every reader encodes every
// object again: 400 readers of 400 jobs of 30 KB took all processors for a minute and half a
// gigabyte of memory.
//
// Objects of the state are immutable, so that a pointer identifies a text together with what
// else it depends on. An objectTexts is safe for concurrent use.
type objectTexts struct {
	mu    sync.Mutex
	texts map[any]json.RawMessage
	bytes int // of all texts
}

// get returns the text of an object, which the caller must not modify. key is comparable and
// identifies the result of object. Readers that need the same text wait for the first one.
func (t *objectTexts) get(key any, object func() any) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text, ok := t.texts[key]; ok {
		return text
	}
	text := mustMarshal(object())
	if t.texts == nil || t.bytes+len(text) > maxObjectBytes {
		t.texts, t.bytes = map[any]json.RawMessage{}, 0
	}
	t.texts[key], t.bytes = text, t.bytes+len(text)
	return text
}

// jobKey identifies the text of a job: its status depends on other objects.
type jobKey struct {
	job         *model.Job
	status, why string
}

// purgedKey identifies the text of a purged job.
type purgedKey struct {
	last *model.Job
	key  model.JobKey
}

// of returns the current object of an event, or nil if there is none. deleted reports that
// the object is the last version of a purged job.
func (t *objectTexts) of(s *state.Snapshot, topic events.Topic, namespace, key string) (text json.RawMessage, deleted bool) {
	switch topic {
	case events.Job:
		job := model.JobKey{Namespace: namespace, ID: key}
		j := s.Job(job)
		if j == nil {
			return t.get(purgedKey{state.LastSpec(s, job), job}, func() any { return view.PurgedJob(s, job) }), true
		}
		status, why := view.JobStatus(s, j)
		return t.get(jobKey{j, status, why}, func() any { return view.Job(s, j) }), false
	case events.Evaluation:
		if e := s.Eval(key); e != nil {
			return t.get(e, func() any { return view.Eval(e) }), false
		}
	case events.Allocation:
		if a := s.Alloc(key); a != nil {
			return mustMarshal(view.AllocStub(s, a)), false
		}
	case events.Node:
		if n := s.Node(key); n != nil {
			return t.get(n, func() any { return view.Node(n) }), false
		}
	}
	return nil, false
}

func mustMarshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: cannot encode an event as JSON: " + err.Error())
	}
	return text
}

// lineStream writes one JSON object per line, as Nomad's clients expect.
type lineStream struct{ c *call }

func (lineStream) begin(h http.Header) { h.Set("Content-Type", "application/json") }

func (s lineStream) line(v any) error {
	if _, err := s.c.w.Write(append(mustMarshal(v), '\n')); err != nil {
		return err
	}
	return s.c.w.Flush()
}

// events writes an object without a copy of it: it may be large, and many streams send it.
func (s lineStream) events(_ position, list *client.Events) error {
	snap := s.c.api.cfg.Server.Snapshot()
	w := bufio.NewWriter(s.c.w) // keeps the first error for Flush
	fmt.Fprintf(w, `{"Index":%d,"Events":[`, list.Index)
	for i := range list.Events {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		writeNomadEvent(w, &s.c.api.objects, snap, list.Events[i])
	}
	_, _ = w.WriteString("]}\n")
	if err := w.Flush(); err != nil {
		return err
	}
	return s.c.w.Flush()
}

// writeNomadEvent writes an event with its payload in the form of Nomad: the current object
// under the name of its topic, next to the payload of the event itself.
func writeNomadEvent(w *bufio.Writer, objects *objectTexts, snap *state.Snapshot, e client.Event) {
	object, deleted := objects.of(snap, events.Topic(e.Topic), e.Namespace, e.Key)
	payload := e.Payload
	e.Payload = nil
	head := mustMarshal(e)
	_, _ = w.Write(head[:len(head)-1])
	fmt.Fprintf(w, `,"Payload":{"Event":%s`, payload)
	if object != nil {
		fmt.Fprintf(w, `,%q:`, e.Topic)
		_, _ = w.Write(object)
	}
	if deleted {
		_, _ = w.WriteString(`,"Deleted":true`)
	}
	_, _ = w.WriteString("}}")
}

func (s lineStream) lost(gap *client.EventsLost) error {
	return s.line(&client.Events{Index: gap.To, Lost: gap})
}

func (s lineStream) alive() error { return s.line(struct{}{}) }

func (s lineStream) ahead(newest uint64) error { return s.line(&client.Events{Newest: newest}) }

// sseStream writes server-sent events, which standard clients resume automatically.
type sseStream struct{ c *call }

func (sseStream) begin(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // prevents buffering by proxies
}

func (s sseStream) message(name, id string, v any) error {
	if _, err := fmt.Fprintf(s.c.w, "id: %s\nevent: %s\ndata: %s\n\n", id, name, mustMarshal(v)); err != nil {
		return err
	}
	return s.c.w.Flush()
}

func (s sseStream) events(at position, e *client.Events) error {
	return s.message("events", at.String(), e)
}

func (s sseStream) lost(gap *client.EventsLost) error {
	return s.message("lost", strconv.FormatUint(gap.To, 10), gap)
}

func (s sseStream) alive() error {
	if _, err := s.c.w.Write([]byte(": alive\n\n")); err != nil {
		return err
	}
	return s.c.w.Flush()
}

// ahead sends no ID, so that a client that reconnects resumes at its old position.
func (s sseStream) ahead(newest uint64) error {
	if _, err := fmt.Fprintf(s.c.w, "event: ahead\ndata: {\"Newest\":%d}\n\n", newest); err != nil {
		return err
	}
	return s.c.w.Flush()
}

var (
	_ stream = lineStream{}
	_ stream = sseStream{}
)

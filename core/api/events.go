package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagEvents = "events"

func eventRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/event/stream", name: "event_stream", tag: tagEvents, roles: []acl.Role{acl.Read}, scope: scopeNamespace, binary: true,
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

// eventFilter is which events of a stream are for its reader.
type eventFilter struct {
	c    *call
	keys map[events.Topic][]string // "" among them: any
}

// filterOf reads the parameters of a stream. Topics that we do not have match
// nothing, where they are Nomad's; others are an error.
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
			return nil, nil, rest.Invalid("unknown topic %s", rest.Quote(name)).WithHint("use *, or one of %v", events.Topics).With("Parameter", "topic")
		default:
			f.keys[topic] = append(f.keys[topic], key) // never published
		}
	}
	var topics []string
	for _, t := range slices.Sorted(maps.Keys(f.keys)) {
		topics = append(topics, string(t))
	}
	return f, topics, nil
}

// nomadTopics are Nomad's that nothing is published under here.
var nomadTopics = []string{"Deployment", "NodePool", "Service", "ACLToken", "ACLPolicy", "ACLRole"}

func (f *eventFilter) matches(e *events.Event) bool {
	if e.Namespace != "" {
		if ns := f.c.namespace(); ns != allNamespaces && ns != e.Namespace {
			return false
		}
	}
	// Who is bound to a namespace learns nothing of the others, nor of the cluster.
	if f.c.token != nil && f.c.token.Namespace != "" && e.Namespace != f.c.token.Namespace {
		return false
	}
	keys, asked := f.keys[e.Topic]
	return len(f.keys) == 0 || asked && (slices.Contains(keys, "") || slices.Contains(keys, e.Key))
}

// position is where a reader is: how many of the events of an index that are
// for it were sent. It is the id of a message, so that a stream which breaks off
// in the middle of an index goes on there.
type position struct {
	index uint64
	sent  int // 0: all of them, in what a reader asks for
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

// streamStart is where a stream begins: the index of the first events that are asked
// for, 0 for from now on, and how many of that index are skipped.
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

// stream is one form in which events are written.
type stream interface {
	begin(h http.Header)
	events(at position, e *client.Events) error
	lost(gap *client.EventsLost) error
	alive() error
	// ahead says that the stream waits for a later index than the newest.
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
	if from > snap.Index()+1 { // no mistake, perhaps: a server that lags behind may be asked
		begin = func() error { return out.ahead(snap.Index()) }
	}
	if begin() == nil {
		r := &streamReader{filter: f, out: out, first: from, skip: skip}
		a.writeEvents(c.r.Context(), sub, r)
	}
	return responded, nil
}

// writeEvents has events written until the reader goes away or the server stops.
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
		case ctx.Err() != nil:
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

// next waits for events, for no longer than a sign of life may be missing.
func (a *API) next(ctx context.Context, sub *events.Subscription) (events.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Limits.Beat)
	defer cancel()
	return sub.Next(ctx)
}

// streamReader is who a stream is for, and how far it has come.
type streamReader struct {
	filter *eventFilter
	out    stream
	at     position
	first  uint64 // the index that it asked for
	skip   int    // events of that which it has already
}

// batch writes a batch: what was missed, then the events of one index at a time.
func (r *streamReader) batch(b events.Batch) error {
	if b.Lost != nil {
		if err := r.out.lost(&client.EventsLost{From: b.Lost.From, To: b.Lost.To}); err != nil {
			return err
		}
	}
	var one client.Events
	flush := func() error {
		if len(one.Events) == 0 {
			return nil
		}
		list := one
		one = client.Events{}
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
		one.Index = e.Index
		one.Events = append(one.Events, eventOf(e))
	}
	return flush()
}

func eventOf(e *events.Event) client.Event {
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		panic("api: cannot encode an event as JSON: " + err.Error())
	}
	return client.Event{
		Index: e.Index, Time: e.Time, Topic: string(e.Topic), Type: e.Type, Namespace: e.Namespace, Key: e.Key, Payload: payload,
	}
}

// lineStream is one JSON object a line, as Nomad's clients read it.
type lineStream struct{ c *call }

func (lineStream) begin(h http.Header) { h.Set("Content-Type", "application/json") }

func (s lineStream) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: cannot encode an event as JSON: " + err.Error())
	}
	if _, err := s.c.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return s.c.w.Flush()
}

func (s lineStream) events(_ position, list *client.Events) error {
	snap := s.c.api.cfg.Server.Snapshot()
	for i := range list.Events {
		e := &list.Events[i]
		e.Payload = nomadPayload(snap, e)
	}
	return s.line(list)
}

// nomadPayload is an event's payload as Nomad's clients read it: what the event
// is about, as it is now, under the name of its topic, and beside it what the
// event itself says.
func nomadPayload(s *state.Snapshot, e *client.Event) json.RawMessage {
	payload := map[string]any{"Event": e.Payload}
	switch events.Topic(e.Topic) {
	case events.Job:
		if j := s.Job(model.JobKey{Namespace: e.Namespace, ID: e.Key}); j != nil {
			payload[e.Topic] = view.Job(s, j)
		}
	case events.Evaluation:
		if ev := s.Eval(e.Key); ev != nil {
			payload[e.Topic] = view.Eval(ev)
		}
	case events.Allocation:
		if a := s.Alloc(e.Key); a != nil {
			payload[e.Topic] = view.AllocStub(s, a)
		}
	case events.Node:
		if n := s.Node(e.Key); n != nil {
			payload[e.Topic] = view.Node(n)
		}
	}
	text, err := json.Marshal(payload)
	if err != nil {
		panic("api: cannot encode an event as JSON: " + err.Error())
	}
	return text
}

func (s lineStream) lost(gap *client.EventsLost) error {
	return s.line(&client.Events{Index: gap.To, Lost: gap})
}

func (s lineStream) alive() error { return s.line(struct{}{}) }

func (s lineStream) ahead(newest uint64) error { return s.line(&client.Events{Newest: newest}) }

// sseStream is server-sent events. Programs that speak the protocol resume by
// themselves.
type sseStream struct{ c *call }

func (sseStream) begin(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // or a proxy may hold it back
}

func (s sseStream) message(name, id string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: cannot encode an event as JSON: " + err.Error())
	}
	if _, err := fmt.Fprintf(s.c.w, "id: %s\nevent: %s\ndata: %s\n\n", id, name, text); err != nil {
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

// ahead has no id: whoever resumes does so where it was.
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

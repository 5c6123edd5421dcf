package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/sdk/client"
)

// bufferedServer is a server with the events of the test.
type bufferedServer struct {
	Server
	buffer *events.Buffer
}

func (b bufferedServer) Events(_ context.Context, from uint64, topics []string) (*events.Subscription, error) {
	var f events.Filter
	for _, t := range topics {
		f = append(f, events.Topic(t))
	}
	return b.buffer.Subscribe(from, f), nil
}

// startStreaming starts a fixture with its own event buffer.
func startStreaming(t *testing.T, capacity int) (*fixture, *events.Buffer) {
	buffer := events.NewBuffer(capacity)
	w := start(t, func(c *Config) { c.Server, c.Limits.Beat = bufferedServer{c.Server, buffer}, 10*time.Millisecond })
	return w, buffer
}

func event(index uint64, namespace, key string) events.Event {
	return events.Event{Index: index, Time: int64(index), Topic: events.Job, Type: "JobRegistered", Namespace: namespace, Key: key, Payload: events.JobPayload{JobID: key}}
}

// readStream returns the keys and gaps of a stream, up to a number of them.
func (w *fixture) readStream(o *client.StreamOptions, want int) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	var seen []string
	err := w.client.Events().Stream(ctx, o, func(e *client.Events) error {
		if e.Lost != nil {
			seen = append(seen, fmt.Sprintf("lost %d-%d", e.Lost.From, e.Lost.To))
		}
		for _, one := range e.Events {
			seen = append(seen, one.Key)
		}
		if len(seen) >= want {
			return io.EOF
		}
		return nil
	})
	if !errors.Is(err, io.EOF) {
		w.t.Errorf("after %d of %d: %v", len(seen), want, err)
	}
	return seen
}

// A client that reconnects receives the events that it missed, and a notice if some
// are no longer stored.
func TestStream_ResumesAndReportsLostEvents(t *testing.T) {
	w, buffer := startStreaming(t, 4)
	for i := range uint64(10) {
		buffer.Publish(event(i+1, "default", fmt.Sprint("j", i+1)))
	}
	if seen := w.readStream(&client.StreamOptions{Index: 8}, 2); !slices.Equal(seen, []string{"j9", "j10"}) {
		t.Errorf("after 8: %v", seen)
	}
	if seen := w.readStream(&client.StreamOptions{Index: 1}, 5); !slices.Equal(seen, []string{"lost 2-6", "j7", "j8", "j9", "j10"}) {
		t.Errorf("after 1: %v", seen)
	}
}

// A client that disconnected within an index resumes there, without duplicates or
// gaps.
func TestStream_ResumesWithinAnIndex(t *testing.T) {
	w, buffer := startStreaming(t, 4096)
	var batch []events.Event
	for i := range 1000 { // more than one read returns
		batch = append(batch, event(7, []string{"default", "other"}[i%2], fmt.Sprint(i)))
	}
	buffer.Publish(batch...)
	buffer.Publish(event(8, "default", "last"))

	var ids, keys []string
	last := "6"
	for len(keys) < 501 {
		id, list := w.readMessage(last)
		ids, keys, last = append(ids, id), append(keys, list...), id
	}
	for i, key := range keys[:500] {
		if key != fmt.Sprint(i*2) {
			t.Fatalf("event %d is %s", i, key)
		}
	}
	if len(ids) < 4 || keys[500] != "last" || !strings.HasPrefix(ids[0], "7.") {
		t.Errorf("ids %v", ids)
	}
}

// readMessage reads one message of a stream and disconnects.
func (w *fixture) readMessage(last string) (id string, keys []string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/event/stream?topic=Job&namespace=default", nil)
	w.check(err)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", last)
	resp, err := w.http.Do(req)
	w.check(err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = text
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e client.Events
			w.check(json.Unmarshal([]byte(text), &e))
			if e.Newest > 0 { // the state is behind the events of the test
				continue
			}
			for _, one := range e.Events {
				keys = append(keys, one.Key)
			}
			return id, keys
		}
	}
	w.t.Fatalf("missing message after %s: %v", last, lines.Err())
	return "", nil
}

// A client receives only the namespace, topics and keys that it requested.
func TestStream_Filters(t *testing.T) {
	w, buffer := startStreaming(t, 64)
	buffer.Publish(
		event(1, "default", "a"), event(1, "team", "b"), event(1, "default", "c"),
		events.Event{Index: 2, Topic: events.Node, Type: "NodeRegistered", Key: "n1", Payload: events.NodePayload{}},
		events.Event{Index: 3, Topic: events.Operator, Key: "end", Payload: events.OperatorPayload{}},
	)
	for _, c := range []struct {
		options client.StreamOptions
		want    []string
	}{
		{client.StreamOptions{}, []string{"a", "c", "n1", "end"}},
		{client.StreamOptions{Namespace: "*"}, []string{"a", "b", "c", "n1", "end"}},
		{client.StreamOptions{Namespace: "team"}, []string{"b", "n1", "end"}},
		{client.StreamOptions{Topics: []string{"Job:c", "Operator"}}, []string{"c", "end"}},
		{client.StreamOptions{Topics: []string{"Node:*", "Deployment", "Operator:end"}}, []string{"n1", "end"}},
		{client.StreamOptions{Topics: []string{"*:a", "*:end"}}, []string{"a", "end"}},
	} {
		// From the start: the parameter is 1, because the option is the last index that was seen.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var seen []string
		params := "?index=1&namespace=" + c.options.Namespace
		for _, topic := range c.options.Topics {
			params += "&topic=" + topic
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/event/stream"+params, nil)
		w.check(err)
		resp, err := w.http.Do(req)
		w.check(err)
		dec := json.NewDecoder(resp.Body)
		for !slices.Contains(seen, "end") {
			var e client.Events
			w.check(dec.Decode(&e))
			for _, one := range e.Events {
				seen = append(seen, one.Key)
			}
		}
		_ = resp.Body.Close()
		cancel()
		if !slices.Equal(seen, c.want) {
			t.Errorf("%+v: %v, want %v", c.options, seen, c.want)
		}
	}
	for _, bad := range []string{"?topic=Weather", "?index=x"} {
		if resp, _ := w.send("GET", "/v1/event/stream"+bad, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, resp.StatusCode)
		}
	}
	for _, bad := range []string{"x", "1.x", "1.-1", "-1"} {
		if resp, _ := w.send("GET", "/v1/event/stream", "", "Last-Event-ID", bad); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("Last-Event-ID %s: %d", bad, resp.StatusCode)
		}
	}
}

// An idle stream sends keep-alives, and ends when the server stops.
func TestStream_LastsUntilServerStops(t *testing.T) {
	w, _ := startStreaming(t, 4)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/event/stream", nil)
	w.check(err)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.http.Do(req)
	w.check(err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	for range 4 {
		line, err := lines.ReadString('\n')
		w.check(err)
		if strings.TrimSpace(line) != "" && line != ": alive\n" {
			t.Errorf("line %q", line)
		}
	}
	w.api.EndStreams()
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
}

// A stream ends with the token of its client, whether or not events arrive.
func TestStream_EndsWithItsToken(t *testing.T) {
	w := start(t, func(c *Config) { c.Security, c.Limits.Beat = true, 10*time.Millisecond })
	root, err := w.client.Operator().Bootstrap(t.Context())
	w.check(err)
	admin := w.connect(root.SecretID)
	reader, err := admin.Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "reader", Roles: []string{"read"}})
	w.check(err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/event/stream", nil)
	w.check(err)
	req.Header.Set("Authorization", "Bearer "+reader.SecretID)
	resp, err := w.http.Do(req)
	w.check(err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "{}\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
	w.check(admin.Operator().TokenDelete(t.Context(), reader.AccessorID))
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream did not end: %v", err)
	}
}

// A client that requests an index ahead of the state is notified, in every form, and
// still receives events.
func TestStream_ReportsStartAheadOfState(t *testing.T) {
	w, buffer := startStreaming(t, 16)
	newest := w.server.Snapshot().Index()
	var said []uint64
	err := w.client.Events().Stream(t.Context(), &client.StreamOptions{Index: newest + 50}, func(e *client.Events) error {
		if len(e.Events) > 0 {
			return io.EOF
		}
		said = append(said, e.Newest)
		buffer.Publish(event(newest+10, "default", "early"), event(newest+51, "default", "late"))
		return nil
	})
	if !errors.Is(err, io.EOF) || !slices.Equal(said, []uint64{newest}) {
		t.Errorf("reported %v, %v; the newest index is %d", said, err, newest)
	}
	for index, want := range map[uint64]string{newest + 1: "{}", newest + 2: fmt.Sprintf(`{"Newest":%d}`, newest)} {
		resp, err := http.Get(fmt.Sprintf("%s/v1/event/stream?index=%d", w.url, index))
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if _ = resp.Body.Close(); err != nil || strings.TrimSpace(line) != want {
			t.Errorf("from %d: first line %q, %v; want %s", index, line, err, want)
		}
	}
}

// Readers share the texts of objects, so that many streams of large jobs cost the server
// less memory than they send, and the texts are bounded.
func TestStream_ReadersShareObjects(t *testing.T) {
	const readers, count = 20, 30
	w, buffer := startStreaming(t, 1024)
	large := job("large", 50, 1, 1, 1)
	large.Meta = map[string]string{"a": strings.Repeat("x", 15_000), "b": strings.Repeat("y", 15_000)}
	_, err := w.client.Jobs().Register(t.Context(), large, nil)
	w.check(err)
	newest := w.server.Snapshot().Index()
	for i := range uint64(count) {
		buffer.Publish(event(newest+i+1, "default", "large"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var sent atomic.Int64
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			conn := w.dial()
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "GET /v1/event/stream?index=%d HTTP/1.1\r\nHost: x\r\n\r\n", newest+1)
			b := make([]byte, 64<<10)
			for got := 0; got < count*30_000; {
				n, err := conn.Read(b)
				if err != nil {
					t.Error(err)
					return
				}
				got += n
				sent.Add(int64(n))
			}
		})
	}
	group.Wait()
	runtime.ReadMemStats(&after)
	if used := int64(after.TotalAlloc - before.TotalAlloc); used > sent.Load()/2 {
		t.Errorf("%d bytes were allocated to send %d", used, sent.Load())
	}
	var texts objectTexts
	for i := range 400 {
		texts.get(i, func() any { return strings.Repeat("x", 100_000) })
	}
	held := 0
	for _, text := range texts.texts {
		held += len(text)
	}
	if held != texts.bytes || held > maxObjectBytes || held < maxObjectBytes/100 {
		t.Errorf("%d bytes of texts, counted %d", held, texts.bytes)
	}
}

// A reader that accepts nothing is disconnected when the deadline of a write has passed: it
// holds one message, and no queue.
func TestStream_DisconnectsReaderThatAcceptsNothing(t *testing.T) {
	buffer := events.NewBuffer(4096)
	w := start(t, func(c *Config) {
		c.Server, c.Limits.Beat, c.Limits.Write = bufferedServer{c.Server, buffer}, 10*time.Millisecond, 200*time.Millisecond
	})
	large := job("large", 50, 1, 1, 1)
	large.Meta = map[string]string{"a": strings.Repeat("x", 15_000)}
	_, err := w.client.Jobs().Register(t.Context(), large, nil)
	w.check(err)
	newest := w.server.Snapshot().Index()
	for i := range uint64(4096) { // 60 MB: more than the buffers of a connection
		buffer.Publish(event(newest+i+1, "default", "large"))
	}
	conn := w.dial()
	_, err = fmt.Fprintf(conn, "GET /v1/event/stream?index=%d HTTP/1.1\r\nHost: x\r\n\r\n", newest+1)
	w.check(err)
	_, err = conn.Read(make([]byte, 1)) // the stream has begun
	w.check(err)
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var b strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		switch text := b.String(); {
		case !strings.Contains(text, "streamEvents"):
			if rest, err := io.ReadAll(conn); len(rest) > 40<<20 {
				t.Errorf("read %d bytes, %v", len(rest), err)
			}
			return
		case time.Now().After(deadline):
			t.Fatal("the stream of a reader that reads nothing did not end")
		}
	}
}

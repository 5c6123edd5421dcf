package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/sdk/client"
)

// hostileBodies returns malformed and oversized bodies.
func hostileBodies() map[string]string {
	return map[string]string{
		"nothing":          "",
		"no JSON":          "{",
		"another language": "<job/>",
		"an array":         "[]",
		"null":             "null",
		"a number":         "7",
		"trailing data":    `{"Job":{"ID":"x"}} {}`,
		"two objects":      "{}{}",
		"deep":             `{"Job":` + strings.Repeat(`{"Meta":`, 200) + strings.Repeat("}", 201),
		"deep arrays":      strings.Repeat("[", 100_000),
		"deep in a string": `{"Job":{"ID":"` + strings.Repeat("[", 1000) + `"`,
		"wrong type":       `{"Job":{"ID":7}}`,
		"wrong list":       `{"Job":{"ID":"x","TaskGroups":{"Name":"y"}}}`,
		"huge number":      `{"Job":{"ID":"x","Priority":1e400}}`,
		"too large number": `{"Job":{"ID":"x","Priority":99999999999999999999}}`,
		"null job":         `{"Job":null}`,
		"null group":       `{"Job":{"ID":"x","TaskGroups":[null]}}`,
		"null task":        `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[null]}]}}`,
		"null everywhere":  `{"Job":{"ID":"x","Constraints":[null],"Spreads":[null],"Affinities":[null],"TaskGroups":[{"Name":"g","Networks":[null],"Devices":[null],"Colocate":[null]}]},"Node":null,"Updates":null}`,
		"null bytes":       "\x00\x00\x00",
		"no UTF-8":         "{\"Job\":{\"ID\":\"\xff\xfe\"}}",
		"a long name":      `{"` + strings.Repeat("x", 100_000) + `":1}`,
		"many fields":      `{` + strings.Repeat(`"x":1,`, 10_000) + `"y":1}`,
	}
}

// A hostile body on any route returns an error of the API with a message, and never
// an internal error.
func TestBodies_HostileRejectedWithMessage(t *testing.T) {
	w, _ := startComparisons(t)
	for _, r := range table() {
		if r.request == nil {
			continue
		}
		for name, body := range hostileBodies() {
			resp, text := w.send(r.methods[0], r.path(), body, "Content-Type", "application/json")
			var e client.Error
			if resp.StatusCode < 300 && isVague(body) {
				continue // an empty body is valid if nothing is required
			}
			if resp.StatusCode == http.StatusOK && (r.name == "job_validate" || r.name == "jobs_parse") {
				continue // they return the problems in the response
			}
			if resp.StatusCode < 400 || resp.StatusCode >= 500 || json.Unmarshal([]byte(text), &e) != nil || e.Message == "" || len(text) > 20_000 {
				t.Errorf("%s: %s: %d %s", r.name, name, resp.StatusCode, truncate(text))
			}
		}
	}
	if strings.Contains(w.log.String(), "panicked") {
		t.Error("a handler panicked")
	}
}

// isVague reports whether a body is empty, or an object without effect.
func isVague(body string) bool {
	var v map[string]any
	return body == "" || json.Unmarshal([]byte(body), &v) == nil && v != nil && !rest.IsMeaningful(v)
}

// The message contains the field, the location in the body, and the expected value.
func TestBodies_ErrorsReportTheField(t *testing.T) {
	w := start(t)
	for body, want := range map[string]string{
		`{"Job":{"ID":"x","Priority":"high"}}`:                                  "Job.Priority is a string at line 1, column 35: it must be an integer",
		"{\"Job\":{\n \"ID\": 7}}":                                              "Job.ID is a number at line 2",
		`{"Job":{"ID":"x","TaskGroups":[{"Tasks":[{"KillTimeout":"5s"}]}]}}`:    "it must be a whole number of nanoseconds",
		`{"Job":{"ID":"x",}}`:                                                   "not valid JSON at line 1, column 19",
		`{"Job":{"ID":"x"}}x`:                                                   "after top-level value",
		`{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Count":1.5,"Tasks":[]}]}}`: "Count is the number 1.5",
	} {
		resp, text := w.send("POST", "/v1/jobs", body)
		var e client.Error
		w.check(json.Unmarshal([]byte(text), &e))
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(e.Message, want) {
			t.Errorf("%s:\n%s\nwant %s", body, e.Message, want)
		}
	}
	// All problems of a job are reported at once.
	_, text := w.send("POST", "/v1/jobs", `{"Job":{"ID":"","Type":"nothing","Priority":-7,"TaskGroups":[]}}`)
	var e client.Error
	w.check(json.Unmarshal([]byte(text), &e))
	if list, _ := e.Details["Problems"].([]any); len(list) < 3 {
		t.Errorf("problems %v", e.Details)
	}
	// Unknown fields are rejected in requests that are not Nomad's.
	resp, text := w.send("PUT", "/v1/priority-class/x", `{"Name":"x","Valeu":7,"Nested":{"A":1}}`)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Nested, Valeu") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

func TestBodies_TooLargeRejectedBeforeReading(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.Body, c.Limits.Job = 1000, 2000 })
	big := `{"Job":{"ID":"` + strings.Repeat("x", 3000) + `"}}`
	for path, limit := range map[string]string{"/v1/jobs": "2000", "/v1/node/register": "1000", "/v1/rebalance": "2000"} {
		resp, text := w.send("PUT", path, big)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, limit) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	// A body that announces an endless length is not read.
	endless, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(endless, http.MethodPut, w.url+"/v1/jobs", endlessReader{})
	w.check(err)
	if resp, err := w.http.Do(req); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("an endless body: %d", resp.StatusCode)
		}
	} else if endless.Err() != nil {
		t.Errorf("an endless body was read: %v", err)
	}
	if resp, _ := w.send("POST", "/v1/jobs", "{}", "Content-Type", "image/png"); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("an image: %d", resp.StatusCode)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// dial opens a separate connection.
func (w *fixture) dial() net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	w.check(err)
	w.t.Cleanup(func() { _ = conn.Close() })
	w.check(conn.SetDeadline(time.Now().Add(20 * time.Second)))
	return conn
}

// Deliberately slow clients are disconnected. Blocking queries and streams last
// longer than any of those deadlines.
func TestSlowClients_DisconnectedButBlockingQueriesKept(t *testing.T) {
	w := start(t, func(c *Config) {
		c.Limits.Header, c.Limits.Read, c.Limits.Write, c.Limits.Beat = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
	})
	header := w.dial()
	_, err := fmt.Fprint(header, "GET /v1/jobs HTTP/1.1\r\nHost: x\r\n")
	w.check(err)
	if _, err := io.ReadAll(header); err != nil {
		t.Errorf("half a header: %v", err) // the server closes the connection
	}
	body := w.dial()
	_, err = fmt.Fprint(body, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	w.check(err)
	resp, err := http.ReadResponse(bufio.NewReader(body), nil)
	w.check(err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("half a body: %d", resp.StatusCode)
	}

	_, meta, err := w.client.Jobs().List(t.Context(), nil)
	w.check(err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	streamed := make(chan error, 1)
	go func() {
		streamed <- w.client.Events().Stream(ctx, &client.StreamOptions{Topics: []string{"Job"}, Index: meta.LastIndex}, func(e *client.Events) error {
			if len(e.Events) > 0 {
				return io.EOF
			}
			return nil
		})
	}()
	// The query waits for three times the deadlines, and then succeeds.
	_, _, err = w.client.Jobs().List(t.Context(), &client.QueryOptions{Index: meta.LastIndex + 1000, Wait: 300 * time.Millisecond})
	w.check(err)
	_, err = w.client.Jobs().Register(t.Context(), job("web", 50, 1, 10, 10), nil)
	w.check(err)
	if err := <-streamed; !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended: %v", err)
	}
}

// A client over its rate is rejected with a delay; health is never rejected.
func TestRateLimit_AppliesPerClient(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.Rate, c.Limits.Burst = 0.001, 3 })
	var last *response
	for i := range 4 {
		resp, _ := w.send("GET", "/v1/jobs", "")
		if last = resp; (i < 3) != (resp.StatusCode == http.StatusOK) {
			t.Errorf("request %d: %d", i, resp.StatusCode)
		}
	}
	if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", last.StatusCode, last.Header.Get("Retry-After"))
	}
	if resp, _ := w.send("GET", "/livez", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("health: %d", resp.StatusCode)
	}
	w.api.SetRate(1000, 1000)
	if resp, _ := w.send("GET", "/v1/jobs", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("after the limit was raised: %d", resp.StatusCode)
	}
}

// Connections over the limit wait until others close.
func TestConnections_Limited(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.Conns = 4 })
	w.http.CloseIdleConnections()
	var held []net.Conn
	for range 4 {
		conn := w.dial()
		sendRequest(t, conn)
		held = append(held, conn)
	}
	next := w.dial()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		sendRequest(t, next)
	}()
	select {
	case <-answered:
		t.Error("a fifth connection was served")
	default:
	}
	_ = held[0].Close()
	<-answered
}

func sendRequest(t *testing.T, conn net.Conn) {
	_, err := fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// panickingServer is a server with a method that panics.
type panickingServer struct{ Server }

func (panickingServer) CollectGarbage(context.Context, bool) (gc.Collected, error) {
	panic("on purpose")
}

// A panic fails one request: it is logged with its stack and counted, and the
// connection serves the next request.
func TestPanics_FailOnlyTheirRequest(t *testing.T) {
	w := start(t, func(c *Config) { c.Server = panickingServer{c.Server} })
	conn := w.dial()
	reader := bufio.NewReader(conn)
	for _, path := range []string{"/v1/system/gc", "/v1/agent/reload", "/v1/system/gc"} {
		_, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nContent-Length: 0\r\n\r\n", path)
		w.check(err)
		resp, err := http.ReadResponse(reader, nil)
		w.check(err)
		text, err := io.ReadAll(resp.Body)
		w.check(err)
		_ = resp.Body.Close()
		if want := path == "/v1/system/gc"; (resp.StatusCode == http.StatusInternalServerError) != want || resp.Header.Get(headerRequestID) != "mine" || strings.Contains(string(text), "on purpose") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	if log := w.log.String(); !strings.Contains(log, "request panicked") || !strings.Contains(log, "on purpose") || !strings.Contains(log, "hostile_test.go") || !strings.Contains(log, "request_id=mine") {
		t.Errorf("the log contains:\n%s", log)
	}
	if n := w.requestCounts()["cede_http_panics_total"]; n != 2 {
		t.Errorf("%v panics were counted", n)
	}
}

// requestCounts returns the counters by name, and the number of durations by route
// and status code.
func (w *fixture) requestCounts() map[string]uint64 {
	families, err := w.registry.Gather()
	w.check(err)
	seen := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "cede_http_request_duration_seconds" {
				seen[f.GetName()] = uint64(m.GetCounter().GetValue())
				continue
			}
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			seen[labels["route"]+" "+labels["code"]] = m.GetHistogram().GetSampleCount()
		}
	}
	return seen
}

// Every request is recorded by route and status code, and logged.
func TestRequests_MeasuredAndLogged(t *testing.T) {
	w := start(t)
	w.send("GET", "/v1/jobs", "")
	w.send("GET", "/v1/job/nothing", "", headerRequestID, "a bad\tid")
	w.send("PATCH", "/v1/jobs", "")
	resp, text := w.send("GET", "/v1/nothing", "")
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "openapi.json") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := w.send("PATCH", "/v1/job/x/plan", ""); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST, PUT" {
		t.Errorf("%d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, _ := w.send("GET", "/v1//jobs", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unclean path: %d", resp.StatusCode)
	}
	seen := w.requestCounts()
	if seen["jobs_list 200"] != 1 || seen["job_get 404"] != 1 || seen["unknown 405"] != 2 {
		t.Errorf("recorded %v", seen)
	}
	if log := w.log.String(); !strings.Contains(log, "route=jobs_list") || strings.Contains(log, "a bad") {
		t.Errorf("the log contains:\n%s", log)
	}
}

// Many clients of all kinds run concurrently, for the race detector.
func TestAPI_ServesConcurrentRequests(t *testing.T) {
	w := start(t)
	w.addNode("n1", 1000, 1000)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for k := range 10 {
				_, err := w.client.Jobs().Register(ctx, job(fmt.Sprintf("j%d-%d", i, k), 50, 1, 10, 10), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := w.client.Allocations().List(ctx, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[string]bool{}
	err := w.client.Events().Stream(ctx, &client.StreamOptions{Topics: []string{"Job"}, Index: 1}, func(e *client.Events) error {
		for _, one := range e.Events {
			if one.Type == "JobRegistered" {
				seen[one.Key] = true
			}
		}
		if len(seen) == 80 {
			return io.EOF
		}
		return nil
	})
	group.Wait()
	if !errors.Is(err, io.EOF) {
		t.Errorf("got %d jobs: %v", len(seen), err)
	}
}

// A recorder without deadlines is sufficient, as other packages' tests use it.
func TestAPI_WorksWithoutAConnection(t *testing.T) {
	w := start(t)
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, httptest.NewRequest(http.MethodPut, "/v1/priority-class/x", strings.NewReader(`{"Value":7}`)))
	if rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

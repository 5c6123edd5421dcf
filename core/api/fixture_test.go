package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/coretest/cluster"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/sdk/client"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is one server with its API on a loopback address. Every response to its
// clients is validated against the OpenAPI document.
type fixture struct {
	t        *testing.T
	server   *server.Server
	node     *raftnode.Node
	api      *API
	registry *prometheus.Registry
	log      *logBuffer
	url      string
	http     *http.Client
	client   *client.Client
}

// fakeHost accepts any module unless its code contains "broken".
type fakeHost struct{}

func (fakeHost) Load(_ context.Context, b *bundle.Bundle, _ policy.Limits) (registry.Module, error) {
	if bytes.Contains(b.Code, []byte("broken")) {
		return nil, errors.New("compilation failed")
	}
	return closableModule{policy.Native(b.Manifest.Digest, func() sdk.Policy { return renamedPolicy{rules.New()} })}, nil
}

type renamedPolicy struct{ *rules.Default }

func (renamedPolicy) Info() sdk.Info {
	info := rules.New().Info()
	info.Name = "mine"
	return info
}

type closableModule struct{ policy.Module }

func (closableModule) Close() {}

// moduleBytes returns the bytes of a policy module.
func moduleBytes(words string) []byte { return []byte("\x00asm\x01\x00\x00\x00" + words) }

// logBuffer collects log output for tests.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *logBuffer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *logBuffer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts a server and its API, and stops both when the test ends.
func start(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	w := &fixture{t: t, registry: prometheus.NewRegistry(), log: &logBuffer{}}
	w.startServer()
	cfg := Config{
		Server: w.server, Replication: w.node, ID: "s1", Region: "global", Datacenter: "dc1", Version: "0.0.0",
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Registry: w.registry,
	}
	for _, f := range change {
		f(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(a)
	w.client = w.connect("")
	return w
}

// startServer starts a single server and waits until it is ready as the leader.
func (w *fixture) startServer() {
	c := cluster.Start(w.t, cluster.Options[*server.Server]{
		Open: func(_ *cluster.Member[*server.Server], o *raftnode.Config) { o.Timing = cluster.Fast },
		New: func(m *cluster.Member[*server.Server]) (*server.Server, error) {
			host, err := registry.NewPolicyHost(registry.PolicyOptions{
				Options: registry.Options{
					Hosts:   map[bundle.Kind]registry.Host{bundle.Wasm: fakeHost{}},
					Builtin: builtin,
					Names:   []string{policy.DefaultName, "kubernetes"},
				},
			})
			if err != nil {
				return nil, err
			}
			w.node = m.Node
			w.server, err = server.New(server.Config{
				ID: m.ID, Log: m.Node, Applied: m.Applied, Store: m.Store, PolicySupport: server.PolicySupport{Modules: m.Modules}, Policies: host, Workers: 2,
				HeartbeatTTL: time.Hour, HeartbeatGrace: time.Hour, UpdateWindow: time.Millisecond,
			})
			return w.server, err
		},
	})
	w.t.Cleanup(c.Stop)
	w.waitFor("the server is ready", func() bool {
		for _, c := range w.server.Ready(w.t.Context()) {
			if !c.OK {
				return false
			}
		}
		return true
	})
}

// builtin returns the built-in policies of the test server.
func builtin(name string) (policy.Module, []string, bool) {
	switch name {
	case policy.DefaultName:
		return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, true
	case "kubernetes":
		return policy.Native("sha256:kubernetes", func() sdk.Policy { return kubernetes.New() }), nil, true
	}
	return nil, nil, false
}

// serve starts a listener for the API, and stops it when the test ends.
func (w *fixture) serve(a *API) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.check(err)
	w.api, w.url = a, "http://"+l.Addr().String()
	srv := a.HTTPServer()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(a.Listener(l)) }()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	w.http = &http.Client{Transport: &documentChecker{t: w.t, next: transport}}
	w.t.Cleanup(func() {
		a.EndStreams()
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			w.t.Errorf("the server does not shut down: %v", err)
			_ = srv.Close()
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			w.t.Error(err)
		}
	})
}

// connect returns a client with a token.
func (w *fixture) connect(token string) *client.Client {
	c, err := client.New(client.Config{Address: w.url, Token: token, HTTPClient: w.http, Retries: -1})
	w.check(err)
	return c
}

func (w *fixture) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// waitFor waits until ok returns true, and fails the test after 20 s.
func (w *fixture) waitFor(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			w.t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// response is the status and header of a response.
type response struct {
	StatusCode int
	Header     http.Header
}

// send sends one request unchanged, and returns the response and its body.
func (w *fixture) send(method, path, body string, header ...string) (*response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	w.check(err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(req)
	w.check(err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	w.check(err)
	return &response{resp.StatusCode, resp.Header}, string(text)
}

// documentChecker validates every response against the OpenAPI document.
type documentChecker struct {
	t    *testing.T
	next http.RoundTripper
}

// loadDocument returns the document, and a mux that finds the operation of a request.
var loadDocument = sync.OnceValues(func() (*openapi3.T, *http.ServeMux) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			mux.HandleFunc(method+" "+path, func(http.ResponseWriter, *http.Request) {})
		}
	}
	return doc, mux
})

func (c *documentChecker) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	doc, mux := loadDocument()
	_, pattern := mux.Handler(r)
	method, path, _ := strings.Cut(pattern, " ")
	op := &openapi3.Operation{}
	if item := doc.Paths.Find(path); item != nil && method == r.Method {
		op = item.GetOperation(method)
	} else if resp.StatusCode < 400 {
		c.t.Errorf("%s %s returned %d, but is not in the document", r.Method, r.URL.Path, resp.StatusCode)
		return resp, nil
	}
	kind := resp.Header.Get("Content-Type")
	if op.OperationID == "" || op.OperationID == "event_stream" && resp.StatusCode == http.StatusOK || strings.Contains(kind, "octet-stream") || kind == "application/wasm" {
		if resp.StatusCode >= 400 && kind != "application/json" {
			c.t.Errorf("%s %s: an error with content type %q", r.Method, r.URL.Path, kind)
		}
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: &routers.Route{Spec: doc, Path: path, Method: method, Operation: op}},
		Status:                 resp.StatusCode, Header: resp.Header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(r.Context(), input); err != nil {
		c.t.Errorf("%s %s: status %d: %v\n%s", r.Method, r.URL.Path, resp.StatusCode, err, truncate(string(body)))
	}
	if resp.Header.Get(headerRequestID) == "" {
		c.t.Errorf("%s %s: a response without a request ID", r.Method, r.URL.Path)
	}
	return resp, nil
}

// If the checker missed mismatches, every other test would prove less.
func TestDocumentChecker_DetectsMismatch(t *testing.T) {
	inner := &testing.T{}
	for path, body := range map[string]string{
		"/v1/jobs":             `[{"ID": 7}]`,
		"/v1/node/n1":          `[]`,
		"/v1/allocation/a":     `{"ID":"a"}`,
		"/v1/status/peers":     `null`,
		"/v1/priority-class/x": `{"Name":"x","Value":"high"}`,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(headerRequestID, "x")
			_, _ = fmt.Fprint(w, body)
		}))
		hc := &http.Client{Transport: &documentChecker{t: inner, next: http.DefaultTransport}}
		resp, err := hc.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		srv.Close()
		if !inner.Failed() {
			t.Errorf("%s: %s was accepted", path, body)
		}
		inner = &testing.T{}
	}
}

// nodeSpec returns a node in the form that an agent registers.
func nodeSpec(id string, cpu, memory int64) *client.Node {
	return &client.Node{
		ID: id, Name: id, Datacenter: "dc1", NodeClass: "small",
		Capacity:   map[string]int64{"cpu": cpu, "memory": memory, "disk": 10_000},
		Attributes: map[string]string{"kernel.name": "linux"},
	}
}

// testNodeSecret is the secret of all nodes in the tests.
const testNodeSecret = "a secret of sixteen bytes or more"

// addNode registers a node.
func (w *fixture) addNode(id string, cpu, memory int64) {
	w.t.Helper()
	_, err := w.client.NodeAgent().Register(w.t.Context(), nodeSpec(id, cpu, memory), testNodeSecret)
	w.check(err)
}

// job returns a job with one group and one task.
func job(id string, priority, count, cpu, memory int) *client.Job {
	return &client.Job{
		ID: id, Priority: &priority, Datacenters: []string{"dc1"},
		TaskGroups: []*client.TaskGroup{{
			Name: "app", Count: &count,
			Tasks: []*client.Task{{
				Name: "main", Driver: "sim", Config: map[string]any{"run_for": "1h"},
				Resources: &client.Resources{CPU: &cpu, MemoryMB: &memory},
			}},
		}},
	}
}

// register registers a job and waits until its evaluation is complete.
func (w *fixture) register(j *client.Job) *client.JobRegisterResponse {
	w.t.Helper()
	r, err := w.client.Jobs().Register(w.t.Context(), j, nil)
	w.check(err)
	w.awaitEval(r.EvalID)
	return r
}

func (w *fixture) awaitEval(id string) *client.Evaluation {
	w.t.Helper()
	var e *client.Evaluation
	w.waitFor("evaluation "+id+" is complete", func() bool {
		var err error
		e, _, err = w.client.Evaluations().Get(w.t.Context(), id, nil)
		w.check(err)
		return e.Status != "pending"
	})
	return e
}

// reportRunning reports every live allocation of the node n1 as running.
func (w *fixture) reportRunning() {
	w.t.Helper()
	const node = "n1"
	list, _, err := w.client.NodeAgent().Allocations(w.t.Context(), node, testNodeSecret, nil)
	w.check(err)
	var updates []client.AllocUpdate
	for _, a := range list {
		if a.DesiredStatus == "run" && a.ClientStatus == "pending" {
			updates = append(updates, client.AllocUpdate{AllocID: a.ID, ClientStatus: "running", StartTime: time.Now().UnixNano()})
		}
	}
	_, err = w.client.NodeAgent().Update(w.t.Context(), node, testNodeSecret, updates)
	w.check(err)
}

// reportStopped reports every allocation of the node n1 that is not desired as complete.
func (w *fixture) reportStopped() {
	w.t.Helper()
	list, _, err := w.client.NodeAgent().Allocations(w.t.Context(), "n1", testNodeSecret, nil)
	w.check(err)
	var updates []client.AllocUpdate
	for _, a := range list {
		if a.DesiredStatus != "run" && (a.ClientStatus == "pending" || a.ClientStatus == "running") {
			updates = append(updates, client.AllocUpdate{AllocID: a.ID, ClientStatus: "complete"})
		}
	}
	_, err = w.client.NodeAgent().Update(w.t.Context(), "n1", testNodeSecret, updates)
	w.check(err)
}

// enablePreemption enables preemption for all job types, without a priority delta.
func (w *fixture) enablePreemption() {
	w.t.Helper()
	conf, _, err := w.client.Scheduler().Get(w.t.Context(), nil)
	w.check(err)
	conf.PreemptionConfig = client.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}
	_, err = w.client.Scheduler().Set(w.t.Context(), conf, nil)
	w.check(err)
}

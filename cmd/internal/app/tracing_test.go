package app

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// collected holds the spans that a collector received over OTLP/HTTP.
type collected struct {
	t  *testing.T
	mu sync.Mutex
	// Spans by name, and the names of their services.
	spans    map[string][]*spans.Span
	services map[string]bool
}

// collect runs a collector on loopback and sets the environment variables for it.
func collect(t *testing.T) *collected {
	t.Helper()
	c := &collected{t: t, spans: map[string][]*spans.Span{}, services: map[string]bool{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	return c
}

func (c *collected) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzip, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = unzip
	}
	raw, err := io.ReadAll(body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		c.t.Errorf("%s: %v", r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range sent.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.services[a.GetValue().GetStringValue()] = true
			}
		}
		for _, by := range of.GetScopeSpans() {
			for _, s := range by.GetSpans() {
				c.spans[s.GetName()] = append(c.spans[s.GetName()], s)
			}
		}
	}
}

// of returns the spans of a trace with a name.
func (c *collected) of(trace, name string) (list []*spans.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans[name] {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			list = append(list, s)
		}
	}
	return list
}

// The trace of a request covers it until its allocations run. Spans that are not
// exported yet are flushed when the process stops.
func TestTraces_ReachACollector(t *testing.T) {
	c := collect(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000") // nothing is exported before the process stops
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=cede-of-a-test")
	p := start(t, load(t, config.Sources{Dev: true, Flags: loopback(nil)}), func(o *Options) { o.Getenv = os.Getenv })
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	body, err := json.Marshal(client.JobRegisterRequest{Job: job("traced", 50, 1, 10, "sim", nil)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+"/v1/jobs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	p.await("traced", "running")
	p.end()
	register := c.of(trace, "job.register")
	if len(register) != 1 || hex.EncodeToString(register[0].GetParentSpanId()) != caller {
		t.Fatalf("%d spans job.register, or one without the caller as parent: %v", len(register), register)
	}
	process := c.of(trace, "eval.process") // more than one if the node registered after the job
	for name, under := range map[string][]*spans.Span{"eval.process": register, "plan.apply": process, "alloc.start": register} {
		list := c.of(trace, name)
		if len(list) == 0 || !slices.ContainsFunc(under, func(s *spans.Span) bool { return bytes.Equal(list[0].GetParentSpanId(), s.GetSpanId()) }) {
			t.Errorf("%s: %v", name, list)
		}
	}
	if !c.services["cede-of-a-test"] {
		t.Errorf("spans are of services %v", c.services)
	}
}

// An unreachable collector is logged and does not delay the shutdown.
func TestTraces_UnreachableCollectorDoesNotDelayStop(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() {
		close(release)
		s.Close()
	})
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL+"/v1/traces")
	p := start(t, load(t, config.Sources{Dev: true, Flags: loopback(nil)}), func(o *Options) { o.Getenv = os.Getenv })
	p.register(job("traced", 50, 1, 10, "sim", nil))
	p.end()
	if !strings.Contains(p.log.String(), "failed to export the last traces") {
		t.Errorf("the loss of traces is not logged:\n%s", p.log)
	}
}

func TestTraces_AreEnabledByEnvironment(t *testing.T) {
	t.Parallel()
	const at = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, c := range []struct {
		env    map[string]string
		wanted bool
		says   string // expected error; "": none
	}{
		{nil, false, ""},
		{map[string]string{at: "http://c:4318"}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		{map[string]string{at: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{map[string]string{at: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, false, ""},
		{map[string]string{"OTEL_SERVICE_NAME": "mine"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "must be otlp or none"},
		{map[string]string{at: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "must be http/protobuf"},
	} {
		wanted, err := tracingRequested(func(name string) string { return c.env[name] })
		if wanted != c.wanted || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %t, %v", c.env, wanted, err)
		}
	}
}

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cede configures `cede kubernetes`.
type Cede struct {
	Name   string // of the log; default: cede
	Path   string // of the program
	Policy string
	// HTTP and Metrics are ports; default: free ones. A restarted process has the ports of
	// the first.
	HTTP, Metrics int
	// Lease is the Lease by which one of several replicas is elected; default: none.
	Lease string
}

// An Extender is a running `cede kubernetes`.
type Extender struct {
	*Process
	Cede
}

// StartCede starts an extender and waits until it has read the cluster. A replica may not be
// the leader yet.
func (c *Cluster) StartCede(t testing.TB, o Cede) *Extender {
	t.Helper()
	if o.Name == "" {
		o.Name = "cede"
	}
	if o.HTTP == 0 {
		o.HTTP, o.Metrics = freePort(t), freePort(t)
	}
	file := filepath.Join(c.Dir, o.Name+".yaml")
	text := fmt.Sprintf("listen: {http: 127.0.0.1:%d, metrics: 127.0.0.1:%d}\nlog: {level: info}\nkubernetes: {kubeconfig: %s, policy: %s, lease: %q, lease_duration: 5s}\n", o.HTTP, o.Metrics, c.kubeconfig, o.Policy, o.Lease)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Extender{StartProcess(t, c.Dir, o.Name, o.Path, "kubernetes", "--config", file), o}
	e.awaitHealth(t, e.URL()+"/readyz/sync")
	return e
}

// URL returns the address of the extender.
func (e *Extender) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", e.HTTP) }

// IsReady reports whether the extender answers kube-scheduler.
func (e *Extender) IsReady(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL()+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := loopback.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // opened for reading only
	return resp.StatusCode == http.StatusOK
}

// StartService returns the URL of a proxy that forwards each request to the first ready
// replica, as a Service does, until the test ends.
func StartService(t testing.TB, replicas ...*Extender) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, e := range replicas {
			if e.IsReady(r.Context()) {
				httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: strings.TrimPrefix(e.URL(), "http://")}).ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "no replica is ready", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// MetricsURL returns the address of the metrics.
func (e *Extender) MetricsURL() string { return fmt.Sprintf("http://127.0.0.1:%d/metrics", e.Metrics) }

// ExtenderConfig returns the part of a scheduler's configuration that names extenders.
// verbs are lines of YAML such as "preemptVerb: preempt".
func ExtenderConfig(url string, ignorable bool, verbs ...string) string {
	lines := []string{
		"extenders:", "- urlPrefix: " + url + "/kube/v1", fmt.Sprintf("  ignorable: %v", ignorable), "  httpTimeout: 5s", "  nodeCacheCapable: true",
	}
	for _, v := range verbs {
		lines = append(lines, "  "+v)
	}
	return strings.Join(lines, "\n") + "\n"
}

// PluginConfig returns the part of a scheduler's configuration that replaces
// DefaultPreemption by the plugin.
func PluginConfig(policy string) string {
	return fmt.Sprintf(`profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: DefaultPreemption}]
      enabled: [{name: Cede}]
  pluginConfig:
  - name: Cede
    args: {policy: %s}
`, policy)
}

// AllVerbs are the verbs of an extender that also filters and ranks nodes.
var AllVerbs = []string{"preemptVerb: preempt", "filterVerb: filter", "prioritizeVerb: prioritize", "weight: 1"}

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
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
}

// An Extender is a running `cede kubernetes`.
type Extender struct {
	*Process
	Cede
}

// StartCede starts an extender and waits until it has read the cluster.
func (c *Cluster) StartCede(t testing.TB, o Cede) *Extender {
	t.Helper()
	if o.Name == "" {
		o.Name = "cede"
	}
	if o.HTTP == 0 {
		o.HTTP, o.Metrics = freePort(t), freePort(t)
	}
	file := filepath.Join(c.Dir, o.Name+".yaml")
	text := fmt.Sprintf("listen: {http: 127.0.0.1:%d, metrics: 127.0.0.1:%d}\nlog: {level: info}\nkubernetes: {kubeconfig: %s, policy: %s}\n", o.HTTP, o.Metrics, c.kubeconfig, o.Policy)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Extender{StartProcess(t, c.Dir, o.Name, o.Path, "kubernetes", "--config", file), o}
	e.awaitHealth(t, e.URL()+"/readyz")
	return e
}

// URL returns the address of the extender.
func (e *Extender) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", e.HTTP) }

// MetricsURL returns the address of the metrics.
func (e *Extender) MetricsURL() string { return fmt.Sprintf("http://127.0.0.1:%d/metrics", e.Metrics) }

// ExtenderConfig returns the part of a scheduler's configuration that names extenders.
// verbs are lines of YAML such as "preemptVerb: preempt".
func ExtenderConfig(url string, ignorable bool, verbs ...string) string {
	text := fmt.Sprintf("extenders:\n- urlPrefix: %s/kube/v1\n  ignorable: %v\n  httpTimeout: 5s\n  nodeCacheCapable: true\n", url, ignorable)
	for _, v := range verbs {
		text += "  " + v + "\n"
	}
	return text
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

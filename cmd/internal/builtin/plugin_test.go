package builtin

import (
	"os"
	"regexp"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
)

// The plugin for kube-scheduler is a module that cannot import this package. Its list
// has the same policies, with the same versions of their rules; karmada chooses among
// bindings, not pods.
func TestList_PluginForKubeSchedulerHasThem(t *testing.T) {
	text, err := os.ReadFile("../../../plugins/kubernetes/policies.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range List() {
		key := `"` + p.Name + `"`
		if p.Name == policy.DefaultName {
			key = `policy\.DefaultName`
		}
		if p.Name == "karmada" {
			continue
		}
		if !regexp.MustCompile(`(?m)^\t` + key + `: `).Match(text) {
			t.Errorf("policies.go of the plugin lacks %s", p.Name)
		}
		rules := "1"
		if p.Name == policy.DefaultName || p.Name == "least-waste" {
			rules = "2"
		}
		if p.rules != rules || len(p.grants) > 0 != (p.Name == "nomad") {
			t.Errorf("%s has rules %s and grants %v: policies.go of the plugin states rules %s, and grants of nomad only", p.Name, p.rules, p.grants, rules)
		}
	}
}

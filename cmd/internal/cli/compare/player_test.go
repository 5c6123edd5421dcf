package compare

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/core/policy"
)

// contendedText is a scenario in which policies differ.
const contendedText = `version: 1
name: pair
nodes:
  - {id: n, count: 2, capacity: {cpu: 2000, memory: 1024}}
jobs:
  - {id: old, priority: 20, groups: [{name: g, count: 2, resources: {cpu: 1000, memory: 100}, duration: 1h}]}
  - {id: young, priority: 20, groups: [{name: g, count: 2, resources: {cpu: 1000, memory: 100}, duration: 1h}]}
  - {id: urgent, priority: 80, groups: [{name: g, resources: {cpu: 1000, memory: 100}, duration: 10m}]}
events: [{at: 0s, submit: old}, {at: 10m, submit: young}, {at: 20m, submit: urgent}]
until: 2h
`

func inputOf(text string, names ...string) *comparisons.Input {
	in := &comparisons.Input{Name: "pair.yaml", Text: []byte(text), Seeds: 1, Limits: comparisons.Limits{}.WithDefaults()}
	for _, name := range names {
		in.Policies = append(in.Policies, comparisons.Policy{Name: name})
	}
	return in
}

func TestPlay_ReportsBuiltInAndLoadedPolicies(t *testing.T) {
	in := inputOf(contendedText, "default", "least-waste?bands=10", "thrifty@1234")
	host, err := policies.New(policies.Options{}).ForServer(policies.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := host.Describe(t.Context(), policy.LoadRequest{Name: "thrifty", Builtin: "least-waste"})
	if err != nil {
		t.Fatal(err)
	}
	in.Policies[2].Version = loaded
	in.Seeds = 2
	r, err := play(in, func(comparisons.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Runs []struct{ Policy string } }
	if err := json.Unmarshal(r.Document, &d); err != nil {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for _, run := range d.Runs {
		runs[run.Policy]++
	}
	if want := map[string]int{"default": 2, "least-waste?bands=10": 2, "thrifty@1234": 2}; !maps.Equal(runs, want) {
		t.Errorf("runs by policy %v, want %v", runs, want)
	}
	for _, want := range []string{"<h2 id=\"summary\">Summary</h2>", "thrifty@1234", "First decisions that differ", "cede compare pair.yaml -p default -p &#39;least-waste?bands=10&#39; -p thrifty@1234 --seeds 2"} {
		if !strings.Contains(string(r.HTML), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// A scenario neither starts executables of the server nor reads its files, and its counts are
// checked before it is expanded.
func TestPlay_RefusesWhatAServerMustNotPlay(t *testing.T) {
	huge := strings.NewReplacer("count: 2, capacity", "count: 900000, capacity", "count: 2, resources", "count: 900000, resources").Replace(contendedText)
	preset := inputOf("", "default", "nomad")
	preset.Preset = "../../secret"
	description := inputOf(contendedText, "default", "nomad")
	description.Description = true
	for name, test := range map[string]struct {
		in   *comparisons.Input
		want []string
	}{
		"executable in scenario": {inputOf(contendedText+"policies: [{name: x, use: /bin/true}]\n", "default", "nomad"), []string{`policies[0].use: "/bin/true" is not a built-in policy`}},
		"file":                   {inputOf(contendedText, "default", "./policy.wasm"), []string{`unknown policy "./policy.wasm"`}},
		"inline rules":           {inputOf(contendedText, "default", "rules:score = 1"), []string{"unknown policy"}},
		"counts":                 {inputOf(huge, "default", "nomad"), []string{"it has 900000 nodes and clusters, and the limit is 20000", "it has 1800001 instances and replicas, and the limit is 200000"}},
		"unknown preset":         {preset, []string{`unknown preset "../../secret"`}},
		"not a description":      {description, []string{"pair.yaml"}},
		"several problems":       {inputOf("version: 1\nname: x\nnodez: []\njobz: []\n", "default", "nomad"), []string{"nodez", "jobz"}},
	} {
		r, err := play(test.in, func(comparisons.Progress) {})
		var problem *comparisons.Error
		if !errors.As(err, &problem) {
			t.Errorf("%s: %v, %v", name, r, err)
			continue
		}
		text := problem.Message + "\n" + strings.Join(problem.Lines, "\n")
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s lacks %q", name, text, want)
			}
		}
	}
}

package sim_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Mixes combine features that affect each other. Each file describes what must happen. Two
// mixes are not files: a thousand equal candidates, which the next test generates, and a file
// of negative amounts, which testdata/errors of core/sim/scenario contains because it must be
// refused.
func TestMixes(t *testing.T) {
	files, err := filepath.Glob("testdata/mixes/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatal("no mixes", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			playExpected(t, name)
		})
	}
}

// Of a thousand equal candidates, the first ones by ID are evicted, and no more than necessary.
func TestMixes_ThousandEqualCandidates(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(`version: 1
name: thousand-equal
nodes: [{id: n1, capacity: {cpu: 10000}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, count: 1000, resources: {cpu: 10}}]}
  - {id: hi, priority: 70, groups: [{name: g, count: 2, resources: {cpu: 1000}}]}
events: [{at: 0s, submit: hi}]
running:
`)
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {id: a%04d, job: low, group: g, node: n1, startedAt: -1h}\n", i)
	}
	f, err := scenario.Decode("thousand-equal", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range builtin.Names() {
		list := play(t, f, sim.Options{Policy: policy}).Result.Placements
		if len(list) != 2 {
			t.Fatalf("%s: %d placements", policy, len(list))
		}
		for i, p := range list {
			first, last := fmt.Sprintf("a%04d", 100*i), fmt.Sprintf("a%04d", 100*i+99)
			if n := len(p.Preempted); n != 100 || p.Preempted[0] != first || p.Preempted[n-1] != last {
				t.Errorf("%s: %s evicts %v", policy, p.Alloc, p.Preempted)
			}
		}
	}
}

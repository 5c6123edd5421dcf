package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// The page contains what another person needs to repeat the comparison.
func TestWrite_ListsSourceOfComparison(t *testing.T) {
	d := &compare.Document{
		Policies:   []string{"default", "nomad"},
		Provenance: compare.Provenance{Command: "cede compare a.yaml -p default -p nomad", Program: "1.2.3", Versions: map[string]string{"default": "sha256:aa", "nomad": "sha256:bb"}},
		Runs:       []compare.Run{{Scenario: "a", Policy: "default", Seed: 7, Metrics: &metrics.Metrics{}}, {Scenario: "a", Policy: "default", Seed: 8, Metrics: &metrics.Metrics{}}, {Scenario: "a", Policy: "nomad", Seed: 7, Metrics: &metrics.Metrics{}}},
	}
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cede compare a.yaml -p default -p nomad", "1.2.3", "sha256:aa", "sha256:bb", "<code>7, 8</code>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestWorkUnit_ConvertsToHours(t *testing.T) {
	for resource, want := range map[string]struct {
		value float64
		name  string
	}{
		"cpu": {2, "core-hours"}, "memory": {2, "GiB-hours"}, "gpu": {2, "gpu-hours"},
	} {
		name, size := metrics.WorkUnit(resource)
		seconds := map[string]float64{"cpu": 2 * 3600 * 1000, "memory": 2 * 3600 * 1024, "gpu": 2 * 3600}[resource]
		if name != want.name || seconds/size != want.value {
			t.Errorf("%s: %v %s, want %v %s", resource, seconds/size, name, want.value, want.name)
		}
	}
}

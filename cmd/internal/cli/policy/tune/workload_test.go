package tune

import (
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
)

// A scenario without a seed results in workloads that differ in their tie-breaks.
func TestWorkloads_OfAScenarioWithoutASeedDiffer(t *testing.T) {
	text := "version: 1\nname: unseeded\nnodes:\n  - {id: n, capacity: {cpu: 1000, memory: 1Gi}}\n"
	c := &command{env: clitest.New(map[string]string{"unseeded.yaml": text}).Env, on: []string{"unseeded.yaml"}}
	list, err := c.workloads(0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range list {
		if w.ties.Seed != uint64(i+1) {
			t.Errorf("workload %d breaks ties by seed %d, want %d", i, w.ties.Seed, i+1)
		}
	}
}

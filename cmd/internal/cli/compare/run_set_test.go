package compare

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The number of workers is limited to one per core, and by the available memory.
func TestRunSet_WorkersAreLimitedByCoresAndMemory(t *testing.T) {
	contested, err := scenario.Decode("test", strings.NewReader(clitest.Contested))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		cores  int
		memory int64
		specs  int
		want   int
	}{
		{8, 0, 4, 4},
		{2, 0, 4, 2},
		{8, 1 << 40, 8, 8},
		{8, 100 << 20, 8, 3},
		{8, 1, 8, 1},
	} {
		w := clitest.New(nil)
		w.Cores, w.Memory = tc.cores, func() int64 { return tc.memory }
		s := newRunSet(&comparison{env: w.Env}, nil)
		if got := s.workers([]*workload{{ScenarioFile: &simrun.ScenarioFile{File: contested}}}, tc.specs); got != tc.want {
			t.Errorf("%+v: %d workers", tc, got)
		}
	}
}

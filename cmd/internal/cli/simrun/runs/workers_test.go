package runs_test

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The number of workers is limited to one per core, and by the available memory.
func TestWorkers_AreLimitedByCoresAndMemory(t *testing.T) {
	t.Parallel()
	contested, err := scenario.Decode("test", strings.NewReader(clitest.Contested))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		cores  int
		memory int64
		runs   int
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
		if got := runs.Workers(w.Env, []*scenario.File{contested}, tc.runs); got != tc.want {
			t.Errorf("%+v: %d workers", tc, got)
		}
	}
}

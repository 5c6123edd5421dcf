package bound_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/importer"
)

// A public trace on 14 nodes needs less than a minute: every decision is solved, in fewer
// steps than one decision may take. The test counts steps, which no load delays.
func TestRecorder_SolvesEveryDecisionOfATrace(t *testing.T) {
	t.Parallel()
	root := os.Getenv("CEDE_TRACES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "traces")
	}
	source, err := importer.Open(filepath.Join(root, "openb-2023"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no openb-2023 in %s; set CEDE_TRACES to the folder of the traces", root)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := importer.OpenB(importer.Options{Nodes: 14}, source)
	if err != nil {
		t.Fatal(err)
	}
	r := bound.NewRecorder(bound.DefaultLimit)
	run, err := sim.Play(context.Background(), file, sim.Options{Policy: "default", Resolve: resolve, Evaluated: r.Evaluated})
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Finish(file, run)
	if err != nil {
		t.Fatal(err)
	}
	if report.Decisions < 100 || report.Open > 0 || report.Lower > report.Cost || report.Steps > bound.DefaultLimit {
		t.Errorf("%d decisions, %d open, bound %d of %d, %d steps", report.Decisions, report.Open, report.Lower, report.Cost, report.Steps)
	}
	if report.Run.Unplaced > run.Metrics.Unplaced {
		t.Errorf("%d unplaced, bound %d", run.Metrics.Unplaced, report.Run.Unplaced)
	}
}

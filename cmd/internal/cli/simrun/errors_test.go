package simrun

import (
	"errors"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// A full disk is reported as such, and not as an error of the scenario or of the command line.
func TestRunError_KeepsFailedWrites(t *testing.T) {
	t.Parallel()
	full := cmdutil.WriteError("tuned.runs", errors.New("no space left on device"))
	e := cmdutil.AsError(RunError(&ScenarioFile{Path: "s.yaml"}, full, true))
	if e.Exit != cmdutil.ExitError || e.Message != "tuned.runs: no space left on device" {
		t.Errorf("exit %d, %s", e.Exit, e.Message)
	}
}

package simrun

import (
	"errors"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim/generate"
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

// A scenario is passed where a description is expected, such as with --draws.
func TestNotGenerated_NamesCommandsForScenario(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"version: 1\nname: x\nnodes: []\nevents: []\n": "cede compare --seeds N",
		"name: x\nnodse: []\n":                         "presets are examples of descriptions",
	} {
		_, err := generate.Parse("x.yaml", []byte(text))
		if hint := cmdutil.AsError(notGenerated("x.yaml", err)).Hint; !strings.Contains(hint, want) {
			t.Errorf("%q: hint %q lacks %q", text, hint, want)
		}
	}
}

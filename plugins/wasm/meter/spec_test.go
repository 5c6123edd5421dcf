package meter_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// wazero contains the compiled test suite of the WebAssembly specification: valid modules
// of every kind, and invalid ones with one error each.
func TestInstrument_SupportsSpecificationSuite(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Skip("no source of wazero at hand: ", err)
	}
	suite := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	paths, err := filepath.Glob(filepath.Join(suite, "*", "testdata", "*.wasm"))
	if err != nil || len(paths) == 0 {
		t.Skip("no specification suite in ", suite)
	}
	taken, finished := 0, 0
	for n, path := range paths {
		module := read(t, path)
		m := checkValidity(t, module)
		if m == nil {
			continue
		}
		taken++
		// The others run only in make soak.
		if len(m.Imports) == 0 && n%soakEvery(8) == 0 {
			finished += checkBehaviour(t, module, m.Code, 20_000)
		}
		if t.Failed() {
			t.Fatal(path)
		}
	}
	t.Logf("%d modules, %d valid, %d calls compared", len(paths), taken, finished)
}

// soakEvery returns the stride between executed cases, or 1 if all are requested.
func soakEvery(n int) int {
	if soak.Full() {
		return 1
	}
	return n
}

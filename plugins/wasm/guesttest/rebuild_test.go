package guesttest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

//go:generate ../../../sdk/abi/testdata/guests/build.sh

// The committed modules were built from the committed sources.
func TestGuests_MatchSources(t *testing.T) {
	here := runGuestScript(t, "-s")
	recorded, err := os.ReadFile(guests + "versions")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(here) {
		if !strings.Contains(string(recorded), line) {
			t.Errorf("%sis not what the modules were built of: run go generate in plugins/wasm/guesttest and commit it", line)
		}
	}
}

// Equal tools produce equal bytes. If the tools differ, the modules must answer
// identically: with CEDE_SOAK all of them are built and tested with the golden frames.
func TestGuests_RebuildIdentically(t *testing.T) {
	if soak.Race {
		t.Skip("compilers are slow, and have no races of ours")
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			skipSlowCompiler(t, language)
			built := build(t, language)
			list, err := filepath.Glob(built + "/*.wasm")
			if err != nil || len(list) == 0 {
				t.Fatalf("built %v: %v", list, err)
			}
			compared := sameTools(t, language)
			for _, path := range list {
				checkBuilt(t, path, compared)
			}
		})
	}
}

// skipSlowCompiler skips a test with reduced counts if the compiler of the language takes
// seconds. TestGuests_MatchSources detects sources without a new module, and TestScripts of
// cmd/cede builds and tries a policy in each language.
func skipSlowCompiler(t *testing.T, language string) {
	t.Helper()
	if soak.Quick() && language != "c" {
		t.Skipf("the compiler of %s takes seconds: run without CEDE_QUICK", language)
	}
}

func checkBuilt(t *testing.T, path string, compared bool) {
	t.Helper()
	name := filepath.Base(path)
	fresh, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(guests + name)
	switch {
	case err != nil:
		t.Errorf("%v; run go generate in plugins/wasm/guesttest and commit it", err)
	case compared && !bytes.Equal(fresh, committed):
		t.Errorf("%s is not what its sources give; run go generate in plugins/wasm/guesttest and commit it", name)
	}
	if strings.HasPrefix(name, "probe-") {
		checkAllGolden(t, fresh)
	}
}

// build runs build.sh for a language and skips the test if a tool is missing.
func build(t *testing.T, language string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	runGuestScript(t, "-o", folder, language)
	return folder
}

// runGuestScript runs build.sh and returns its standard output. It skips the test if a
// tool is missing. Without CEDE_SOAK only one guest per language is built, because
// compilers are slow.
func runGuestScript(t *testing.T, args ...string) string {
	t.Helper()
	script := exec.Command(guests+"build.sh", args...)
	if !soak.Full() {
		script.Env = append(os.Environ(), "GUESTS=decay")
	}
	var stderr strings.Builder
	script.Stderr = &stderr
	out, err := script.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		t.Skip(strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		t.Fatalf("build.sh %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

// sameTools reports whether the installed tools are the ones that built the committed
// modules.
func sameTools(t *testing.T, language string) bool {
	t.Helper()
	here := runGuestScript(t, "-v", language)
	recorded, err := os.ReadFile(guests + "versions")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(recorded), here) {
		return true
	}
	t.Logf("not compared byte for byte: the committed modules were built by other tools than\n%s", here)
	return false
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestMain(m *testing.M) { cedetest.Main(m) }

// TestScripts runs the scripts that need no server.
func TestScripts(t *testing.T) {
	t.Parallel()
	folders := map[string]string{
		"CONTRACT": "testdata/contract", "GUESTS": "../../sdk/abi/testdata/guests", "HOSTILE": "../../plugins/wasm/testdata/hostile", "ASC": nodeModules,
	}
	for name, dir := range folders {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		folders[name] = absolute
	}
	cache, compiled := goCache(t), t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			for name, dir := range folders {
				env.Setenv(name, dir)
			}
			env.Setenv("GOCACHE", cache)
			env.Setenv("XDG_CACHE_HOME", compiled)
			return nil
		},
		Condition: condition,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// nodeModules is the folder of the AssemblyScript compiler, if it has been installed.
const nodeModules = "../../sdk/assemblyscript/node_modules"

// condition evaluates the conditions of scripts that testscript does not define.
func condition(name string) (bool, error) {
	switch name {
	case "soak":
		return soak.Full(), nil
	case "quick":
		return soak.Quick(), nil
	case "wasm-rust":
		_, err := os.Stat("/usr/lib/rustlib/wasm32-unknown-unknown/lib")
		_, noLinker := exec.LookPath("wasm-ld")
		return err == nil && noLinker == nil, nil
	case "asc":
		_, err := os.Stat(filepath.Join(nodeModules, ".bin", "asc"))
		_, noNode := exec.LookPath("node")
		return err == nil && noNode == nil, nil
	}
	return false, fmt.Errorf("unknown condition %s", name)
}

// goCache returns the build cache of the go tool. If scripts did not share it, each would
// compile the standard library again.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Log("go tool not available: ", err)
	}
	return strings.TrimSpace(string(out))
}

// exits runs a command and verifies its exit code. Example: exits 2 cede sim run x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// Package cedetest lets tests start the commands cede and cede-bench as processes without
// building them: the test binary acts as the command if it runs under its name. Processes
// then run the code under test, under the race detector if the test does, and nothing is
// linked twice.
//
// TestMain of a package that starts processes calls Main. Main is not safe for concurrent
// use; the other functions are.
package cedetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cede-scheduler/cede/cmd/internal/benchcli"
	"github.com/cede-scheduler/cede/cmd/internal/cli"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	supervisor "github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
)

// Main runs the tests of a package, or the command that this process was started as. It
// installs both commands in a temporary folder in PATH. It does not return.
func Main(m testscript.TestingM) {
	// Agents and hosts of policies start their own executable under its own name.
	if len(os.Args) == 2 && (os.Args[1] == supervisor.SupervisorArg || os.Args[1] == compiler.Arg) {
		cli.Run()
	}
	testscript.Main(tests{m}, map[string]func(){
		"cede":         cli.Run,
		"kubectl-cede": cli.Run,
		"cede-bench":   func() { env := cmdutil.System(); env.Exit(int(benchcli.Main(env))) },
	})
}

// tests are the tests of a package, whose processes use the garbage collector as the
// product configures it: make test sets GOGC for the test itself.
type tests struct{ testscript.TestingM }

func (m tests) Run() int {
	_ = os.Unsetenv("GOGC")
	return m.TestingM.Run()
}

// Folder returns the folder with the commands cede and cede-bench that Main installed.
func Folder(tb testing.TB) string { return filepath.Dir(Program(tb)) }

// Program returns the path of the command cede that Main installed.
func Program(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("cede")
	if err != nil {
		tb.Fatalf("TestMain must call cedetest.Main: %v", err)
	}
	return path
}

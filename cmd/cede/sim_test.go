package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// newCommand returns a command that runs cede.
func newCommand(t testing.TB, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cedetest.Program(t), args...)
	cmd.Env = append(os.Environ(), environment...)
	return cmd
}

// runCommand runs a command and returns its output and exit code.
func runCommand(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// glob returns the files that match a pattern.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The scenarios of the contract meet the expectations that they contain.
func TestContract_ScenariosMeetExpectations(t *testing.T) {
	t.Parallel()
	files := glob(t, "testdata/contract/*.json")
	if len(files) < 8 {
		t.Fatalf("found %d scenarios, want at least 8", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runCommand(t, newCommand(t, nil, "sim", "run", file, "-o", "json"))
			if code != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
				t.Errorf("exit code %d, want 0 and one line of output\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// The output depends only on file, policy and seed: it is identical in every run and for
// every number of processors.
func TestOutput_IsDeterministic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	contended := filepath.Join(dir, "contended.yaml")
	if _, stderr, code := runCommand(t, newCommand(t, nil, "sim", "generate", "testdata/small.yaml", "-w", contended)); code != 0 {
		t.Fatal(stderr)
	}
	processors := []string{"1", "2", "2", "8"}
	if soak.Quick() {
		processors = []string{"1", "8"}
	}
	for _, args := range [][]string{
		{"sim", "run", contended, "-o", "json"},
		{"sim", "run", contended, "-p", "nomad", "-o", "wide"},
		{"compare", contended, "-p", "default", "-p", "nomad", "--seeds", "2", "-o", "json"},
		{"compare", contended, "-p", "default", "-p", "nomad", "--seeds", "2", "--html", "-", "-o", "name"},
		{"sim", "generate", "testdata/small.yaml", "-w", "-"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			t.Parallel()
			var first string
			for i, cores := range processors {
				stdout, stderr, code := runCommand(t, newCommand(t, []string{"GOMAXPROCS=" + cores}, args...))
				switch {
				case code != 0 || stdout == "":
					t.Fatalf("exit %d: %s", code, stderr)
				case i == 0:
					first = stdout
				case stdout != first:
					t.Fatalf("output with GOMAXPROCS=%s differs %s", cores, difference(first, stdout))
				}
			}
		})
	}
}

// difference returns the first byte at which two texts differ, with context.
func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	around := func(s string) string { return s[max(0, n-80):min(len(s), n+80)] }
	return fmt.Sprintf("at byte %d:\n%s\n%s", n, around(a), around(b))
}

const examples = "../../examples"

// Each scenario of examples meets its expectations under its own policy. Other policies may
// give other results, but do not fail.
func TestExamples_MeetExpectations(t *testing.T) {
	t.Parallel()
	files := slices.DeleteFunc(glob(t, examples+"/*/*.yaml"), func(file string) bool { return strings.HasSuffix(file, "spec.yaml") })
	if len(files) == 0 {
		t.Fatal("found no examples")
	}
	for _, file := range files {
		if decode(t, file).Expect == nil {
			t.Errorf("%s has no expectations", file)
		}
	}
	play := append([]string{"sim", "run", "-o", "name"}, files...)
	if stdout, stderr, code := runCommand(t, newCommand(t, nil, play...)); code != 0 || strings.Count(stdout, "\n") != len(files) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	others := []string{"kubernetes", "least-waste"} // the command without -p played the default
	if soak.Full() {
		others = builtin.Names()
	}
	for _, policy := range others {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runCommand(t, newCommand(t, nil, append(play, "-p", policy)...))
			if code != 0 && code != 1 || strings.Count(stdout, "\n") != len(files) {
				t.Errorf("exit %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}

func decode(t *testing.T, file string) *scenario.File {
	t.Helper()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	f, err := scenario.Decode(file, r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// An interrupt ends the command with exit code 130 even if it waits for standard input.
func TestInterrupt_WhileReadingStdin(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes as long as the shutdown timeout of a command")
	}
	cmd := newCommand(t, nil, "sim", "run", "-")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The text exceeds the buffer of a pipe, so the command is reading once it is written.
	if _, err := io.WriteString(stdin, "# "+strings.Repeat("x", 1<<18)+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("command ended with %v, want exit code 130", err)
	}
}

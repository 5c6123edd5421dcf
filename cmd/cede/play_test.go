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

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// command is this binary under the name at which it is the command itself.
func command(t *testing.T, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cede := filepath.Join(t.TempDir(), "cede")
	if err := os.Symlink(self, cede); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), cede, args...)
	cmd.Env = append(os.Environ(), environment...)
	return cmd
}

// output runs the command and returns what it printed and its exit code.
func output(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
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

func matching(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestContract_ScenariosGiveTheStatedResults(t *testing.T) {
	files := matching(t, "testdata/contract/*.json")
	if len(files) < 8 {
		t.Fatalf("found %d scenarios: the folder has lost some", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			stdout, stderr, code := output(t, command(t, nil, "sim", "run", file, "-o", "json"))
			if code != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
				t.Errorf("exit %d, want 0 and one line\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// Same file, policy and seed: the same bytes, however many cores there are and
// however often it is asked.
func TestOutput_IsTheSameBytesEveryTime(t *testing.T) {
	dir := t.TempDir()
	contended := filepath.Join(dir, "contended.yaml")
	if _, stderr, code := output(t, command(t, nil, "sim", "generate", "testdata/small.yaml", "-w", contended)); code != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{
		{"sim", "run", contended, "-o", "json"},
		{"sim", "run", contended, "-p", "nomad", "-o", "wide"},
		{"compare", contended, "-p", "default", "-p", "nomad", "--seeds", "2", "-o", "json"},
		{"compare", contended, "-p", "default", "-p", "nomad", "--seeds", "2", "--html", "-", "-o", "name"},
		{"sim", "generate", "testdata/small.yaml", "-w", "-"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			var first string
			for i, cores := range []string{"1", "2", "2", "8"} {
				stdout, stderr, code := output(t, command(t, []string{"GOMAXPROCS=" + cores}, args...))
				switch {
				case code != 0 || stdout == "":
					t.Fatalf("exit %d: %s", code, stderr)
				case i == 0:
					first = stdout
				case stdout != first:
					t.Fatalf("on %s cores the output differs %s", cores, difference(first, stdout))
				}
			}
		})
	}
}

// difference shows where two texts part.
func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	around := func(s string) string { return s[max(0, n-80):min(len(s), n+80)] }
	return fmt.Sprintf("at byte %d:\n%s\n%s", n, around(a), around(b))
}

const examples = "../../examples"

func TestExamples_GiveWhatTheyExpect(t *testing.T) {
	files := slices.DeleteFunc(matching(t, examples+"/*/*.yaml"), func(file string) bool { return filepath.Base(file) == "spec.yaml" })
	if len(files) == 0 {
		t.Fatal("there are no examples")
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, examples+"/"), func(t *testing.T) {
			f := decode(t, file)
			if f.Expect == nil {
				t.Error("the scenario expects nothing: a story without its end cannot be checked")
			}
			if _, stderr, code := output(t, command(t, nil, "sim", "run", file)); code != 0 {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			for _, policy := range builtin.Names() { // another policy may give other results, but never fail
				if _, stderr, code := output(t, command(t, nil, "sim", "run", file, "-p", policy)); code != 0 && code != 1 {
					t.Errorf("under %s: exit %d\n%s", policy, code, stderr)
				}
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

// An interrupt ends the command with 130 even while it waits for its input.
func TestInterrupt_WhileStandardInputIsOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a command may take to stop")
	}
	cmd := command(t, nil, "sim", "run", "-")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: once it is written, the command is reading.
	if _, err := io.WriteString(stdin, "# "+strings.Repeat("x", 1<<18)+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("ended with %v, want exit code 130", err)
	}
}

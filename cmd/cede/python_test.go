package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
)

// python returns an interpreter on PATH that has the modules. It skips the test if there is
// none. The packages of the system belong to its own interpreter, which may not come first.
func python(t *testing.T, packages string, modules ...string) string {
	t.Helper()
	check := "import sys; assert sys.version_info >= (3, 10)"
	for _, m := range modules {
		check += "; import " + m
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		program := filepath.Join(folder, "python3")
		if exec.CommandContext(t.Context(), program, "-c", check).Run() == nil {
			return program
		}
	}
	t.Skipf("Python 3.10 with %s is not installed: apt-get install %s", strings.Join(append([]string{"its library"}, modules...), ", "), packages)
	return ""
}

// runPython runs a program in the folder of its file and returns its output.
func runPython(t *testing.T, program, file string, env []string, args ...string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-B", path}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
	return string(out)
}

// contended generates the scenario of the examples that has many decisions.
func contended(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "contended.yaml")
	runCede(t, "sim", "generate", "../../examples/contended/spec.yaml", "-w", file)
	return file
}

func runCede(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), cedetest.Program(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("cede %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPython_EnvironmentAnswersDecisions(t *testing.T) {
	t.Parallel()
	program := python(t, "python3")
	file, err := filepath.Abs("../../examples/budgets/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out := runPython(t, program, "../../examples/gymnasium/test_cede_env.py", nil, cedetest.Program(t), file); out != "ok\n" {
		t.Errorf("the test of the environment printed %s", out)
	}
	env := []string{"PATH=" + cedetest.Folder(t) + ":" + os.Getenv("PATH")}
	if out := runPython(t, program, "../../examples/gymnasium/random_agent.py", env, file, "1"); strings.Count(out, "\n") != 2 {
		t.Errorf("the random agent printed %s", out)
	}
}

func TestPython_NotebookReadsTables(t *testing.T) {
	t.Parallel()
	program := python(t, "python3-pandas", "pandas")
	data := filepath.Join(t.TempDir(), "data")
	runCede(t, "compare", contended(t), "-p", "default", "-p", "least-waste", "--seeds", "2", "--output-dir", data, "-o", "name")
	notebook, err := filepath.Abs("../../examples/notebook/analysis.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	out := runPython(t, program, "../../examples/notebook/run_notebook.py", []string{"CEDE_DATA=" + data}, notebook)
	if !strings.HasSuffix(out, " cells\n") {
		t.Errorf("the notebook printed %s", out)
	}
	// Rows that contradict the metrics must be noticed.
	evictions := filepath.Join(data, "evictions.csv")
	text, err := os.ReadFile(evictions)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.WriteFile(evictions, []byte(strings.Join(append(lines[:1:1], lines[2:]...), "")), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "../../examples/notebook/run_notebook.py", notebook)
	cmd.Env = append(os.Environ(), "CEDE_DATA="+data)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "AssertionError") {
		t.Errorf("the notebook accepts a table without one of its rows: %v\n%s", err, out)
	}
}

func TestPython_ClientUsesServer(t *testing.T) {
	t.Parallel()
	program := python(t, "python3")
	agent := startDevAgent(t)
	if out := runPython(t, program, "../../sdk/python/test_cede_client.py", nil, agent.address); out != "ok\n" {
		t.Errorf("the client printed %s", out)
	}
}

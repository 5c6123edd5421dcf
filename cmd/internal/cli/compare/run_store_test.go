package compare

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// interruptingFiles cancels a context at the first write of finished runs.
type interruptingFiles struct {
	*clitest.Env
	cancel func()
}

func (f interruptingFiles) Write(name string, write func(io.Writer) error) error {
	if strings.HasSuffix(name, ".runs") {
		f.cancel()
	}
	return f.Env.Write(name, write)
}

func compareCommand(ctx context.Context, w *clitest.Env, args ...string) cmdutil.Exit {
	w.Args = append([]string{"compare"}, args...)
	w.Out.Reset()
	w.Err.Reset()
	return cmdutil.Run(ctx, w.Env, func(env *cmdutil.Env) *cobra.Command {
		root := &cobra.Command{Use: "cede", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(NewCommand(env))
		root.SetArgs(env.Args)
		return root
	})
}

// interrupted returns an environment in which a comparison was interrupted after its first
// run.
func interrupted(t *testing.T, args ...string) *clitest.Env {
	t.Helper()
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested})
	w.Cores = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Env.Files = interruptingFiles{w, cancel}
	if exit := compareCommand(ctx, w, args...); exit != cmdutil.ExitInterrupted {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	w.Env.Files = w
	return w
}

var resumed = []string{"s.yaml", "-p", "default", "-p", "nomad", "--seeds", "2", "--html", "r.html", "-o", "json"}

func TestCompare_ResumeContinuesInterruptedRuns(t *testing.T) {
	for name, args := range map[string][]string{"plain": resumed, "bounds": append(slices.Clip(resumed), "--bound")} {
		t.Run(name, func(t *testing.T) { resumeContinues(t, args) })
	}
}

func resumeContinues(t *testing.T, resumed []string) {
	t.Helper()
	complete := clitest.New(map[string]string{"s.yaml": clitest.Contested})
	if exit := compareCommand(t.Context(), complete, resumed...); exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &complete.Err)
	}
	if _, left := complete.Files["r.html.runs"]; left {
		t.Error("a complete comparison left r.html.runs")
	}
	w := interrupted(t, resumed...)
	if !strings.Contains(w.Err.String(), "1 finished run is kept in r.html.runs") || strings.Count(w.Files["r.html.runs"], "\n") != 1 {
		t.Fatalf("stderr %s, file:\n%s", &w.Err, w.Files["r.html.runs"])
	}
	finished := w.Files["r.html.runs"]
	if exit := compareCommand(t.Context(), w, append(slices.Clip(resumed), "--resume")...); exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	if w.Out.String() != complete.Out.String() {
		t.Errorf("resumed:\n%s\nwant:\n%s", &w.Out, &complete.Out)
	}
	if w.Files["r.html"] != complete.Files["r.html"] {
		t.Error("the report of a resumed comparison differs")
	}
	if _, left := w.Files["r.html.runs"]; left {
		t.Error("the resumed comparison left r.html.runs")
	}
	// The finished run is not played again: a changed figure of it is in the result.
	w.Files["r.html.runs"] = changedRun(t, finished, `"placed":`, `"placed":777`)
	if exit := compareCommand(t.Context(), w, append(slices.Clip(resumed), "--resume")...); exit != cmdutil.ExitOK || !strings.Contains(w.Out.String(), `"placed":777`) {
		t.Errorf("exit %d, the stored run was not used:\n%s%s", exit, &w.Err, &w.Out)
	}
}

// changedRun returns a file of one run in which old is replaced, with a checksum that matches.
func changedRun(t *testing.T, file, old, changed string) string {
	t.Helper()
	head, run, ok := strings.Cut(strings.TrimSuffix(file, "}\n"), `"crc32c":"`)
	if !ok || !strings.Contains(run, old) {
		t.Fatalf("no checksum or no %s in\n%s", old, file)
	}
	_, run, _ = strings.Cut(run, `","run":`)
	run = strings.Replace(run, old, changed, 1)
	return fmt.Sprintf("%s\"crc32c\":\"%08x\",\"run\":%s}\n", head, crc32.Checksum([]byte(run), crc32.MakeTable(crc32.Castagnoli)), run)
}

func TestCompare_ResumeRefusesOtherInput(t *testing.T) {
	w := interrupted(t, resumed...)
	scenario, finished := w.Files["s.yaml"], w.Files["r.html.runs"]
	for name, tc := range map[string]struct {
		scenario, runs string
		args           []string
		want           string
	}{
		"scenario": {strings.Replace(scenario, "priority: 90", "priority: 91", 1), finished, resumed, "is not the one that was played"},
		"policy": {
			scenario, changedRun(t, finished, `"policyVersion":"sha256:`, `"policyVersion":"sha256:f`), resumed,
			"policy default is not the one that was played",
		},
		"program":       {scenario, changedRun(t, finished, `"program":"v0"`, `"program":"v9"`), resumed, "its runs are of cede v9, not of v0"},
		"setting":       {scenario, finished, append([]string{"--on-fault", "default"}, resumed...), "was played with grants [], --on-fault deny"},
		"bounds":        {scenario, finished, append([]string{"--bound"}, resumed...), "--timing=false, not with grants"},
		"other command": {scenario, finished, []string{"s.yaml", "-p", "aging", "-p", "nomad", "--html", "r.html"}, "does not play its run of"},
		"no file":       {scenario, "", resumed, "cannot resume: r.html.runs"},
		"empty":         {scenario, "\n", resumed, "cannot resume r.html.runs: it contains no finished run"},
		"not a file":    {scenario, "version: 1\n", resumed, "the run in line 1 is damaged: invalid character 'v'"},
		"no metrics":    {scenario, changedRun(t, finished, `"metrics":{`, `"metricz":{`), resumed, "the run in line 1 is damaged: it has no metrics"},
		"older version": {scenario, `{"version":2,"scenario":"s"}` + "\n", resumed, "cannot resume r.html.runs: it has version 2, expected 3"},
		"changed figure": {
			scenario, finished + strings.Replace(finished, `"placed":`, `"placed":7`, 1), resumed,
			"cannot resume r.html.runs: the run in line 2 is damaged: its checksum does not match",
		},
		"cut off": {scenario, finished + finished[:len(finished)/2], resumed, "the run in line 2 is damaged: unexpected end of JSON input"},
	} {
		w.Files["s.yaml"], w.Files["r.html.runs"] = tc.scenario, tc.runs
		if tc.runs == "" {
			delete(w.Files, "r.html.runs")
		}
		exit := compareCommand(t.Context(), w, append(tc.args, "--resume")...)
		if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), tc.want) {
			t.Errorf("%s: exit %d, stderr %s", name, exit, &w.Err)
		}
		// Without --resume a file with runs is refused as well.
		if removes := strings.Contains(w.Err.String(), "remove the file and omit --resume"); removes != (tc.runs != "") {
			t.Errorf("%s: wrong hint: %s", name, &w.Err)
		}
		// No command can resume a damaged file.
		if repeats, damaged := strings.Contains(w.Err.String(), "the interrupted command"), strings.Contains(tc.want, "is damaged") || name == "empty" || name == "older version"; repeats == damaged {
			t.Errorf("%s: wrong hint: %s", name, &w.Err)
		}
		if removes := strings.Contains(w.Err.String(), "of the file to play its run again"); removes != strings.Contains(tc.want, "is damaged") {
			t.Errorf("%s: wrong hint: %s", name, &w.Err)
		}
		if w.Files["r.html.runs"] != tc.runs {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// Runs of an interrupted comparison are lost only if the user removes them.
func TestCompare_RefusesToReplaceFinishedRuns(t *testing.T) {
	w := interrupted(t, resumed...)
	finished := w.Files["r.html.runs"]
	exit := compareCommand(t.Context(), w, resumed...)
	for _, want := range []string{"r.html.runs contains the finished runs of an interrupted command", "add --resume to continue it, or remove the file to start from the beginning"} {
		if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), want) {
			t.Errorf("exit %d, %q is missing in\n%s", exit, want, &w.Err)
		}
	}
	if w.Files["r.html.runs"] != finished {
		t.Error("the finished runs were replaced")
	}
	w.Files["r.html.runs"] = ""
	if exit := compareCommand(t.Context(), w, resumed...); exit != cmdutil.ExitOK {
		t.Errorf("exit %d, an empty file contains no runs:\n%s", exit, &w.Err)
	}
}

// storeOf returns the store of a comparison without --html.
func storeOf(t *testing.T, w *clitest.Env, policies ...string) *runs.Store {
	t.Helper()
	c := &comparison{env: w.Env, players: simrun.AddPolicyFlags(&cobra.Command{}, w.Env), policies: policies, seeds: 2}
	s, err := newRunStore(c, []*workload{{ScenarioFile: &simrun.ScenarioFile{Path: "s.yaml"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// addRun adds a finished run to a store.
func addRun(t *testing.T, s *runs.Store, seed uint64) {
	t.Helper()
	f := &scenario.File{Name: "s", Seed: seed}
	spec := &runSpec{workload: &workload{ScenarioFile: &simrun.ScenarioFile{File: f}}, f: f, input: &runs.Input{}}
	if err := s.Add(storedRun(spec, &result{Run: compare.Run{Metrics: &metrics.Metrics{}}})); err != nil {
		t.Fatal(err)
	}
}

// Without --html the finished runs are kept in the working folder, in one file for each
// comparison, and only after an interrupt.
func TestCompare_InterruptKeepsRunsOfEachComparison(t *testing.T) {
	w := clitest.New(nil)
	first, again, other := storeOf(t, w, "default", "nomad"), storeOf(t, w, "default", "nomad"), storeOf(t, w, "default", "aging")
	addRun(t, first, 1)
	addRun(t, again, 2)
	addRun(t, other, 1)
	if len(w.Files) != 0 {
		t.Errorf("files before the interrupt: %v", w.Files)
	}
	first.Interrupted()
	other.Interrupted()
	if len(w.Files) != 2 {
		t.Errorf("got %d files of two comparisons", len(w.Files))
	}
	// The same command, started twice, does not lose the runs of the other process. A copied line
	// is one run.
	for name, text := range w.Files {
		w.Files[name] = text + text
	}
	again.Interrupted()
	lines := 0
	for _, text := range w.Files {
		lines = max(lines, strings.Count(text, "\n"))
	}
	if len(w.Files) != 2 || lines != 2 {
		t.Errorf("%d files, the larger one has %d runs, want 2 and 2", len(w.Files), lines)
	}
}

func TestCompare_ResumeWithoutReport(t *testing.T) {
	w := interrupted(t, resumed...)
	args := []string{"s.yaml", "-p", "default", "-p", "nomad", "--seeds", "2", "--resume"}
	exit := compareCommand(t.Context(), w, args...)
	_, name, _ := strings.Cut(w.Err.String(), "cannot resume: ")
	name, _, isNamed := strings.Cut(name, ": no such file")
	if exit != cmdutil.ExitUsage || !isNamed {
		t.Fatalf("exit %d, stderr %s", exit, &w.Err)
	}
	w.Files[name], w.Files["compare.runs"] = w.Files["r.html.runs"], "of an earlier version"
	w.Files["s.yaml"] = strings.Replace(clitest.Contested, "priority: 90", "priority: 91", 1)
	if exit := compareCommand(t.Context(), w, args...); exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "is not the one that was played") {
		t.Errorf("exit %d, stderr %s", exit, &w.Err)
	}
	w.Files["s.yaml"] = clitest.Contested
	if exit := compareCommand(t.Context(), w, args...); exit != cmdutil.ExitOK {
		t.Errorf("exit %d, stderr %s", exit, &w.Err)
	}
	if _, left := w.Files[name]; left || w.Files["compare.runs"] == "" {
		t.Errorf("files after the command: %v", slices.Sorted(maps.Keys(w.Files)))
	}
}

// Comparisons without a report write no file of runs unless they are interrupted.
func TestCompare_ReportOnStdoutWritesNoRuns(t *testing.T) {
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested})
	w.Cores = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Env.Files = interruptingFiles{w, cancel}
	if exit := compareCommand(ctx, w, "s.yaml", "-p", "default", "-p", "nomad", "--seeds", "2", "--html", "-", "-o", "name"); exit != cmdutil.ExitOK {
		t.Errorf("exit %d, want 0: finished runs were written:\n%s", exit, &w.Err)
	}
}

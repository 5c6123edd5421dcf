package tune_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policy"
)

// spec is a small description: two bands on two nodes.
const spec = `
name: small
description: two bands on two nodes
seed: 1
horizon: 20m
until: 30m
nodes:
  - {id: n, count: 2, capacity: {cpu: 4000, memory: 8Gi}}
bands:
  - {name: batch, priority: 20, load: 0.9}
  - {name: prod, priority: 70, load: 0.7}
classes:
  - name: render
    band: batch
    arrival: {process: poisson}
    resources: {cpu: {choice: [500, 1000, 2000]}, memory: 256Mi}
    duration: {uniform: [1m, 6m]}
  - name: web
    band: prod
    arrival: {process: poisson}
    resources: {cpu: {choice: [500, 1000, 2000]}, memory: 256Mi}
    duration: {uniform: [1m, 3m]}
`

// interruptingFiles cancels a context at the first write of finished runs.
type interruptingFiles struct {
	cmdutil.OS
	cancel func()
}

func (f interruptingFiles) Write(name string, write func(io.Writer) error) error {
	if strings.HasSuffix(name, ".runs") {
		f.cancel()
	}
	return f.OS.Write(name, write)
}

// run runs cede policy with arguments in the working folder.
func run(ctx context.Context, files cmdutil.Files, args ...string) (*clitest.Env, cmdutil.Exit) {
	w := clitest.New(nil, append([]string{"policy"}, args...)...)
	w.Env.Files = files
	exit := cmdutil.Run(ctx, w.Env, func(env *cmdutil.Env) *cobra.Command {
		root := &cobra.Command{Use: "cede", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(policy.NewCommand(env))
		root.SetArgs(env.Args)
		return root
	})
	return w, exit
}

func folder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("spec.yaml", []byte(spec), 0o666); err != nil {
		t.Fatal(err)
	}
}

// content returns all files of a folder by their relative names.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var arguments = []string{
	"tune", "protect?minRuntime=1m", "--on", "spec.yaml", "--objective", "goodput up, victims <= default", "--draws", "5", "--held-out", "7", "--plays", "90", "-w", "out/calm", "-o", "json",
}

// A search writes a folder that is tested and compared as any policy. The same command
// writes the same bytes, also if it is interrupted and resumed.
func TestTune_ResumesToTheSameBytes(t *testing.T) {
	folder(t)
	w, exit := run(t.Context(), cmdutil.OS{}, arguments...)
	if exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	complete, printed := content(t, "out/calm"), w.Out.String()
	var v struct {
		Policy, Claim, Against string
		Plays, Cases           int
		Terms                  []struct{ Pairs int }
	}
	if err := json.Unmarshal(w.Out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Policy, "protect") || v.Claim == "" || v.Plays > 90 || len(v.Terms) != 2 || v.Terms[0].Pairs != 7 {
		t.Errorf("result %+v", v)
	}
	if v.Cases == 0 || complete["/cases/decision-1.txt"] == "" {
		t.Error("there are no golden cases")
	}
	for _, want := range []string{v.Claim, "Candidates", "Rounds", "All metrics on the 7 held-out workloads"} {
		if !strings.Contains(complete["/report.html"], want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if w, exit := run(t.Context(), cmdutil.OS{}, "test", "out/calm", "--runs", "20"); exit != cmdutil.ExitOK {
		t.Errorf("cede policy test: exit %d:\n%s%s", exit, &w.Out, &w.Err)
	}

	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, exit = run(ctx, interruptingFiles{cancel: cancel}, arguments...)
	if exit != cmdutil.ExitInterrupted || !strings.Contains(w.Err.String(), "kept in out/calm.runs") {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	w, exit = run(t.Context(), cmdutil.OS{}, append(slices.Clip(arguments), "--resume")...)
	if exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	if w.Out.String() != printed {
		t.Errorf("resumed:\n%s\nwant:\n%s", &w.Out, printed)
	}
	for name, text := range content(t, "out/calm") {
		if complete[name] != text {
			t.Errorf("%s of a resumed search differs", name)
		}
	}
	if _, err := os.Stat("out/calm.runs"); err == nil {
		t.Error("a complete search left out/calm.runs")
	}
}

// openedFiles records the files that are opened.
type openedFiles struct {
	cmdutil.OS
	names *[]string
}

func (f openedFiles) Open(name string) (fs.File, error) {
	*f.names = append(*f.names, name)
	return f.OS.Open(name)
}

// A constraint that is shown to be violated is reported with the amount, next to the goals that
// improve. The description is read once.
func TestTune_ReportsViolationsByTheirAmount(t *testing.T) {
	folder(t)
	var opened []string
	args := []string{"tune", "protect?minRuntime=1m", "--on", "spec.yaml", "--objective", "goodput up, placed >= 1000", "--draws", "5", "--held-out", "8", "--plays", "90", "-w", "out"}
	w, exit := run(t.Context(), openedFiles{names: &opened}, args...)
	if exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	for _, want := range []string{"constraint \"placed >= 1000\" is violated by ", "(no candidate met it in the race)", "GAIN OR SLACK", " violated by "} {
		if !strings.Contains(w.Out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &w.Out)
		}
	}
	opened = slices.DeleteFunc(opened, func(name string) bool { return name != "spec.yaml" })
	if len(opened) != 1 {
		t.Errorf("spec.yaml is opened %d times", len(opened))
	}
}

// failingFiles cannot write reports.
type failingFiles struct{ cmdutil.OS }

func (f failingFiles) Write(name string, write func(io.Writer) error) error {
	if strings.HasSuffix(name, "report.html") {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	return f.OS.Write(name, write)
}

// A search that cannot write its folder removes it and keeps its plays: --resume continues
// with the same folder.
func TestTune_ResumesIfTheFolderCouldNotBeWritten(t *testing.T) {
	folder(t)
	w, exit := run(t.Context(), failingFiles{}, arguments...)
	if exit == cmdutil.ExitOK || !strings.Contains(w.Err.String(), "no space left") || !strings.Contains(w.Err.String(), "kept in out/calm.runs") {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	if w, exit := run(t.Context(), cmdutil.OS{}, append(slices.Clip(arguments), "--resume")...); exit != cmdutil.ExitOK {
		t.Errorf("exit %d:\n%s", exit, &w.Err)
	}
}

// occupyingFiles writes a file to the folder of the result at the first write of finished runs.
type occupyingFiles struct{ cmdutil.OS }

func (f occupyingFiles) Write(name string, write func(io.Writer) error) error {
	if strings.HasSuffix(name, ".runs") {
		if err := errors.Join(os.MkdirAll("out/calm", 0o777), os.WriteFile("out/calm/policy.yaml", []byte("other"), 0o666)); err != nil {
			return err
		}
	}
	return f.OS.Write(name, write)
}

func TestTune_RefusesAFolderThatAnotherCommandWroteMeanwhile(t *testing.T) {
	folder(t)
	w, exit := run(t.Context(), occupyingFiles{}, arguments...)
	if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "folder out/calm is not empty") {
		t.Errorf("exit %d:\n%s", exit, &w.Err)
	}
	if files := content(t, "out/calm"); len(files) != 1 || files["/policy.yaml"] != "other" {
		t.Errorf("the folder has changed: %v", files)
	}
}

// A file in the place of the folder is retained.
func TestTune_RefusesAFileInThePlaceOfTheFolder(t *testing.T) {
	folder(t)
	if err := os.WriteFile("taken", []byte("own"), 0o666); err != nil {
		t.Fatal(err)
	}
	w, exit := run(t.Context(), cmdutil.OS{}, append(slices.Clip(arguments), "-w", "taken")...)
	if text, err := os.ReadFile("taken"); exit != cmdutil.ExitUsage || err != nil || string(text) != "own" {
		t.Errorf("exit %d, %q, %v:\n%s", exit, text, err, &w.Err)
	}
}

// One workload must not count twice, nor be both raced on and held out.
func TestTune_RefusesWorkloadsThatCountTwice(t *testing.T) {
	folder(t)
	for name, text := range map[string]string{
		"same.yaml": spec, "overlap.yaml": strings.Replace(spec, "seed: 1", "seed: 8", 1), "distinct.yaml": strings.Replace(spec, "seed: 1", "seed: 13", 1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for other, want := range map[string]string{
		"spec.yaml":     "--on spec.yaml and --on spec.yaml result in the same workload: scenario small with seed 1",
		"same.yaml":     "--on spec.yaml and --on same.yaml result in the same workload",
		"overlap.yaml":  "--on overlap.yaml and --on spec.yaml result in the same workload: scenario small with seed 8",
		"distinct.yaml": "metric queueDelay.7.p99 is absent", // the next check
	} {
		w, exit := run(t.Context(), cmdutil.OS{}, append(slices.Clip(arguments), "--on", other, "-w", strings.TrimSuffix(other, ".yaml"), "--plays", "900", "--objective", "queueDelay.7.p99 up")...)
		if exit == cmdutil.ExitOK || !strings.Contains(w.Err.String(), want) {
			t.Errorf("%s: exit %d:\n%s", other, exit, &w.Err)
		}
	}
}

func TestTune_ResumeRefusesOtherInput(t *testing.T) {
	folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if w, exit := run(ctx, interruptingFiles{cancel: cancel}, arguments...); exit != cmdutil.ExitInterrupted {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	if err := os.WriteFile("spec.yaml", []byte(strings.Replace(spec, "load: 0.9", "load: 0.8", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	w, exit := run(t.Context(), cmdutil.OS{}, append(slices.Clip(arguments), "--resume")...)
	if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "cannot resume out/calm.runs: scenario small is not the one that was played") {
		t.Errorf("exit %d:\n%s", exit, &w.Err)
	}
}

// Rules that are found are a manifest that cede policy build and test accept.
func TestTune_SearchesRules(t *testing.T) {
	folder(t)
	w, exit := run(t.Context(), cmdutil.OS{}, "tune", "default", "--on", "spec.yaml", "--space", "rules", "--objective", "goodput up",
		"--draws", "5", "--held-out", "7", "--plays", "70", "-w", "found")
	if exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	if manifest := content(t, "found")["/policy.yaml"]; !strings.Contains(manifest, "rules:") && !strings.Contains(manifest, "use:") {
		t.Error(manifest)
	}
	for _, args := range [][]string{{"build", "found"}, {"test", "found", "--runs", "20"}} {
		if w, exit := run(t.Context(), cmdutil.OS{}, args...); exit != cmdutil.ExitOK {
			t.Errorf("cede policy %s: exit %d:\n%s%s", args[0], exit, &w.Out, &w.Err)
		}
	}
}

func TestTune_ListsEveryProblem(t *testing.T) {
	const o = "goodput up"
	for name, tc := range map[string]struct {
		args  []string
		wants []string
	}{
		"no workload":  {[]string{"protect", "--objective", o, "-w", "x"}, []string{"--on is required"}},
		"no objective": {[]string{"protect", "--on", "spec.yaml", "-w", "x"}, []string{"--objective is required"}},
		"no folder":    {[]string{"protect", "--on", "spec.yaml", "--objective", o}, []string{"-w is required"}},
		"objective":    {[]string{"protect", "--on", "spec.yaml", "--objective", "speed up, victims", "-w", "x"}, []string{"--objective has 2 problems", "unknown metric speed", `invalid term "victims"`}},
		"all at once": {
			[]string{"protect", "--on", "none.yaml", "--on", "nor.yaml", "--objective", "speed up", "--range", "speed=1..2", "--range", "=", "--draws", "1", "--held-out", "1", "-w", "full", "--baseline", "default", "--baseline", "default"},
			[]string{
				"the command line has 9 problems", "unknown metric speed", "folder full is not empty; use a new folder", "duplicate --baseline default", `invalid --range "="`, "--range speed: unknown setting",
				`no file or preset "none.yaml"`, `no file or preset "nor.yaml"`, "2 workloads are too few", "2 held-out workloads are too few",
			},
		},
		"space":           {[]string{"protect", "--on", "spec.yaml", "--objective", o, "-w", "x", "--space", "all"}, []string{`invalid --space "all"`}},
		"full folder":     {[]string{"protect", "--on", "spec.yaml", "--objective", o, "-w", "full"}, []string{"folder full is not empty"}},
		"name":            {[]string{"protect", "--on", "spec.yaml", "--objective", o, "-w", "Big"}, []string{`invalid value "Big"`}},
		"config":          {[]string{"protect", "--config", "c.yaml", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"--config cannot be combined"}},
		"no settings":     {[]string{"default", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"default declares no values to search: add --space rules", "the policy has no settings"}},
		"no values":       {[]string{"kubernetes", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"kubernetes declares no values to search", "minCandidateNodesPercentage"}},
		"inline":          {[]string{"rules: order: victim.age", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"rules has no settings to search"}},
		"ranges":          {[]string{"protect", "--range", "speed=1..2", "--range", "pause=5m..1m", "--range", "override=a,b", "--range", "pause=1s,2s", "--range", "=", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"the search of protect has 5 problems", "duplicate --range pause", `invalid --range "="`, "--range speed: unknown setting", "--range pause: 5m is not lower than 1m", "--range override: override: invalid value \"a\""}},
		"plays":           {[]string{"protect", "--on", "spec.yaml", "--objective", o, "-w", "x", "--plays", "20", "--draws", "2", "--held-out", "3"}, []string{"the search has 3 problems", "20 plays are too few", "2 workloads are too few", "3 held-out workloads are too few"}},
		"metric":          {[]string{"protect", "--on", "spec.yaml", "--objective", "queueDelay.7.p99 down", "-w", "x", "--plays", "90", "--draws", "5", "--held-out", "7"}, []string{"metric queueDelay.7.p99 is absent: use one of queueDelay.20.max"}},
		"part of metric":  {[]string{"protect", "--on", "none.yaml", "--objective", "queueDelay down", "-w", "x"}, []string{"metric queueDelay has several values: write queueDelay.BAND.PART", `no file or preset "none.yaml"`}},
		"unknown policy":  {[]string{"protekt", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"protekt"}},
		"unknown bound":   {[]string{"protect", "--on", "spec.yaml", "--objective", "goodput up, victims <= protekt", "-w", "x"}, []string{"protekt"}},
		"no description":  {[]string{"protect", "--on", "none.yaml", "--objective", o, "-w", "x"}, []string{`no file or preset "none.yaml"`}},
		"unfinished":      {[]string{"protect", "--on", "spec.yaml", "--objective", o, "-w", "kept"}, []string{"kept.runs contains the finished runs of an interrupted command", "add --resume to continue it, or remove the file"}},
		"nothing to load": {[]string{"protect", "--resume", "--on", "spec.yaml", "--objective", o, "-w", "x"}, []string{"cannot resume"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t)
			if err := os.MkdirAll("full/x", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("kept.runs", []byte("{}\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			w, exit := run(t.Context(), cmdutil.OS{}, append([]string{"tune"}, tc.args...)...)
			for _, want := range tc.wants {
				if exit == cmdutil.ExitOK || !strings.Contains(w.Err.String(), want) {
					t.Errorf("exit %d, %q is missing in\n%s", exit, want, &w.Err)
				}
			}
			if _, err := os.Stat("x"); err == nil {
				t.Error("the folder was created")
			}
		})
	}
}

// 300 plays of the preset contended, with the report and the folder. The target is five
// minutes on two cores.
func BenchmarkTune_300PlaysOfContended(b *testing.B) {
	app.TuneForCommand()
	b.Cleanup(app.TuneForService)
	b.Chdir(b.TempDir())
	for b.Loop() {
		w, exit := run(b.Context(), cmdutil.OS{}, "tune", "protect", "--on", "contended", "--objective", "goodput up, victims <= default", "--plays", "300", "-w", "tuned")
		if exit != cmdutil.ExitOK {
			b.Fatalf("exit %d:\n%s", exit, &w.Err)
		}
		if err := os.RemoveAll("tuned"); err != nil {
			b.Fatal(err)
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// builtIn knows the policies that are linked in.
func builtIn() *policies.Loader { return policies.New(policies.Options{}) }

// world is an Env whose every side a test holds in its hands.
type world struct {
	*Env
	out, err  bytes.Buffer
	files     map[string]string
	variables map[string]string
}

func newWorld(files map[string]string, args ...string) *world {
	w := &world{files: files, variables: map[string]string{}}
	w.Env = &Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &w.out, Stderr: &w.err,
		Width: func(io.Writer) int { return 60 }, Getenv: func(k string) string { return w.variables[k] },
		Files: w, Clock: clock.NewVirtual(time.Unix(0, 0)), Build: app.Build{Version: "v0"}, Cores: 2,
		Memory: func() int64 { return 0 }, Exit: func(int) {}, Policies: builtIn(),
	}
	return w
}

func (w *world) run(t *testing.T) Exit {
	t.Helper()
	return run(t.Context(), w.Env)
}

func (w *world) Open(name string) (fs.File, error) {
	text, ok := w.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{Reader: strings.NewReader(text)}, nil
}

func (w *world) Write(name string, write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	w.files[name] = b.String()
	return nil
}

func (w *world) WritePrivate(name string, write func(io.Writer) error) error {
	return w.Write(name, write)
}

func (*world) Writable(string) error { return nil }

type memoryFile struct{ *strings.Reader }

func (*memoryFile) Stat() (fs.FileInfo, error) { return nil, errors.New("not asked for") }
func (*memoryFile) Close() error               { return nil }

const contested = `
version: 1
name: contested
nodes: [{id: n1, capacity: {cpu: 1000}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 800}}]}
  - {id: high, priority: 90, groups: [{name: g, resources: {cpu: 800}}]}
running: [{id: a, job: low, group: g, node: n1, startedAt: -1h}]
events: [{at: 1s, submit: high}]
until: 1m
`

func TestRun_EmphasisOnTerminalsAlone(t *testing.T) {
	for _, tc := range []struct {
		name     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"terminal", true, nil, true},
		{"file", false, nil, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"dumb", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(map[string]string{"s.yaml": contested}, "sim", "run", "s.yaml")
			w.StdoutTerminal, w.variables = tc.terminal, tc.env
			if code := w.run(t); code != ExitOK {
				t.Fatalf("exit %d: %s", code, &w.err)
			}
			if got := strings.Contains(w.out.String(), "\x1b["); got != tc.want {
				t.Errorf("emphasised: %v\n%s", got, &w.out)
			}
		})
	}
}

func TestRun_InterruptedIsExit130(t *testing.T) {
	for _, args := range [][]string{
		{"sim", "run", "s.yaml"},
		{"compare", "s.yaml", "-p", "default", "-p", "nomad"},
	} {
		w := newWorld(map[string]string{"s.yaml": contested}, args...)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if code := run(ctx, w.Env); code != ExitInterrupted || w.out.Len() > 0 {
			t.Errorf("%v: exit %d, printed %q", args, code, &w.out)
		}
		if got := w.err.String(); got != "error: interrupted\n" {
			t.Errorf("%v: said %q", args, got)
		}
	}
}

func TestOS_WriteIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := OS{}.Write(name, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if text, _ := os.ReadFile(name); !errors.Is(err, broken) || string(text) != "before" {
		t.Errorf("after a failure (%v) the file holds %q", err, text)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	after := func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }
	if err := (OS{}).Write(link, after); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if text, _ := os.ReadFile(name); err != nil || string(text) != "after" || info.Mode().Perm() != 0o600 {
		t.Errorf("through a link the file holds %q with mode %v", text, info.Mode())
	}
	if err := (OS{}).Write("/dev/null", after); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWantsJSON_HoweverItIsSaid(t *testing.T) {
	for _, tc := range []struct {
		args     string
		variable string
		want     bool
	}{
		{"sim run -o json x", "", true},
		{"sim run --output json x", "", true},
		{"sim run --output=json x", "", true},
		{"sim run -ojson x", "", true},
		{"sim run -o=json x", "", true},
		{"sim run x", "json", true},
		{"sim run x -o yaml", "json", false},
		{"sim run x -- -o json", "", false},
		{"sim run -o", "", false},
		{"sim run x", "", false},
	} {
		if got := wantsJSON(strings.Fields(tc.args), func(string) string { return tc.variable }); got != tc.want {
			t.Errorf("%q with %q: %v", tc.args, tc.variable, got)
		}
	}
}

func TestGraver_WhatSaysMostWins(t *testing.T) {
	order := []Exit{ExitInterrupted, ExitUsage, ExitPolicy, ExitError, ExitCheck, ExitOK}
	for i, a := range order {
		for _, b := range order[i:] {
			if graver(a, b) != a || graver(b, a) != a {
				t.Errorf("of %d and %d: %d and %d", a, b, graver(a, b), graver(b, a))
			}
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := wrap("one two three", 9, "  "); got != "  one two\n  three" {
		t.Errorf("wrapped as %q", got)
	}
	if got := oneOf([]string{"a", "b", "c"}); got != "a, b or c" {
		t.Errorf("said as %q", got)
	}
}

func scenarioOf(t *testing.T, text string) *scenario.File {
	t.Helper()
	f, err := scenario.Decode("test", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

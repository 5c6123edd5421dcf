package cli

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runEnv runs the command line of e on the whole command tree.
func runEnv(t *testing.T, e *clitest.Env) cmdutil.Exit {
	t.Helper()
	return cmdutil.Run(t.Context(), e.Env, newRootCmd)
}

func TestRun_EmphasisOnTerminalsOnly(t *testing.T) {
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
			w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "sim", "run", "s.yaml")
			w.StdoutTerminal, w.Variables = tc.terminal, tc.env
			if code := runEnv(t, w); code != cmdutil.ExitOK {
				t.Fatalf("exit %d: %s", code, &w.Err)
			}
			if got := strings.Contains(w.Out.String(), "\x1b["); got != tc.want {
				t.Errorf("emphasised: %v\n%s", got, &w.Out)
			}
		})
	}
}

func TestRun_InterruptedIsExit130(t *testing.T) {
	for _, args := range [][]string{
		{"sim", "run", "s.yaml"},
		{"compare", "s.yaml", "-p", "default", "-p", "nomad"},
	} {
		w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, args...)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if code := cmdutil.Run(ctx, w.Env, newRootCmd); code != cmdutil.ExitInterrupted || w.Out.Len() > 0 {
			t.Errorf("%v: exit %d, printed %q", args, code, &w.Out)
		}
		if got := w.Err.String(); got != "error: interrupted\n" {
			t.Errorf("%v: stderr is %q", args, got)
		}
	}
}

// An interrupt keeps the tables of the files that were played, and names the others.
func TestSimRun_InterruptKeepsFinishedFiles(t *testing.T) {
	named := func(name string) string {
		return strings.Replace(clitest.Contested, "name: contested", "name: "+name, 1)
	}
	w := clitest.New(map[string]string{"a.yaml": named("a"), "b.yaml": named("b"), "c.yaml": named("c")},
		"sim", "run", "a.yaml", "b.yaml", "c.yaml", "--output-dir", "data")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Stdout = writerFunc(func(p []byte) (int, error) { // the result of the first file
		cancel()
		return w.Out.Write(p)
	})
	if code := cmdutil.Run(ctx, w.Env, newRootCmd); code != cmdutil.ExitInterrupted {
		t.Fatalf("exit %d: %s", code, &w.Err)
	}
	if table := w.Files["data/metrics.csv"]; !strings.Contains(table, "\n") {
		t.Errorf("table of the finished file: %q\n%s", table, &w.Err)
	}
	if got := w.Err.String(); !strings.Contains(got, "to play the others: cede sim run b.yaml c.yaml, with the same flags and another --output-dir") {
		t.Errorf("stderr: %s", got)
	}
}

// Tables identify runs by scenario, policy and seed: a second run with the same ones is refused.
func TestSimRun_TablesHaveDistinctRuns(t *testing.T) {
	w := clitest.New(map[string]string{"a.yaml": clitest.Contested, "b.yaml": clitest.Contested}, "sim", "run", "a.yaml", "b.yaml", "--output-dir", "data")
	if code := cmdutil.Run(t.Context(), w.Env, newRootCmd); code != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "cannot run b.yaml: --output-dir: scenario ") ||
		!strings.Contains(w.Err.String(), "is played twice") {
		t.Errorf("exit %d: %s", code, &w.Err)
	}
	if seeds := strings.Count(w.Files["data/metrics.csv"], ",goodput,"); seeds != 1 {
		t.Errorf("the tables have %d rows of goodput:\n%s", seeds, w.Files["data/metrics.csv"])
	}
}

// writerFunc is a function as a writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

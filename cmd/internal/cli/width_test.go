package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// widest is the number of columns of a word from which its line may be wider than the terminal:
// a path, a digest or an expression is not broken.
const widest = term.DefaultWidth - 24

// notPlayed lists the commands without a server that the test of widths does not run, with the
// reason.
var notPlayed = map[string]string{
	"cede agent": "it runs until it is stopped", "cede completion": "it prints a script", "cede config show": "its output is YAML",
	"cede schema": "its output is JSON", "cede config validate": "its input is a configuration", "cede sim replay": "its input is a recording", "cede kubernetes": "it runs until it is stopped", "cede help": "topics are printed below",
	"cede kubectl compare": "its input is a cluster", "cede kubectl next": "its input is a cluster",
	"cede kubectl what-if": "its input is a cluster", "cede kubectl why": "its input is a cluster",
	"cede operator doctor": "its input is a data directory", "cede operator raft recover": "its input is a data directory",
	"cede operator snapshot inspect": "its input is a snapshot", "cede policy init": "it writes a folder",
	"cede policy sign": "its input is a key", "cede policy verify": "its input is a signature", "cede policy debug": "its input is a recording",
	"cede policy tune": "it takes long", "cede sim calibrate": "its input is a timeline", "cede sim import": "its input is a trace",
	"cede sim step": "it reads requests", "cede policy build": "it requires a compiler", "cede policy bench": "its times differ",
	"cede job init": "its output is a file", "cede sim generate": "its output is a file", "cede decision verify": "its input is a certificate",
}

// The help of every command, every topic, and the results of the commands that need no server fit
// a terminal of 80 columns.
func TestOutputs_FitTerminal(t *testing.T) {
	t.Parallel()
	lines := [][]string{{"version"}, {"job", "validate", "job.yaml"}}
	for _, name := range topics() {
		lines = append(lines, []string{"help", name})
	}
	for _, name := range builtin.Names() {
		lines = append(lines, []string{"policy", "inspect", name}, []string{"policy", "test", name, "--runs", "5"})
	}
	files := map[string]string{"s.yaml": clitest.Contested, "job.yaml": inputFiles["job.yaml"]}
	for _, name := range scenarioFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
		lines = append(lines, []string{"sim", "run", name, "--explain", "--what-if"}, []string{"compare", name, "-p", "default", "-p", "least-waste"})
	}
	played := map[string]bool{}
	for _, cmd := range commandsBelow(newRootCmd(clitest.New(nil).Env)) {
		path := strings.Fields(cmd.CommandPath())[1:]
		lines = append(lines, append(slices.Clone(path), "--help"))
		isRun := slices.ContainsFunc(lines, func(line []string) bool {
			return len(line) > len(path) && slices.Equal(line[:len(path)], path) && !slices.Contains(line, "--help") || slices.Equal(line, path)
		})
		if cmd.RunE != nil && !cmd.HasSubCommands() && cmd.Flags().Lookup("addr") == nil && !isRun && notPlayed[cmd.CommandPath()] == "" {
			t.Errorf("%s needs no server: run it here, or state why not", cmd.CommandPath())
		}
	}
	for _, line := range lines {
		e := clitest.New(files, line...)
		e.StdoutTerminal, e.Width = true, func(io.Writer) int { return term.DefaultWidth }
		e.Variables["NO_COLOR"] = "1"
		code := cmdutil.Run(t.Context(), e.Env, newRootCmd)
		if e.Out.Len() > 0 {
			played[line[0]] = true
		}
		if code != cmdutil.ExitOK && code != cmdutil.ExitCheck && code != cmdutil.ExitError {
			t.Errorf("cede %s: exit %d\n%s", strings.Join(line, " "), code, e.Err.String())
		}
		examples := false
		for text := range strings.SplitSeq(e.Out.String(), "\n") {
			examples = text == "Examples:" || examples && text != ""
			if term.Columns(text) > term.DefaultWidth && !examples && !term.IsCommand(text) && !slices.ContainsFunc(strings.Fields(text), func(w string) bool { return term.Columns(w) > widest }) {
				t.Errorf("cede %s: %d columns: %s", strings.Join(line, " "), term.Columns(text), text)
			}
		}
	}
	for _, name := range []string{"sim", "compare", "policy", "help", "version"} {
		if !played[name] {
			t.Errorf("cede %s printed nothing", name)
		}
	}
}

// JSON is the same on a terminal, and so are tables whose columns scripts read.
func TestOutputs_FoldOnlyText(t *testing.T) {
	t.Parallel()
	for _, format := range [][]string{{"-o", "json"}, {"-o", "yaml"}, {"-o", "wide"}, {"--no-headers"}} {
		var outputs [2]bytes.Buffer
		for i := range outputs {
			e := clitest.New(nil, append([]string{"policy", "inspect", "optimal"}, format...)...)
			e.StdoutTerminal, e.Width = i == 1, func(io.Writer) int { return 40 }
			e.Variables["NO_COLOR"] = "1"
			if code := cmdutil.Run(t.Context(), e.Env, newRootCmd); code != cmdutil.ExitOK {
				t.Fatalf("exit %d: %s", code, e.Err.String())
			}
			outputs[i] = e.Out
		}
		if outputs[0].String() != outputs[1].String() {
			t.Errorf("%v: a terminal changes the output to\n%s", format, outputs[1].String())
		}
	}
}

// scenarioFiles returns the scenarios of the examples and some of the simulator's tests.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*", "scenario.yaml"))
	if err != nil || len(examples) < 10 {
		t.Fatalf("%d examples: %v", len(examples), err)
	}
	tests, err := filepath.Glob(filepath.Join(root, "core", "sim", "testdata", "kubernetes", "*-*.yaml"))
	if err != nil || len(tests) < 10 {
		t.Fatalf("%d scenarios of tests: %v", len(tests), err)
	}
	return append(examples, tests[:10]...)
}

// commandsBelow returns a command and all below it.
func commandsBelow(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		list = append(list, commandsBelow(sub)...)
	}
	return list
}

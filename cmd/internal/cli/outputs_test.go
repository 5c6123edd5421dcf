package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// inputFiles are the inputs of the commands below.
var inputFiles = map[string]string{
	"s.yaml":          clitest.Contested + "policies: [{name: mine, use: ./pol}]\n",
	"timeline.csv":    "at_s,kind,alloc\n",
	"settings.yaml":   "{}\n",
	"spec.yaml":       "{}\n",
	"job.yaml":        "id: j\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]\n",
	"dump.json":       "{}\n",
	"cede.log":        "a line\n",
	"mod.wasm":        "not a module\n",
	"pol/policy.yaml": "version: 1\nname: pol\nkind: wasm\nmodule: pol.wasm\nabi: {min: '1.0'}\nbuild: {lang: go, source: .}\n",
	"pol/pol.wasm":    "not a module\n",
	"pol/main.go":     "package main\n",
}

// ofPolicies are the inputs of commands with the policies of playing below.
var ofPolicies = []string{"s.yaml", "./s.yaml", "settings.yaml", "mod.wasm", "pol/policy.yaml", "pol/pol.wasm", "pol/main.go"}

const playing = " -p mod.wasm --config mod.wasm=settings.yaml"

// outputs has every flag of every command with a file that it writes: the command line without
// the flag, and the inputs; or why there are none.
var outputs = map[string]struct {
	line   string
	inputs []string
	why    string
}{
	"cede compare --html":               {line: "compare s.yaml -p default" + playing, inputs: ofPolicies},
	"cede compare --policy-log":         {line: "compare s.yaml -p default" + playing + " --what-if job.yaml", inputs: append(slices.Clip(ofPolicies), "job.yaml")},
	"cede compare --output-dir":         {why: "it refuses every existing table"},
	"cede decision export --write":      {why: "its input is a server"},
	"cede decision key --write":         {why: "its input is a server"},
	"cede kubectl compare --policy-log": {why: "its input is a cluster, and compare.Live checks the policies"},
	"cede kubectl next --policy-log":    {why: "its input is a cluster, and compare.Live checks the policies"},
	"cede kubectl what-if --policy-log": {why: "it requires a cluster, and compare.Live checks the manifest and the policies"},
	"cede kubectl why --policy-log":     {why: "its input is a cluster, and compare.Live checks the policies"},
	"cede operator debug --write":       {line: "operator debug --log cede.log", inputs: []string{"cede.log"}},
	"cede policy fetch --write":         {why: "its input is a server"},
	"cede policy sign --new-key":        {why: "it refuses every existing file"},
	"cede policy test --write":          {why: "its names depend on the policy; cmd/cede/testdata/script/policy_build.txtar"},
	"cede policy tune --html":           {line: "policy tune mod.wasm --on s.yaml --objective 'victims' -w tuned --baseline ./pol", inputs: []string{"s.yaml", "mod.wasm", "pol/policy.yaml"}},
	"cede policy tune --policy-log":     {line: "policy tune mod.wasm --on s.yaml --objective 'victims' -w tuned --baseline ./pol", inputs: []string{"s.yaml", "mod.wasm", "pol/policy.yaml"}},
	"cede policy tune --write":          {why: "it refuses every folder that is not empty"},
	"cede sim calibrate --policy-log":   {line: "sim calibrate s.yaml timeline.csv" + playing, inputs: append(slices.Clip(ofPolicies), "timeline.csv")},
	"cede sim calibrate --write":        {line: "sim calibrate s.yaml timeline.csv" + playing, inputs: append(slices.Clip(ofPolicies), "timeline.csv")},
	"cede sim generate --write":         {line: "sim generate spec.yaml", inputs: []string{"spec.yaml"}},
	"cede sim import --write":           {line: "sim import kube dump.json", inputs: []string{"dump.json"}},
	"cede sim record --write":           {why: "its input is a server"},
	"cede sim replay --policy-log":      {line: "sim replay s.yaml" + playing, inputs: ofPolicies},
	"cede sim run --output-dir":         {why: "it refuses every existing table"},
	"cede sim run --policy-log":         {line: "sim run s.yaml" + playing, inputs: ofPolicies},
	"cede sim step --policy-log":        {line: "sim step s.yaml" + playing, inputs: ofPolicies},
}

// outputFlags lists the flags of all commands that name an output.
func outputFlags(cmd *cobra.Command) (list []string) {
	for _, name := range []string{"write", "html", "policy-log", "output-dir", "new-key"} {
		if cmd.Flags().Lookup(name) != nil {
			list = append(list, cmd.CommandPath()+" --"+name)
		}
	}
	for _, sub := range cmd.Commands() {
		list = append(list, outputFlags(sub)...)
	}
	return list
}

// No output replaces an input: a scenario, a manifest, a module or a source of a policy that the
// command line or the scenario names, settings, or another file that the command reads.
func TestCommands_ReplaceNoInput(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("pol", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range inputFiles {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := outputFlags(newRootCmd(clitest.New(nil).Env))
	for _, flag := range flags {
		if _, known := outputs[flag]; !known {
			t.Errorf("%s has no entry", flag)
		}
	}
	for flag, o := range outputs {
		if !slices.Contains(flags, flag) {
			t.Errorf("%s does not exist", flag)
		}
		for _, input := range o.inputs {
			_, name, _ := strings.Cut(flag, " --")
			args := append(strings.Fields(strings.ReplaceAll(o.line, "'", "")), "--"+name, input)
			w := clitest.New(nil, args...)
			w.Env.Files = cmdutil.OS{}
			if code := runEnv(t, w); code != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), input+" is an input of this command; use another name") &&
				!strings.Contains(w.Err.String(), input+" is an input of this command\n") {
				t.Errorf("%v: exit %d, stderr %s", args, code, &w.Err)
			}
			if text, err := os.ReadFile(filepath.Clean(input)); err != nil || string(text) != inputFiles[filepath.ToSlash(filepath.Clean(input))] {
				t.Errorf("%v: %s has changed: %v", args, input, err)
			}
		}
	}
}

// Two outputs of one command are two files.
func TestCompare_OutputsAreDifferentFiles(t *testing.T) {
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "compare", "s.yaml", "-p", "default", "-p", "nomad", "--html", "x", "--policy-log", "./x")
	if code := runEnv(t, w); code != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "--html and --policy-log write the same file ./x") {
		t.Errorf("exit %d, stderr %s", code, &w.Err)
	}
}

// A flag that is not set names no file: the current folder is refused for itself.
func TestCompare_CurrentFolderIsNoFileOfAnUnsetFlag(t *testing.T) {
	for _, flag := range []string{"--html", "--policy-log"} {
		w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "compare", "s.yaml", "-p", "default", "-p", "nomad", flag, ".")
		t.Chdir(t.TempDir())
		if err := os.WriteFile("s.yaml", []byte(clitest.Contested), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Env.Files = cmdutil.OS{}
		if code := runEnv(t, w); code == cmdutil.ExitOK || strings.Contains(w.Err.String(), "write the same file") || !strings.Contains(w.Err.String(), "is a directory") {
			t.Errorf("%s: exit %d, stderr %s", flag, code, &w.Err)
		}
	}
}

// Every problem of a command line is reported at once, before anything is played.
func TestCommands_ReportAllProblemsAtOnce(t *testing.T) {
	for _, tc := range []struct {
		line string
		want []string
	}{
		{"compare missing.yaml s.yaml bad.yaml -p default -p nomda --seeds 0 --on-fault x --grant y --fail-if nothing --fail-if ( --html s.yaml -o xml --bound-steps 4", []string{
			"missing.yaml: no such file; check the path", "bad.yaml:1: nodse: unknown field", "nomda", "--seeds must be at least 1", `invalid --on-fault "x"; use deny or default`,
			`invalid --grant "y"`, "--fail-if: ", "--html s.yaml is an input of this command", `invalid output format -o "xml"`, "--bound-steps requires --bound; add --bound",
		}},
		{"compare missing.yaml s.yaml -p default --what-if gone.yaml --seeds 3 --resume", []string{
			"missing.yaml: no such file", "--what-if requires one scenario file: 2 given", "--seeds cannot be combined with --what-if", "--resume cannot be combined",
		}},
		{"compare s.yaml -p default --what-if gone.yaml --seeds 3", []string{"gone.yaml: no such file", "--seeds cannot be combined"}},
		{"compare contended missing.yaml nowhere.yaml -p default -p nomda --draws 2", []string{`unknown policy "nomda"`, `no file or preset "missing.yaml"`, `no file or preset "nowhere.yaml"`}},
		{"sim run missing.yaml s.yaml bad.yaml -p nomda -p default --on-fault x -o xml --policy-log s.yaml", []string{
			"missing.yaml: no such file", "bad.yaml:1: nodse: unknown field", "nomda", "-p can be used only once", "--on-fault", "xml", "--policy-log s.yaml is an input",
		}},
		{"sim replay s.yaml -p nomda --on-fault x", []string{"s.yaml is not a recording", "nomda", "--on-fault"}},
		{"sim replay missing.yaml --on-fault x", []string{"missing.yaml: no such file", "--on-fault"}},
		{"sim calibrate missing.yaml gone.csv --on-fault x -w gone/dir/x.yaml", []string{"missing.yaml: no such file", "gone.csv: no such file", "--on-fault"}},
		{"sim import galaxy gone --band x --band y --never-ran z --max-size 0 --keep 2 --nodes -1 --limit 0", []string{
			`unknown trace format "galaxy"`, "gone: no such file", `invalid --band "x"`, `invalid --band "y"`, `invalid --never-ran "z"`, `invalid --max-size "0"`, "keep 2: expected",
			"nodes -1: expected", "keep and nodes are mutually exclusive", "--limit must be positive, not 0", "-w is required; add -w FILE",
		}},
	} {
		w := clitest.New(map[string]string{"s.yaml": clitest.Contested, "bad.yaml": "nodse: []\n"}, strings.Fields(tc.line)...)
		code := runEnv(t, w)
		if code != cmdutil.ExitUsage || w.Out.Len() > 0 || !strings.Contains(w.Err.String(), "error: the command line has ") {
			t.Errorf("%s: exit %d, stdout %s, stderr %s", tc.line, code, &w.Out, &w.Err)
		}
		for _, want := range tc.want {
			if !strings.Contains(w.Err.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", tc.line, want, &w.Err)
			}
		}
	}
}

// Files that can be read are played although others cannot, which are reported first.
func TestSimRun_PlaysFilesThatCanBeRead(t *testing.T) {
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "sim", "run", "s.yaml", "missing.yaml", "gone.yaml", "-o", "name")
	if code := runEnv(t, w); code != cmdutil.ExitUsage || w.Out.String() != "contested\n" {
		t.Errorf("exit %d, stdout %s", code, &w.Out)
	}
	if first, rest, _ := strings.Cut(w.Err.String(), "gone.yaml"); !strings.Contains(first, "missing.yaml: no such file") || rest == "" {
		t.Errorf("stderr %s", &w.Err)
	}
}

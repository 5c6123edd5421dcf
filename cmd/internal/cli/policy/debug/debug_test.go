package debug_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policy/debug"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

const root = "../../../../../"

// run runs cede debug with the files of the disk.
func run(stdin string, args ...string) (*clitest.Env, cmdutil.Exit) {
	w := clitest.New(nil, append([]string{"debug"}, args...)...)
	w.Env.Files, w.Stdin = cmdutil.OS{}, strings.NewReader(stdin)
	exit := cmdutil.Run(context.Background(), w.Env, func(env *cmdutil.Env) *cobra.Command {
		top := &cobra.Command{Use: "cede", SilenceErrors: true, SilenceUsage: true}
		top.AddCommand(debug.NewCommand(env))
		top.SetArgs(env.Args)
		return top
	})
	return w, exit
}

// shows fails the test unless a command succeeds and prints all texts.
func shows(t *testing.T, stdin string, args []string, wants ...string) *clitest.Env {
	t.Helper()
	w, exit := run(stdin, args...)
	if exit != cmdutil.ExitOK {
		t.Errorf("%v: exit %d:\n%s", args, exit, &w.Err)
	}
	for _, want := range wants {
		if !strings.Contains(w.Out.String(), want) {
			t.Errorf("%v: %q is missing in\n%s", args, want, &w.Out)
		}
	}
	return w
}

const golden = `preemptor 100 cpu=4
node n1 cpu=0
  young 10 cpu=4 age=1m
  old 10 cpu=4 age=3h
node n2 cpu=0
  other 10 cpu=4 age=10m
---
n1: young
n2: other
choose n1
`

func goldenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.txt")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDebug_ShowsGoldenCase(t *testing.T) {
	t.Parallel()
	file := goldenFile(t, golden)
	w := shows(t, "", []string{file, "-p", "least-waste"},
		"golden case", "SelectVictims of least-waste", "ScoreOptions of least-waste", "young", "3h0m0s", "n1: young", "choose n1", "runner-up: n2")
	if strings.Contains(w.Out.String(), "Differences") {
		t.Errorf("the decision differs:\n%s", &w.Out)
	}
	shows(t, "", []string{file, "-p", "protect"}, "PriorityDelta of protect", "never", "SelectVictims of default", "Differences", `want "n1: young", got "n1: old"`)
	w = shows(t, "", []string{file, "-p", "least-waste", "--candidate", "old"}, "old")
	if strings.Contains(w.Out.String(), "young   ") {
		t.Errorf("another candidate is shown:\n%s", &w.Out)
	}
	w = shows(t, "", []string{file, "-p", "least-waste", "-o", "json"})
	var d struct {
		Calls []struct {
			Hook       string
			Candidates []struct {
				Name   string
				Picked int
			}
		}
		RunnerUp string
	}
	if err := json.Unmarshal(w.Out.Bytes(), &d); err != nil || len(d.Calls) < 2 || d.RunnerUp != "n2" || d.Calls[0].Candidates[0].Name == "" {
		t.Errorf("%v: %+v", err, d)
	}
}

func TestDebug_ShowsBindingCase(t *testing.T) {
	t.Parallel()
	shows(t, "", []string{root + "policies/karmada/cases/proposal.txt", "-p", "karmada"}, "PreemptBindings of karmada", "TIERS", "PICKED")
}

func TestDebug_StepsThroughCandidates(t *testing.T) {
	t.Parallel()
	file := goldenFile(t, golden)
	w := shows(t, "\np\nx\nn\nq\n", []string{file, "-p", "least-waste", "--step"}, "candidate 1 of 3", "candidate 2 of 3", `unknown key "x"`, "other on n2", "choose n1")
	if n := strings.Count(w.Out.String(), "candidate 1 of 3"); n != 3 { // at first, after p, and after the unknown key
		t.Errorf("the first candidate is shown %d times:\n%s", n, &w.Out)
	}
	shows(t, "", []string{file, "-p", "least-waste", "--step"}, "candidate 1 of 3", "choose n1") // the input ends
}

func TestDebug_ShowsRecording(t *testing.T) {
	t.Parallel()
	file := root + "examples/lost-work/scenario.yaml"
	w := shows(t, "", []string{file, "-p", "least-waste", "--list", "-o", "json"})
	var list []struct {
		Number  int
		Evicted []string
	}
	if err := json.Unmarshal(w.Out.Bytes(), &list); err != nil || len(list) == 0 || len(list[0].Evicted) == 0 {
		t.Fatalf("%v: %s", err, &w.Out)
	}
	shows(t, "", []string{file, "-p", "least-waste"}, "recording, decision 1", "SelectVictims of least-waste", "was chosen of", "runner-up")
	shows(t, "", []string{file, "-p", "least-waste", "--alloc", list[0].Evicted[0]}, "decision 1")
	for _, args := range [][]string{{"--decision", "99"}, {"--alloc", "none"}} {
		if w, exit := run("", append([]string{file, "-p", "least-waste"}, args...)...); exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), "evaluation") {
			t.Errorf("%v: exit %d:\n%s", args, exit, &w.Err)
		}
	}
	shows(t, "", []string{root + "examples/binding-sizes/scenario.yaml", "-p", "karmada"}, "PreemptBindings of karmada", "PICKED")
}

// certify writes a certificate of the calls of a policy about a case.
func certify(t *testing.T, text, use string, change func(*certificate.Document)) string {
	t.Helper()
	loader := policies.New(policies.Options{})
	defer func() { _ = loader.Close() }()
	p, err := loader.Open(t.Context(), policies.Request{PolicySpec: sim.PolicySpec{Name: use, Use: use}})
	if err != nil {
		t.Fatal(err)
	}
	p.AddRef()
	defer p.ReleaseRef()
	log := &certificate.Log{}
	v, err := p.Copy(log.Record)
	if err != nil {
		t.Fatal(err)
	}
	trial := policies.NewTrial(&policies.Policy{Version: v, Limits: p.Limits})
	defer trial.Close()
	subject, err := trial.Subject()
	if err != nil {
		t.Fatal(err)
	}
	c, err := policytest.ParseGolden(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := subject.Decide(c.Case); err != nil {
		t.Fatal(err)
	}
	_, calls, _ := log.Take()
	d := &certificate.Document{
		Version: certificate.Version, ABI: certificate.ABIVersion, Calls: calls,
		Policies: []certificate.Policy{{Name: use, Version: p.ID, Digest: p.Digest, Kind: model.PolicyBuiltin, Config: p.Config()}},
		Decision: json.RawMessage(`{"Why":{"Text":["n1 was chosen of 2 options."]}}`),
	}
	if change != nil {
		change(d)
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	b, err := certificate.Write(d, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.cert")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A gate that permits no eviction is the decision to look at.
func TestDebug_ShowsEvaluationThatEvictsNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "quiet.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
name: quiet
nodes: [{id: n1, capacity: {cpu: 1000, memory: 1000}}]
jobs:
  - {id: low, priority: 10, groups: [{name: a, resources: {cpu: 900, memory: 100}}]}
  - {id: big, priority: 90, groups: [{name: g, resources: {cpu: 700, memory: 700}}]}
events: [{at: 0s, submit: low}, {at: 1s, submit: big}]
until: 1m
`), 0o666); err != nil {
		t.Fatal(err)
	}
	gate := []string{file, "-p", "rules: eligible: victim.priority < 5", "--all"}
	shows(t, "", gate, "decision 1 at 1s for default/big", "PriorityDelta of rules", "never", "default/big: nothing is evicted")
	shows(t, "", append(slices.Clip(gate), "--list"), "default/big  none    none")
}

func TestDebug_ShowsCertificate(t *testing.T) {
	t.Parallel()
	w := shows(t, "", []string{certify(t, golden, "least-waste", nil)}, "certificate", "SelectVictims of least-waste", "SCORE", "n1 was chosen of 2 options.")
	if strings.Contains(w.Out.String(), "made again") {
		t.Errorf("the calls have other answers:\n%s", &w.Out)
	}
	binding, err := os.ReadFile(root + "policies/karmada/cases/proposal.txt")
	if err != nil {
		t.Fatal(err)
	}
	shows(t, "", []string{certify(t, string(binding), "karmada", nil)}, "PreemptBindings of karmada", "PICKED")
}

// A guest that traps is shown with function, file and line, and its input.
func TestDebug_ShowsTrapWithFileAndLine(t *testing.T) {
	t.Parallel()
	w, exit := run("", goldenFile(t, golden), "-p", root+"plugins/wasm/testdata/trap/v5.wasm")
	if exit != cmdutil.ExitPolicy {
		t.Fatalf("exit %d:\n%s%s", exit, &w.Out, &w.Err)
	}
	for _, want := range []string{"ScoreVictims of ", "the call failed without an answer", "Fault", "integer divide by zero in pick (pick.h:", "policy.c:", "young"} {
		if !strings.Contains(w.Out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &w.Out)
		}
	}
}

// Hostile files get one error.
func TestDebug_RejectsHostileFiles(t *testing.T) {
	t.Parallel()
	valid, err := os.ReadFile(certify(t, golden, "least-waste", nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, text string
		args       []string
		want       string
	}{
		"truncated certificate": {"r.cert", string(valid[:len(valid)/2]), nil, "not a certificate of a decision, or truncated"},
		"changed certificate":   {"r.cert", string(slices.Concat(valid[:60], []byte{valid[60] ^ 1}, valid[61:])), nil, "signature is not valid"},
		"not a case":            {"c.txt", "preemptor x\n", []string{"-p", "default"}, "c.txt: "},
		"case without policy":   {"c.txt", golden, nil, "is not in the cases of a policy folder"},
		"garbage":               {"g.bin", "\x00\xff\x01", nil, "not a golden case, a recording or a certificate"},
		"other yaml":            {"g.yaml", "a: 1\n", nil, "not a golden case, a recording or a certificate"},
		"bad scenario":          {"g.yaml", "version: 1\nname: g\nnodes: [{id: 3x!}]\n", nil, "g.yaml has"},
		"nothing evicted":       {"g.yaml", "version: 1\nname: g\nnodes: [{id: n1, capacity: {cpu: 1}}]\njobs: []\nevents: []\nuntil: 1s\n", nil, "no evaluation evicts"},
		"policy of certificate": {"r.cert", string(valid), []string{"-p", "default"}, "--policy cannot be used with a certificate"},
		"decision of a case":    {"c.txt", golden, []string{"-p", "default", "--list"}, "cannot be used with a golden case"},
		"unknown node":          {"c.txt", golden, []string{"-p", "default", "--node", "n9"}, `unknown node "n9"`},
		"unknown candidate":     {"c.txt", golden, []string{"-p", "default", "--candidate", "x"}, `unknown candidate "x"`},
		"unknown policy":        {"c.txt", golden, []string{"-p", "defalt"}, "defalt"},
		"decision 0":            {"c.txt", golden, []string{"-p", "default", "--decision", "0"}, "--decision must be at least 1"},
	} {
		path := filepath.Join(t.TempDir(), tc.file)
		if err := os.WriteFile(path, []byte(tc.text), 0o666); err != nil {
			t.Fatal(err)
		}
		w, exit := run("", append([]string{path}, tc.args...)...)
		if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), tc.want) || strings.Count(w.Err.String(), "error:") != 1 {
			t.Errorf("%s: exit %d, want %q in one error:\n%s", name, exit, tc.want, &w.Err)
		}
	}
}

// Calls of a signed certificate may contain anything: decoding them never panics.
func TestDebug_DecodesNoInvalidCall(t *testing.T) {
	t.Parallel()
	var calls []certificate.Call
	certify(t, golden, "least-waste", func(d *certificate.Document) { calls = d.Calls })
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		c := calls[i%len(calls)]
		c.Frame, c.Answer = slices.Clone(c.Frame), slices.Clone(c.Answer)
		for range 1 + r.IntN(4) {
			if r.IntN(2) == 0 {
				c.Frame[r.IntN(len(c.Frame))] = byte(r.IntN(256))
			} else if len(c.Answer) > 0 {
				c.Answer[r.IntN(len(c.Answer))] = byte(r.IntN(256))
			}
		}
		if r.IntN(3) == 0 {
			c.Answer = c.Answer[:r.IntN(len(c.Answer)+1)]
		}
		d, err := c.Decode()
		if err == nil && d.Candidates != nil {
			policytest.CaseOf(d.Candidates)
		}
	}
}

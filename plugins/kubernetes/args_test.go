package kubernetes

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
)

func TestReadArgs_RejectsInvalidValues(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "policy is required",
		`{"policy":"kubernetes","onFault":"wait"}`:                  `invalid onFault "wait"`,
		`{"policy":"kubernetes","minCandidateNodesPercentage":101}`: "between 1 and 100",
		`{"policy":"kubernetes","deadline":"-1s"}`:                  "more than 0",
		`{"policy":"kubernetes","policyConfig":[1]}`:                "policyConfig",
		`{"policy":"protect","policyConfig":{"minRuntime":"10m"}}`:  "",
	} {
		_, err := readArgs(&runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON})
		if got := errorText(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Each built-in policy loads and passes its self-test; a setting that it does not have
// and a file that does not exist are errors.
func TestLoadPolicy_BuiltinsPassSelfTest(t *testing.T) {
	for _, name := range podPolicies() {
		set, err := loadPolicy(t.Context(), &Args{Policy: name}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		set.Close()
	}
	for _, a := range []*Args{{Policy: "kubernetes", PolicyConfig: []byte(`{"none":1}`)}, {Policy: "missing"}, {Policy: "karmada"}, {Policy: "karmada@1"}, {Policy: "./missing.wasm"}} {
		if _, err := loadPolicy(t.Context(), a, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s %s: loaded", a.Policy, a.PolicyConfig)
		}
	}
}

// A module is compiled within the budget of servers, and nothing remains on the disk.
func TestLoadPolicy_CompilesWithinBudget(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	load := func(use string) error {
		set, err := loadPolicy(t.Context(), &Args{Policy: use}, slog.New(slog.DiscardHandler))
		if err == nil {
			set.Close()
		}
		return err
	}
	before := wasmtest.ProcessTime(t)
	if err := load("../../sdk/abi/testdata/guests/decay-c.wasm"); err != nil {
		t.Fatal(err)
	}
	if wasmtest.ProcessTime(t) == before {
		t.Error("no process compiled the module")
	}
	bomb := filepath.Join(t.TempDir(), "bomb.wasm")
	if err := os.WriteFile(bomb, wasmtest.Bombs["indirect_calls"](), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := load(bomb); err == nil || !strings.Contains(err.Error(), "compilation exceeds its budget") {
		t.Errorf("bomb: %v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v remains", err, left)
	}
}

package kubernetes

import (
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
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
	for name := range builtins {
		set, err := loadPolicy(t.Context(), &Args{Policy: name}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		set.Close()
	}
	for _, a := range []*Args{{Policy: "kubernetes", PolicyConfig: []byte(`{"none":1}`)}, {Policy: "missing"}, {Policy: "./missing.wasm"}} {
		if _, err := loadPolicy(t.Context(), a, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s %s: loaded", a.Policy, a.PolicyConfig)
		}
	}
}

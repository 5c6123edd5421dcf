package policytest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var fusedInstruction = regexp.MustCompile(`\bFN?M(ADD|SUB)[DS]\b`)

// NoFusedArithmetic compiles the package in the test's directory for arm64. There the
// compiler fuses x*y+z unless the product is written float64(x*y). The test fails if
// the output contains a fused instruction, because the package could then decide
// differently from its WebAssembly build.
func NoFusedArithmetic(t *testing.T) {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go tool")
	}
	build := exec.Command(tool, "build", "-gcflags=-S", "-o", os.DevNull, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, listing)
	}
	found := 0
	for line := range strings.Lines(string(listing)) {
		if fusedInstruction.MatchString(line) {
			if found++; found <= 10 {
				t.Errorf("fused multiplication and addition: %s", strings.TrimSpace(line))
			}
		}
	}
}

package guesttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The policy in each README builds as described, and all of them answer identically.
func TestReadme_PoliciesAreIdentical(t *testing.T) {
	if soak.Race {
		t.Skip("compilers are slow, and have no races of ours")
	}
	if soak.Quick() {
		t.Skip("compilers are slow, and TestFlags_AreDistinguished builds the policy in C: run without CEDE_QUICK")
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			needs(t, language)
			checkLeastLost(t, made(t, language, source(t, language)))
		})
	}
}

// makers build a policy as the README of a library describes.
var makers = map[string]struct {
	ending string // of a block of code
	build  func(t *testing.T, folder, source string) (module string)
}{
	"c": {"c", buildC}, "rust": {"rust", buildRust}, "assemblyscript": {"ts", buildAssemblyScript},
}

// source returns the policy of a README.
func source(t *testing.T, language string) string { return block(t, language, makers[language].ending) }

// made returns an instance of a policy built from a source.
func made(t *testing.T, language, source string) *guest {
	t.Helper()
	code, err := os.ReadFile(makers[language].build(t, t.TempDir(), source))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, code).start(t)
}

// needs skips a test if a tool is missing.
func needs(t *testing.T, language string) { runGuestScript(t, "-v", language) }

// checkLeastLost checks one row that is still spared, and two that are not.
func checkLeastLost(t *testing.T, g *guest) {
	t.Helper()
	d := g.describe()
	if d.Info.Name != "least-lost" || d.Hooks != abi.HookScoreVictims || !d.Configurable || d.Info.Delta != 10 {
		t.Errorf("described as %+v", d)
	}
	list := []policy.Setting{{Name: "spareFor", Kind: policy.Duration}}
	g.configure(policy.NewConfig(list, []policy.Value{{Name: "spareFor", Kind: policy.Duration, Integer: 100}}))
	in := &policy.Candidates{Now: 1000, Preemptor: &policy.Preemptor{}, FirstRow: []int32{0, 3}}
	in.Rows = policy.Rows{Priority: []int32{1, 1, 1}, Start: []int64{500, 950, 900}, LostWork: []int64{7, 5, 3}}
	var e abi.Encoder
	e.Candidates(abi.OpScoreVictims, in, d.Info.Columns)
	out := policy.VictimScores{Tier: make([]int64, 3), Score: make([]float64, 3)}
	e.VictimScores(g.ask(abi.OpScoreVictims, &e), &out)
	if never := out.Score[1] > 1e300; !never || out.Score[0] != 7 || out.Score[2] != 3 || out.Recheck.Time() != 1050 {
		t.Errorf("answered %+v", out)
	}
}

// block returns a code block of a README.
func block(t *testing.T, library, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../../sdk/" + library + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("the README of sdk/%s has no block of %s", library, language)
	}
	return string(found[1])
}

// lay writes a file in a directory.
func lay(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func sdk(t *testing.T, library string) string {
	t.Helper()
	path, err := filepath.Abs("../../../sdk/" + library)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func buildC(t *testing.T, folder, source string) string {
	header, err := os.ReadFile(sdk(t, "c/cede.h"))
	if err != nil {
		t.Fatal(err)
	}
	lay(t, folder, "cede.h", string(header))
	lay(t, folder, "least-lost.c", source)
	run(t, folder, "sh", "-ec", block(t, "c", "sh"))
	return folder + "/least-lost.wasm"
}

// buildRust uses the distribution's compiler if there is one, as build.sh does.
func buildRust(t *testing.T, folder, source string) string {
	lay(t, folder, "src/lib.rs", source)
	script := strings.ReplaceAll(block(t, "rust", "sh"), "sdk/rust", sdk(t, "rust"))
	if _, err := os.Stat("/usr/bin/rustc"); err == nil {
		script = strings.ReplaceAll(script, "\nrustc", "\n/usr/bin/rustc")
	}
	run(t, folder, "sh", "-ec", script)
	return folder + "/least_lost.wasm"
}

// buildAssemblyScript links the package where npm would install it.
func buildAssemblyScript(t *testing.T, folder, source string) string {
	library := sdk(t, "assemblyscript")
	lay(t, folder, "least-lost.ts", source)
	if err := os.Mkdir(folder+"/node_modules", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(library, folder+"/node_modules/cede-policy"); err != nil {
		t.Fatal(err)
	}
	run(t, folder, library+"/node_modules/.bin/asc", "least-lost.ts", "--config", library+"/asconfig.json", "-o", "least-lost.wasm",
		"--optimizeLevel", "0")
	return folder + "/least-lost.wasm"
}

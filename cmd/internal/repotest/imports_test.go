package repotest

import (
	"slices"
	"strings"
	"testing"
)

// libraries has an entry per third-party library that belongs to one part of
// the house, and must not reach core by way of something else either.
var libraries = []struct {
	path   string
	owners []string
	why    string
}{
	{"github.com/spf13/cobra", []string{"cmd"}, "commands are parsed at the roof; beneath it options are plain structs"},
	{"github.com/tetratelabs/wazero", []string{"plugins", "cmd"}, "core sees policies through core/policy, whatever they are made of"},
	{"github.com/hashicorp/go-plugin", []string{"plugins", "sdk/serve", "policies", "cmd"}, "core sees policies through core/policy, whatever they are made of"},
	{"github.com/hashicorp/memberlist", []string{"gossip", "cmd"}, "core sees membership through an interface of its own"},
	{"go.opentelemetry.io/otel/sdk", []string{"cmd"}, "core begins spans; whether and where they are sent is decided at the roof, and costs nothing where it is not wanted"},
}

func TestImports_EveryPackageHasAFloor(t *testing.T) {
	for _, p := range ours(t) {
		if !hasFloor(p.rel) {
			t.Errorf("%s stands on no floor: add it to the table `house` in cmd/internal/repotest/floors_test.go, on the lowest floor above all that it imports, with the reason why those beneath may not import it", p.rel)
		}
	}
}

func TestImports_PointDownwards(t *testing.T) {
	for _, p := range ours(t) {
		for _, imported := range p.Imports {
			if to, ok := relative(imported); ok {
				if why := checkImport(p.rel, to); why != "" {
					t.Errorf("%s must not import %s: %s", p.rel, to, why)
				}
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if to, ok := relative(imported); ok {
				if why := checkTestImport(p.rel, to); why != "" {
					t.Errorf("tests of %s must not import %s: %s", p.rel, to, why)
				}
			}
		}
	}
}

// What a package reaches through others counts as much as what it names.
func TestImports_SDKIsStandardLibraryOnly(t *testing.T) {
	for _, p := range ours(t) {
		if !within(p.rel, "sdk") || within(p.rel, "sdk/serve") {
			continue
		}
		for _, dep := range strangers(t, p) {
			t.Errorf("%s reaches %s: the SDK is the standard library and itself, so that a guest stays small and its author owes us nothing", p.rel, dep)
		}
	}
}

func TestImports_PoliciesReachNothingButTheSDK(t *testing.T) {
	for _, p := range ours(t) {
		if !within(p.rel, "policies") || p.Name == "main" {
			continue
		}
		for _, dep := range strangers(t, p) {
			t.Errorf("%s reaches %s: a policy's package is linked into cede as it stands; its main alone serves it by sdk/serve", p.rel, dep)
		}
	}
}

// A build with the tag process links go-plugin, by sdk/serve and by nothing else.
func TestImports_ProcessesReachGoPluginBySDKServeAlone(t *testing.T) {
	served := false
	for _, p := range load(t, "GOFLAGS=-tags=process") {
		rel, ok := relative(p.ImportPath)
		if !ok || !within(rel, "sdk") && !within(rel, "policies") {
			continue
		}
		for _, imported := range p.Imports {
			if _, mine := relative(imported); mine || standard(imported) {
				continue
			}
			if !within(rel, "sdk/serve") {
				t.Errorf("%s imports %s: a policy's only way to a process is sdk/serve", rel, imported)
			}
			served = served || imported == "github.com/hashicorp/go-plugin"
		}
	}
	if !served {
		t.Error("nothing imports go-plugin: the check has passed by looking at nothing")
	}
}

// Under Wasm even sdk/serve and the mains of policies are ours alone.
func TestImports_GuestsAreStandardLibraryOnly(t *testing.T) {
	for _, p := range load(t, "GOOS=wasip1", "GOARCH=wasm") {
		rel, ok := relative(p.ImportPath)
		if !ok || (!within(rel, "sdk") && !within(rel, "policies")) || p.Incomplete {
			continue
		}
		for _, dep := range p.Deps {
			if _, mine := relative(dep); !mine && !standard(dep) {
				t.Errorf("%s, built as a Wasm guest, reaches %s: put that import behind a build tag that leaves out wasip1", rel, dep)
			}
		}
	}
}

// A guest is as large as what it links, and these cost a Wasm module megabytes
// or cannot work in one at all.
func TestImports_DecisionCodeReachesNoNetwork(t *testing.T) {
	for _, p := range ours(t) {
		if !slices.ContainsFunc([]string{"sdk/policy", "sdk/rules", "sdk/fmath", "core/model"}, func(dir string) bool { return within(p.rel, dir) }) {
			continue
		}
		for _, dep := range p.Deps {
			if dep == "net" || dep == "net/http" || dep == "os/exec" {
				t.Errorf("%s reaches %s: what decides needs no network and no processes, and a guest pays for each in size", p.rel, dep)
			}
		}
	}
}

func TestImports_LibrariesStayWithTheirOwners(t *testing.T) {
	for _, p := range ours(t) {
		for _, lib := range libraries {
			if slices.ContainsFunc(lib.owners, func(owner string) bool { return within(p.rel, owner) }) {
				continue
			}
			for _, dep := range p.Deps {
				if within(dep, lib.path) {
					t.Errorf("%s reaches %s, which belongs to %s: %s", p.rel, dep, strings.Join(lib.owners, ", "), lib.why)
					break
				}
			}
		}
	}
}

// The rules above are only as good as the table, so it is tried on imports that
// are not in the tree.
func TestImports_RulesOnAnInventedHouse(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     string // part of the reason; empty: allowed
	}{
		{"core/scheduler", "core/model", ""},
		{"core/scheduler", "core/preempt", ""},
		{"core/state", "core/state/internal/cow", ""},
		{"core/broker", "core/internal/heapq", ""},
		{"core/policy", "sdk/policy", ""},
		{"sdk/rules", "sdk/fmath", ""},
		{"policies/nomad", "sdk/rules", ""},
		{"policies/nomad/serve", "policies/nomad", ""},
		{"cmd/cede", "cmd/internal/app", ""},
		{"cmd/internal/cli", "policies/nomad", ""},
		{"plugins/wasm", "core/policy", ""},
		{"core/coretest", "core/server", ""},
		{"gossip/gossiptest", "gossip", ""},
		{"cmd/internal/cli", "sdk/policytest", ""},
		{"examples/aging", "sdk/policy", ""},

		{"core/sim", "plugins/wasm", "core defines the seams"},
		{"core/server", "gossip", "interface of its own"},
		{"core/sim", "policies/nomad", "policies are guests"},
		{"core/sim", "cmd/internal/app", "cannot be embedded"},
		{"core/state", "core/broker", "floor 2"},
		{"core/model", "core/clock", "floor 1"},
		{"core/internal/heapq", "core/model", "floor 0"},
		{"core/preempt", "core/planner", "strangers"},
		{"core/worker", "core/sim/scenario", "unchanged"},
		{"core/sim", "core/server", "second implementation"},
		{"plugins/wasm", "core/scheduler", "one function"},
		{"plugins/registry", "policies/default", "by name"},
		{"policies/nomad", "core/model", "the SDK"},
		{"policies/nomad", "policies/default", "guest by itself"},
		{"sdk/policy", "core/model", "owes us nothing"},
		{"gossip", "core/clock", "nothing of ours"},
		{"core/scheduler", "core/coretest", "for tests"},
		{"core/coretest", "cmd/internal/app", "cannot be embedded"},
		{"examples/aging", "core/sim", "outside this repository"},
		{"cmd/cede", "examples/aging", "never imported"},
	} {
		switch why := checkImport(tc.from, tc.to); {
		case tc.want == "" && why != "":
			t.Errorf("%s may import %s, but: %s", tc.from, tc.to, why)
		case !strings.Contains(why, tc.want):
			t.Errorf("%s imports %s: got reason %q, want one with %q", tc.from, tc.to, why, tc.want)
		case tc.want != "" && why == "":
			t.Errorf("%s must not import %s, but nothing says why", tc.from, tc.to)
		}
	}
	for from, to := range map[string]string{"core/sim": "cmd/internal/cli", "gossip": "core/clock", "sdk/rules": "core/model"} {
		if checkTestImport(from, to) == "" {
			t.Errorf("tests of %s must not import %s", from, to)
		}
	}
	if why := checkTestImport("core/sim", "policies/nomad"); why != "" {
		t.Errorf("tests of core/sim may import policies/nomad, but: %s", why)
	}
	for rel, want := range map[string]bool{"core/model": true, "core/coretest": true, "examples/x": true, "core/util": false, "tools": false} {
		if hasFloor(rel) != want {
			t.Errorf("hasFloor(%s) = %v", rel, !want)
		}
	}
}

// strangers lists what a package reaches outside the standard library and the
// SDK's own code, itself apart.
func strangers(t *testing.T, p listed) []string {
	t.Helper()
	var found []string
	for _, dep := range p.Deps {
		rel, mine := relative(dep)
		if standard(dep) || (mine && within(rel, "sdk") && (!within(rel, "sdk/serve") || within(p.rel, "sdk/serve"))) || (mine && sameHousehold(p.rel, rel)) {
			continue
		}
		found = append(found, dep)
	}
	return found
}

// standard is whether the import path is the standard library's: its first
// element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

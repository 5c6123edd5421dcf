package repotest

import (
	"slices"
	"strings"
	"testing"
)

// libraries lists third-party libraries that belong to one part of the tree. No
// other part may depend on them, directly or through another package.
var libraries = []struct {
	path   string
	owners []string
	why    string
}{
	{"github.com/spf13/cobra", []string{"cmd"}, "commands are parsed in cmd; other packages receive options as plain structs"},
	{"cel.dev/cel-go", []string{"plugins/rules", "cmd"}, "rules are compiled where policies are built; hosts load plain modules"},
	{"github.com/tetratelabs/wazero", []string{"plugins", "cmd"}, "core calls policies through core/policy, independent of their kind"},
	{"github.com/hashicorp/go-plugin", []string{"plugins", "sdk/serve", "policies", "cmd"}, "core calls policies through core/policy, independent of their kind"},
	{"github.com/hashicorp/memberlist", []string{"gossip", "cmd"}, "core sees membership through an interface of its own"},
	{"k8s.io/client-go", []string{"core/kube/watch", "core/kube/apiservertest", "cmd"}, "only the watch of a cluster needs a client of its API server"},
	{"go.opentelemetry.io/otel/sdk", []string{"cmd"}, "core starts spans; cmd decides whether they are exported, and they cost nothing if they are not"},
}

func TestImports_EveryPackageHasALayer(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !hasLayer(p.rel) {
			t.Errorf("%s has no layer: add it to the table `layers` in cmd/internal/repotest/layers_test.go, on the lowest layer above all packages that it imports, with the reason why lower layers may not import it", p.rel)
		}
	}
}

func TestImports_PointDownwards(t *testing.T) {
	for _, p := range modulePackages(t) {
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

// Indirect dependencies count as direct ones.
func TestImports_SDKIsStandardLibraryOnly(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !within(p.rel, "sdk") || within(p.rel, "sdk/serve") {
			continue
		}
		for _, dep := range foreignDeps(t, p) {
			t.Errorf("%s depends on %s: the SDK imports the standard library and itself, so that a guest stays small and its author has no further dependency", p.rel, dep)
		}
	}
}

func TestImports_PoliciesReachOnlyTheSDK(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !within(p.rel, "policies") || p.Name == "main" {
			continue
		}
		for _, dep := range foreignDeps(t, p) {
			t.Errorf("%s depends on %s: a policy's package is linked into cede unchanged; only its main package serves it through sdk/serve", p.rel, dep)
		}
	}
}

// With the build tag process, sdk/serve links go-plugin. No other package may.
func TestImports_OnlySDKServeReachesGoPlugin(t *testing.T) {
	served := false
	for _, p := range load(t, "GOFLAGS=-tags=process") {
		rel, ok := relative(p.ImportPath)
		if !ok || !within(rel, "sdk") && !within(rel, "policies") {
			continue
		}
		for _, imported := range p.Imports {
			if _, mine := relative(imported); mine || isStandard(imported) {
				continue
			}
			if !within(rel, "sdk/serve") {
				t.Errorf("%s imports %s: a policy becomes a process through sdk/serve only", rel, imported)
			}
			served = served || imported == "github.com/hashicorp/go-plugin"
		}
	}
	if !served {
		t.Error("no package imports go-plugin: the check has no subject")
	}
}

// In a Wasm build, sdk/serve and the main packages of policies have no third-party
// dependency either.
func TestImports_GuestsAreStandardLibraryOnly(t *testing.T) {
	for _, p := range load(t, "GOOS=wasip1", "GOARCH=wasm") {
		rel, ok := relative(p.ImportPath)
		if !ok || (!within(rel, "sdk") && !within(rel, "policies")) || p.Incomplete {
			continue
		}
		for _, dep := range p.Deps {
			if _, mine := relative(dep); !mine && !isStandard(dep) {
				t.Errorf("%s, built as a Wasm guest, depends on %s: put that import behind a build tag that excludes wasip1", rel, dep)
			}
		}
	}
}

// Every linked package adds to the size of a guest. These add megabytes to a Wasm
// module or cannot work in one.
func TestImports_DecisionCodeReachesNoNetwork(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !slices.ContainsFunc([]string{"sdk/policy", "sdk/rules", "sdk/fmath", "core/model"}, func(dir string) bool { return within(p.rel, dir) }) {
			continue
		}
		for _, dep := range p.Deps {
			if dep == "net" || dep == "net/http" || dep == "os/exec" {
				t.Errorf("%s depends on %s: decision code needs neither a network nor processes, and each enlarges a guest", p.rel, dep)
			}
		}
	}
}

func TestImports_LibrariesStayWithTheirOwners(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, lib := range libraries {
			if slices.ContainsFunc(lib.owners, func(owner string) bool { return within(p.rel, owner) }) {
				continue
			}
			for _, dep := range p.Deps {
				if within(dep, lib.path) {
					t.Errorf("%s depends on %s, which belongs to %s: %s", p.rel, dep, strings.Join(lib.owners, ", "), lib.why)
					break
				}
			}
		}
	}
}

// Bounds need a search without a limit of time, and judge decisions that were made. A
// server must not link one into the path of a decision.
func TestImports_DecisionCodeReachesNoBounds(t *testing.T) {
	const solver = "core/sim/bound"
	checked := 0
	for _, p := range modulePackages(t) {
		if !slices.ContainsFunc([]string{"core/server", "core/scheduler", "core/preempt", "core/planner", "core/worker", "core/api", "core/agent", "core/kube"}, func(dir string) bool { return within(p.rel, dir) }) {
			continue
		}
		checked++
		for _, dep := range p.Deps {
			if rel, mine := relative(dep); mine && within(rel, solver) {
				t.Errorf("%s depends on %s: bounds judge decisions and take no part in them", p.rel, solver)
			}
		}
	}
	if checked < 8 {
		t.Errorf("%d packages: the check has no subject", checked)
	}
}

// The table is tested on imports that are not in the tree.
func TestImports_RulesOnInventedImports(t *testing.T) {
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

		{"core/sim", "plugins/wasm", "core defines the interfaces"},
		{"core/server", "gossip", "interface of its own"},
		{"core/sim", "policies/nomad", "policies are guests"},
		{"core/sim", "cmd/internal/app", "cannot be embedded"},
		{"core/state", "core/broker", "layer 2"},
		{"core/model", "core/clock", "layer 1"},
		{"core/internal/heapq", "core/model", "layer 0"},
		{"core/preempt", "core/planner", "independent"},
		{"core/worker", "core/sim/scenario", "unchanged"},
		{"core/sim", "core/server", "second implementation"},
		{"core/api", "core/sim/bound", "take no part"},
		{"core/server", "core/sim/bound", "take no part"},
		{"core/scheduler", "core/sim/bound", "take no part"},
		{"plugins/wasm", "core/scheduler", "one function"},
		{"plugins/registry", "policies/default", "by name"},
		{"policies/nomad", "core/model", "the SDK"},
		{"policies/nomad", "policies/default", "independent guest"},
		{"sdk/policy", "core/model", "no further dependency"},
		{"gossip", "core/clock", "no other package"},
		{"core/scheduler", "core/coretest", "for tests"},
		{"core/server", "core/coretest/cluster", "for tests"},
		{"core/coretest/cluster", "core/replication/replicationtest", ""},
		{"core/coretest", "cmd/internal/app", "cannot be embedded"},
		{"examples/aging", "core/sim", "outside this repository"},
		{"cmd/cede", "examples/aging", "not imported"},
	} {
		switch why := checkImport(tc.from, tc.to); {
		case tc.want == "" && why != "":
			t.Errorf("%s may import %s, but: %s", tc.from, tc.to, why)
		case !strings.Contains(why, tc.want):
			t.Errorf("%s imports %s: got reason %q, want one with %q", tc.from, tc.to, why, tc.want)
		case tc.want != "" && why == "":
			t.Errorf("%s must not import %s, but the rules allow it", tc.from, tc.to)
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
		if hasLayer(rel) != want {
			t.Errorf("hasFloor(%s) = %v", rel, !want)
		}
	}
}

// foreignDeps returns the dependencies of a package outside the standard library,
// the SDK and the package's own component.
func foreignDeps(t *testing.T, p listed) []string {
	t.Helper()
	var found []string
	for _, dep := range p.Deps {
		rel, mine := relative(dep)
		if isStandard(dep) || (mine && within(rel, "sdk") && (!within(rel, "sdk/serve") || within(p.rel, "sdk/serve"))) || (mine && sameComponent(p.rel, rel)) {
			continue
		}
		found = append(found, dep)
	}
	return found
}

// isStandard reports whether the import path belongs to the standard library: its
// first element has no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

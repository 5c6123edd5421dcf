package repotest

import (
	"fmt"
	"strings"
)

// A component is a folder with a place in the layers of the tree. A component
// imports only layers strictly below its own.
type component struct {
	path  string // below the module root; it includes the packages beneath
	layer int
	// why names the consequence if a package on the same or a lower layer imported it.
	why string
}

// layers is the table of components, from the top down. The most specific path
// owns a package.
var layers = []component{
	{"cmd", 10, "cmd wires one binary together; a package that imports it cannot be embedded, replayed or tested without that binary"},

	{"core/api", 9, "the API translates requests for the engine; the engine must run without it, as it does in the simulator"},
	{"core/web", 9, "pages show the state of the engine; the engine must not depend on its observers"},
	{"core/tune", 9, "a search plays candidates in the simulator and compares the results; the simulator must run without it"},

	{"core/tune", 9, "a search plays policies through a function; the simulator must not depend on a search"},
	{"core/sim", 8, "the simulator runs the server's own packages unchanged; a package that depends on it could behave differently in it"},
	{"core/server", 8, "the server drives the packages beneath it; they must run without one, or the simulator would be a second implementation"},

	{"core/counterfactual", 7, "counterfactuals make decisions again with the scheduler; it must not depend on its examiner"},

	{"core/lookahead", 6, "a play drives workers on a fork of the state; they run without it, and the scheduler sees it through an interface of its own"},

	{"core/kube/extender", 5, "the extender calls the scheduler and its policies as a worker does; it serves another cluster than the server's own"},
	{"core/worker", 5, "a worker drives the scheduler and submits plans; neither may depend on its driver"},

	{"core/scheduler", 4, "scheduling is one function from an evaluation and a snapshot to a plan; the packages beneath are tested without it"},

	{"builtin", 3, "programs choose the policies that they are linked with; hosts and the engine treat all policies alike"},
	{"plugins", 3, "core defines the interfaces and plugins implement them; cmd connects the two"},
	{"core/preempt", 3, "preemption calls policies and reads the state; a policy host or a table that depends on the caller could return another result"},
	{"core/planner", 3, "the applier verifies the plans of schedulers; verification is worth something only if the two are independent"},
	{"core/certificate", 3, "certificates are verified without a server; a reader must need policies and their frames only"},
	{"core/decision", 3, "records of decisions are derived from plans and the state; a scheduler that read them would depend on its observers"},
	{"core/replication", 3, "replication applies entries to the state; the state must work without replication, as it does in the simulator"},

	{"policies", 2, "policies are guests behind the SDK; builtin lists the native ones, and hosts treat all of them alike"},
	{"core/policy", 2, "the calls to policies are defined apart from the state and the broker; the scheduler combines them"},
	{"core/comparisons", 2, "comparisons are played by a process; the server and the API hold the queue only, and the simulator does not depend on it"},
	{"core/trial", 2, "the statistics of trials are functions of the blocks in the state; the server and the API report the same figures"},
	{"core/broker", 2, "the broker delivers evaluations and makes no decisions; workers drive it through an interface of their own"},
	{"core/state", 2, "the state is written by entries and read through snapshots; it takes no part in decisions"},
	{"core/agent", 2, "an agent runs on a node and reaches servers over the network only"},
	{"core/kube", 2, "Kubernetes objects are translated into the model at the edge; the engine has one vocabulary"},
	{"core/lifetime", 2, "times of ends are computed from allocations; applying them is the caller's task"},
	{"core/jobspec", 2, "job files are translated into the model at the edge; the engine has one vocabulary"},

	{"sdk", 1, "the SDK is imported by authors outside this repository; the lowest layers do not need it"},
	{"gossip", 1, "gossip finds servers and has no other dependency; cmd adapts it to the server's membership interface"},
	{"core/model", 1, "packages of the lowest layer are independent: storage holds bytes, events carry IDs and plain values, clocks tick"},
	{"core/storage", 1, "only replication and the server depend on the layout of the disk"},
	{"core/events", 1, "on the lowest layer an error is returned to the caller, which emits the event"},
	{"core/lease", 1, "the agent of a member cluster owns the leases; pools appear in it by name and number only"},
	{"core/heap", 1, "a process sets its collector when it starts; the engine does not depend on it"},
	{"core/confine", 1, "a process that is confined has no part of the engine beneath its limits"},
	{"core/clock", 1, "packages of the lowest layer do not wait; their callers decide when to call"},
	{"core/acl", 1, "permissions are decided once, where a request arrives"},
	{"core/rpc", 1, "servers call servers; no other package of the lowest layer uses the network"},

	{"core/internal", 0, ""},
	{"core/plainyaml", 0, ""},
	{"core/suggest", 0, ""},
}

// Folders outside the layers.
const (
	testHelpers = "core/coretest" // may import all of core; only tests may import it
	examples    = "examples"      // played by their tests; they import at most the SDK
)

// forbidden lists imports that the layers would allow, or for which they would
// give a weaker reason. The first entry that matches is reported.
var forbidden = []struct{ from, to, why string }{
	{"core", "plugins", "core defines the interfaces; hosts implement them and cmd connects them"},
	{"core", "gossip", "core sees membership through a small interface of its own, so that the simulator needs no network"},
	{"core", "policies", "policies are guests; an engine that depends on one by name could favour it"},
	{"plugins", "policies", "policies are guests; a host that depends on one by name could favour it"},
	{"plugins", "gossip", "only cmd connects servers and their policies"},
	{"gossip", "", "gossip imports no other package of this module; cmd adapts it to the server's membership interface"},
	{"core/api", "core/sim/bound", "bounds judge decisions and take no part in them"},
	{"core/server", "core/sim/bound", "bounds judge decisions and take no part in them"},
	{"core/scheduler", "core/sim/bound", "bounds judge decisions and take no part in them"},
	{"policies", "policies", "each policy is an independent guest; shared code belongs to sdk/rules"},
	{"policies", "core", "a policy has the view of an author outside this repository: the SDK"},
	{"policies", "plugins", "a policy is independent of its host; that makes it portable"},
	{"policies", "gossip", "a policy has the view of an author outside this repository: the SDK"},
	{"sdk", "", "the SDK imports the standard library and itself, so that a guest stays small and its author has no further dependency"},
	{"examples", "core", "the code of an example is written as by an author outside this repository: it imports the SDK"},
	{"examples", "plugins", "the code of an example is written as by an author outside this repository: it imports the SDK"},
	{"examples", "gossip", "the code of an example is written as by an author outside this repository: it imports the SDK"},
	{"examples", "policies", "the code of an example is written as by an author outside this repository: it imports the SDK"},
}

// forbiddenInTests lists imports that test files may not have either. All other
// imports are allowed in tests: a test of the simulator needs the shipped policies.
var forbiddenInTests = []struct{ from, to, why string }{
	{"core", "cmd", "no package imports cmd; the part that a test needs belongs to a package beneath"},
	{"plugins", "cmd", "no package imports cmd; the part that a test needs belongs to a package beneath"},
	{"policies", "cmd", "no package imports cmd; the part that a test needs belongs to a package beneath"},
	{"examples", "cmd", "no package imports cmd; an example is played through core/sim"},
	{"gossip", "", "gossip is tested alone, as it is used"},
	{"sdk", "", "the SDK is copied into other projects, with its tests"},
}

// componentOf returns the component that owns the package at rel, if there is one.
func componentOf(rel string) (component, bool) {
	var best component
	found := false
	for _, c := range layers {
		if within(rel, c.path) && (!found || len(c.path) > len(best.path)) {
			best, found = c, true
		}
	}
	return best, found
}

// within reports whether rel is the package or folder dir, or beneath it.
func within(rel, dir string) bool {
	return dir == "" || rel == dir || strings.HasPrefix(rel, dir+"/")
}

// sameComponent reports whether both packages belong to one component. They may
// then import each other, except that each policy is a component of its own.
func sameComponent(from, to string) bool {
	if within(from, "policies") && within(to, "policies") {
		return policyName(from) == policyName(to)
	}
	if within(from, examples) && within(to, examples) {
		return true
	}
	f, okF := componentOf(from)
	t, okT := componentOf(to)
	return okF && okT && f.path == t.path
}

// policyName returns NAME of policies/NAME/...
func policyName(rel string) string {
	parts := strings.SplitN(rel, "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// isTestHelper reports whether the package exists for tests. The SDK's package for
// tests of policies is part of the product, because cede policy test runs it.
func isTestHelper(rel string) bool {
	return within(rel, testHelpers) || strings.HasSuffix(rel, "test") && !within(rel, "sdk")
}

// checkImport returns the reason why the package at from may not import the one at
// to, both relative to the module, or "" if it may.
func checkImport(from, to string) string {
	if sameComponent(from, to) {
		return ""
	}
	if isTestHelper(to) && !isTestHelper(from) {
		return "it holds builders and faults for tests; only test files may import it"
	}
	for _, f := range forbidden {
		if within(from, f.from) && within(to, f.to) {
			return f.why
		}
	}
	if within(to, examples) {
		return "examples are played and not imported"
	}
	if within(from, examples) || isTestHelper(from) {
		from = "" // above every layer except cmd
	}
	t, ok := componentOf(to)
	if !ok {
		return "" // reported once, as a package without a layer
	}
	if from == "" {
		if t.path == "cmd" {
			return t.why
		}
		return ""
	}
	f, ok := componentOf(from)
	if !ok || t.layer < f.layer {
		return ""
	}
	return fmt.Sprintf("%s is on layer %d and %s on layer %d, and a layer imports only layers below it: %s", f.path, f.layer, t.path, t.layer, t.why)
}

// checkTestImport is checkImport for imports of test files.
func checkTestImport(from, to string) string {
	if sameComponent(from, to) {
		return ""
	}
	for _, f := range forbiddenInTests {
		if within(from, f.from) && within(to, f.to) {
			return f.why
		}
	}
	return ""
}

// hasLayer reports whether the table contains the package.
func hasLayer(rel string) bool {
	_, ok := componentOf(rel)
	return ok || within(rel, testHelpers) || within(rel, examples)
}

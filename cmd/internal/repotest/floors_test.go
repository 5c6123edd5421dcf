package repotest

import (
	"fmt"
	"strings"
)

// component is one thing of the house, and the floor it stands on. A component
// imports floors strictly below its own.
type component struct {
	path  string // below the module root; packages beneath it belong to it
	floor int
	// why says what would be lost if a package beside or beneath it imported it.
	why string
}

// house is the table of floors, from the roof down. The most specific path
// owns a package.
var house = []component{
	{"cmd", 8, "cmd wires one binary together; whoever imports it cannot be embedded, replayed or tested without that binary"},

	{"core/api", 7, "the API translates for the outside world; what it serves must run without it, as it does in the simulator"},
	{"core/web", 7, "pages show what the engine knows; the engine must not know that anybody looks"},

	{"core/sim", 6, "the simulator is believed because it runs the server's own packages unchanged; a package that knew it could behave differently in it"},
	{"core/server", 6, "the server drives the packages beneath it; they must run without one, or the simulator would be a second implementation"},

	{"core/kube/extender", 5, "the extender asks the scheduler and its policies as a worker does; it serves another cluster than the one that the server runs"},
	{"core/worker", 5, "a worker drives the scheduler and submits plans; neither may depend on who drives it"},

	{"core/scheduler", 4, "scheduling is one function from an evaluation and a snapshot to a plan; what it is made of is checked without it"},

	{"plugins", 3, "core defines the seams and plugins implement them; cmd puts the two together"},
	{"core/preempt", 3, "preemption asks policies and reads the state; a policy host or a table that knew who asks could answer differently"},
	{"core/planner", 3, "the applier verifies what schedulers propose; they must stay strangers for that to be worth anything"},
	{"core/replication", 3, "replication applies entries to the state; what is replicated must run unreplicated, as it does in the simulator"},

	{"policies", 2, "policies are guests behind the SDK; cmd registers the native ones, and no host knows one by name"},
	{"core/policy", 2, "the calls to policies are defined apart from the state and the broker; the scheduler brings them together"},
	{"core/broker", 2, "the broker hands out evaluations and decides nothing else; workers drive it through an interface of their own"},
	{"core/state", 2, "the state is written by entries and read through snapshots; it does not take part in what is decided on it"},
	{"core/agent", 2, "an agent lives on a node and reaches servers over the network alone"},
	{"core/kube", 2, "Kubernetes objects are translated into our nouns at the edge; the engine has one vocabulary"},
	{"core/jobspec", 2, "job files are translated into our nouns at the edge; the engine has one vocabulary"},

	{"sdk", 1, "the SDK is what authors outside import; on the ground floor nobody needs it"},
	{"gossip", 1, "gossip finds servers and knows nothing of them; cmd adapts it to the server's membership interface"},
	{"core/model", 1, "the ground floor is made of strangers: storage keeps bytes, events carry ids and plain values, clocks tick; the nouns mean something one floor up"},
	{"core/storage", 1, "what the disk looks like is the business of replication and the server alone"},
	{"core/events", 1, "on the ground floor an error is returned to the caller, who emits the event"},
	{"core/lease", 1, "the book of a member cluster is kept by its agent; pools are strangers to it, with names and numbers"},
	{"core/clock", 1, "on the ground floor nothing waits: whoever calls decides when"},
	{"core/acl", 1, "who may do what is decided once, where a request comes in"},
	{"core/rpc", 1, "servers talk to servers; nothing else on the ground floor talks"},

	{"core/internal", 0, ""},
}

// Outside the floors, and why that is safe.
const (
	testHelpers = "core/coretest" // may import all of core; tests alone may import it
	examples    = "examples"      // stories played by their tests; they import the SDK at most
)

// forbidden names edges that the floors would allow, or for which they would
// give a weaker reason. The first entry that matches is the one reported.
var forbidden = []struct{ from, to, why string }{
	{"core", "plugins", "core defines the seams; hosts implement them and cmd plugs them in"},
	{"core", "gossip", "core sees membership through a small interface of its own, so that the simulator needs no network"},
	{"core", "policies", "policies are guests; an engine that knew one by name could favour it"},
	{"plugins", "policies", "policies are guests; a host that knew one by name could favour it"},
	{"plugins", "gossip", "cmd alone brings servers and their policies together"},
	{"gossip", "", "gossip imports nothing of ours; cmd adapts it to the server's membership interface"},
	{"policies", "policies", "each policy is a guest by itself; what two of them share belongs to sdk/rules"},
	{"policies", "core", "a policy sees what any author outside this repository sees: the SDK"},
	{"policies", "plugins", "a policy does not know how it is hosted; that is what makes it portable"},
	{"policies", "gossip", "a policy sees what any author outside this repository sees: the SDK"},
	{"sdk", "", "the SDK is the standard library and itself, so that a guest stays small and its author owes us nothing"},
	{"examples", "core", "an example's code is what an author outside this repository would write: it imports the SDK"},
	{"examples", "plugins", "an example's code is what an author outside this repository would write: it imports the SDK"},
	{"examples", "gossip", "an example's code is what an author outside this repository would write: it imports the SDK"},
	{"examples", "policies", "an example's code is what an author outside this repository would write: it imports the SDK"},
}

// forbiddenInTests is what test files may not import either. They are free
// otherwise: a test of the simulator needs the shipped policies.
var forbiddenInTests = []struct{ from, to, why string }{
	{"core", "cmd", "nothing imports cmd; what a test needs of it belongs to a package beneath"},
	{"plugins", "cmd", "nothing imports cmd; what a test needs of it belongs to a package beneath"},
	{"policies", "cmd", "nothing imports cmd; what a test needs of it belongs to a package beneath"},
	{"examples", "cmd", "nothing imports cmd; an example is played through core/sim"},
	{"gossip", "", "gossip is tested alone, as it is used"},
	{"sdk", "", "the SDK is laid down in other people's projects, with its tests"},
}

// componentOf is the component that owns the package at rel.
func componentOf(rel string) (component, bool) {
	var best component
	found := false
	for _, c := range house {
		if within(rel, c.path) && (!found || len(c.path) > len(best.path)) {
			best, found = c, true
		}
	}
	return best, found
}

// within is whether rel is the package or folder dir, or beneath it.
func within(rel, dir string) bool {
	return dir == "" || rel == dir || strings.HasPrefix(rel, dir+"/")
}

// sameHousehold is whether an import stays at home: a component's own
// packages import each other freely, but each policy is a guest by itself.
func sameHousehold(from, to string) bool {
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

// policyName is NAME of policies/NAME/...
func policyName(rel string) string {
	parts := strings.SplitN(rel, "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// testsOnly is whether the package exists for tests. What the SDK gives to
// test policies with is part of the product: cede policy test runs it.
func testsOnly(rel string) bool {
	return strings.HasSuffix(rel, "test") && !within(rel, "sdk")
}

// checkImport says why the package at from may not import the one at to, both
// relative to the module; empty when it may.
func checkImport(from, to string) string {
	if sameHousehold(from, to) {
		return ""
	}
	if testsOnly(to) && !testsOnly(from) {
		return "it is made of builders and faults for tests; let test files alone import it"
	}
	for _, f := range forbidden {
		if within(from, f.from) && within(to, f.to) {
			return f.why
		}
	}
	if within(to, examples) {
		return "examples are played, never imported"
	}
	if within(from, examples) || within(from, testHelpers) {
		from = "" // above every floor but cmd
	}
	t, ok := componentOf(to)
	if !ok {
		return "" // reported once, as a package without a floor
	}
	if from == "" {
		if t.path == "cmd" {
			return t.why
		}
		return ""
	}
	f, ok := componentOf(from)
	if !ok || t.floor < f.floor {
		return ""
	}
	return fmt.Sprintf("%s is on floor %d and %s on floor %d, and each floor imports those below it: %s", f.path, f.floor, t.path, t.floor, t.why)
}

// checkTestImport is checkImport for what only test files import.
func checkTestImport(from, to string) string {
	if sameHousehold(from, to) {
		return ""
	}
	for _, f := range forbiddenInTests {
		if within(from, f.from) && within(to, f.to) {
			return f.why
		}
	}
	return ""
}

// hasFloor is whether the table knows the package.
func hasFloor(rel string) bool {
	_, ok := componentOf(rel)
	return ok || within(rel, testHelpers) || within(rel, examples)
}

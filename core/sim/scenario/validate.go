package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/suggest"
)

// formatVersion is the supported version of the format.
const formatVersion = 1

// Validate returns all problems of a file as an *Error without lines, or nil. Decode
// calls it; code that builds a File must call it as well.
func (f *File) Validate() error {
	c := newChecker(f)
	c.check()
	return c.problems.err("")
}

// A valueChecker checks values that depend on no other element of a file, and collects the
// problems. It continues after a problem, but does not report problems that follow from an
// earlier one.
type valueChecker struct {
	problems problems

	refused    map[string]bool // paths that the decoder has reported
	invalid    map[string]bool // elements with a problem, such as jobs[2]
	incomplete map[string]bool // lists with names that could not be decoded
}

// A referenceChecker checks references to the elements of a file.
type referenceChecker struct {
	valueChecker
	f *File

	nodes    map[string]int // position by id; the same for the maps below
	jobs     map[string]int
	classes  map[string]int
	running  map[string]int
	clusters map[string]int
	bindings map[string]int
	groupAt  map[int]map[string]int // position by group name, for the jobs that are referenced
}

// An expectChecker checks the expectations of a file.
type expectChecker struct {
	referenceChecker

	// Set if there are expectations, which may refer to them.
	groups   map[string]bool // job.group: the prefixes of generated allocation ids
	anyGroup map[string]int  // group names of all jobs
}

// A checker checks the elements of a file in order.
type checker struct {
	expectChecker

	freeByCluster   map[string]map[string]int64 // remaining capacity by cluster and resource
	runningReplicas map[string]int              // replicas before time 0, by binding
	runningDevices  [][]deviceUse               // devices of the running entries
	warnings        []string
}

func newChecker(f *File) *checker {
	return &checker{expectChecker: expectChecker{
		referenceChecker: referenceChecker{
			valueChecker: valueChecker{invalid: map[string]bool{}, incomplete: map[string]bool{}}, f: f,
			nodes: map[string]int{}, jobs: map[string]int{}, classes: map[string]int{}, running: map[string]int{},
			clusters: map[string]int{}, bindings: map[string]int{}, groupAt: map[int]map[string]int{},
		},
		groups: map[string]bool{}, anyGroup: map[string]int{},
	}}
}

// skipRefused marks the paths that the decoder has reported, so that they are not checked.
func (c *valueChecker) skipRefused(refused map[string]bool) {
	c.refused = refused
	for text := range refused {
		c.markInvalid(text)
		// If the decoder has refused an element or its name, the list of
		// names is incomplete and references to it cannot be checked.
		list, _, _ := strings.Cut(text, "[")
		for _, end := range []string{"]", ".id", ".count", ".name", ".groups", list} {
			if strings.HasSuffix(text, end) {
				c.incomplete[list] = true
			}
		}
	}
}

// markInvalid marks the element of a top-level list that contains a path.
func (c *valueChecker) markInvalid(text string) {
	if i := strings.IndexByte(text, ']'); i > 0 {
		c.invalid[text[:i+1]] = true
	}
}

// add reports a problem, unless the decoder has reported the same value or an enclosing
// one.
// report adds the problem of a field, if there is one.
func (c *valueChecker) report(p *path, problem fieldcheck.Problem) {
	if problem.Found() {
		c.add(p, problem.Text, problem.Remedy)
	}
}

func (c *valueChecker) add(p *path, message, remedy string) {
	if len(c.problems.list) == maxStored {
		if c.problems.more++; c.problems.len() > maxProblems {
			panic(checkLimit{})
		}
		return
	}
	text := p.String()
	c.markInvalid(text)
	for at, ok := text, true; ok; at, ok = parent(at) {
		if c.refused[at] {
			return
		}
	}
	c.problems.add(Problem{Path: text, Message: message, Remedy: remedy})
}

// A checkLimit is the panic that ends validation if a file has too many problems.
type checkLimit struct{}

// check runs all checks, up to maxProblems.
func (c *checker) check() {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case checkLimit:
			c.problems.list[0] = Problem{
				Message: fmt.Sprintf("more than %d problems: the rest of the file was not checked", maxProblems),
				Remedy:  "correct the following ones first; check that this is a scenario file",
			}
		default:
			panic(p)
		}
	}()
	c.checkAll()
}

func (c *checker) checkAll() {
	if c.f.Version != formatVersion {
		var root *path
		c.add(root.field("version"), fmt.Sprintf("unsupported version %d: expected 1", c.f.Version), "write `version: 1`, or use a newer cede")
		if !c.refused["version"] {
			return
		}
	}
	c.checkHead()
	c.checkNodes()
	c.checkJobs()
	c.checkClusters()
	c.checkBindings()
	c.checkBudgets()
	c.checkDimensions()
	c.checkRunning()
	c.checkDurations()
	c.checkEvents()
	c.checkExpect()
}

// checkMoves checks the limit on moves.
func (c *checker) checkMoves(p *path) {
	m := c.f.Scheduler.Moves
	if m == nil {
		return
	}
	if m.PerJob < 1 {
		c.add(p.field("perJob"), fmt.Sprintf("%d is not a valid number of moves: expected 1 or more", m.PerJob), "write how many instances of one job may be moved in the window, or remove moves")
	}
	c.checkWindow(p.field("window"), m.Window)
}

// checkWindow checks the period of a limit.
func (c *valueChecker) checkWindow(p *path, d Duration) {
	switch {
	case d == 0:
		c.add(p, "window is missing: expected a duration above 0", "write the period that the limit applies to, such as window: 1h")
	case d < 0:
		c.add(p, fmt.Sprintf("%v is negative: expected a duration above 0", d), "remove the sign")
	}
}

// checkHead checks the fields that precede nodes.
func (c *checker) checkHead() {
	var root *path
	f := c.f
	c.name(root.field("name"), "name", f.Name)
	scheduler := root.field("scheduler")
	c.oneOf(scheduler.field("algorithm"), f.Scheduler.Algorithm, valuesOf[Scheduler]("algorithm")...)
	if d := f.Scheduler.PriorityDelta; d != nil && *d < 0 {
		c.add(scheduler.field("priorityDelta"), fmt.Sprintf("%d is negative: expected 0 or more", *d), "remove the sign")
	}
	c.checkMoves(scheduler.field("moves"))
	c.checkPolicies(root.field("policies"))
	seen := map[string]int{}
	for i := range f.Namespaces {
		n, p := &f.Namespaces[i], root.field("namespaces").item(i)
		c.unique(p.field("name"), "namespaces", "name", n.Name, i, seen)
		if n.Weight != nil {
			c.report(p.field("weight"), fieldcheck.NamespaceWeight(*n.Weight))
		}
	}
	for i := range f.Classes {
		class, p := &f.Classes[i], root.field("priorityClasses").item(i)
		c.unique(p.field("name"), "priorityClasses", "name", class.Name, i, c.classes)
		c.oneOf(p.field("preemptionPolicy"), class.PreemptionPolicy, valuesOf[PriorityClass]("preemptionPolicy")...)
		for _, problem := range class.model().Problems() {
			c.add(p.field(problem.Field), problem.Message, problem.Remedy)
		}
	}
	// System classes exist without a declaration.
	for _, system := range model.SystemClasses() {
		if _, declared := c.classes[system.Name]; !declared {
			c.classes[system.Name] = -1
		}
	}
}

func (c *checker) checkPolicies(list *path) {
	seen := map[string]int{}
	for i := range c.f.Policies {
		policy, p := &c.f.Policies[i], list.item(i)
		c.unique(p.field("name"), "policies", "name", policy.Name, i, seen)
		if policy.Use == "" {
			c.add(p.field("use"), "use is missing", "name a built-in policy, a .wasm file, a directory or an executable")
		}
		for j, grant := range policy.Grant {
			c.oneOf(p.field("grant").item(j), grant, "keepRedundant")
		}
	}
}

// preemptionPolicies are the values that Kubernetes defines.
var preemptionPolicies = []string{"PreemptLowerPriority", "Never"}

// oneOf checks an enumeration; an absent value is valid.
func (c *valueChecker) oneOf(p *path, value string, allowed ...string) {
	if value == "" {
		return
	}
	if slices.Contains(allowed, value) {
		return
	}
	remedy := "write one of them"
	if len(allowed) == 1 {
		remedy = "write " + allowed[0]
	}
	c.add(p, fmt.Sprintf("expected %s, found %.100q", strings.Join(allowed, ", "), value), suggest.DidYouMean(value, allowed, remedy))
}

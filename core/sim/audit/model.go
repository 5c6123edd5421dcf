package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// A Run is the input of the checker: a scenario, its timeline and parts of its result.
type Run struct {
	File   *scenario.File
	Policy string // name of the built-in policy, without settings
	Events []timeline.Event
	// Unplaced is the number of instances by job and group that the result reports as
	// missing at the end, or of replicas by binding.
	Unplaced map[[2]string]int
	// LostWork lists the work, in nanoseconds, that the result reports for the evictions of
	// allocations, in order.
	LostWork []Loss
}

// A Loss is the work that the eviction of an allocation lost.
type Loss struct {
	Alloc string
	Work  int64
}

// A Finding is a violation of a rule.
type Finding struct {
	At   time.Duration
	Rule string
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%s %s: %s", f.At, f.Rule, f.Text) }

// node is a node with its status.
type node struct {
	*scenario.Node
	id        string
	down      bool
	draining  bool
	downSince int64
}

// usable reports whether the node accepts allocations.
func (n *node) usable() bool { return !n.down && !n.draining && (n.Ready == nil || *n.Ready) }

// attribute returns an attribute or a built-in property of the node.
func (n *node) attribute(name string) (string, bool) {
	switch name {
	case "node.id", "node.unique.id":
		return n.id, true
	case "node.class":
		return n.Class, n.Class != ""
	case "node.datacenter":
		return n.Datacenter, true
	}
	value, ok := n.Attributes[name]
	return value, ok
}

// domain returns the value of a topology key; the key "node" is the node itself.
func (n *node) domain(key string) (string, bool) {
	if key == "node" {
		return n.id, true
	}
	return n.attribute(key)
}

// job is a job with its resolved defaults and its status.
type job struct {
	*scenario.Job
	namespace  string
	priority   int64
	never      bool // it never preempts
	perNode    bool
	registered bool
	evaluated  bool // it was submitted, or lost an allocation; running work alone is not evaluated
	stopped    bool
	resubmit   bool // it was submitted again after a stop
	groups     []*group
}

// group is a group of a job with its completed instances.
type group struct {
	*scenario.Group
	job   *job
	count int
	done  map[int]bool    // completed instances; they are not placed again
	ended map[string]bool // nodes on which an instance of a per-node job has completed
}

func (g *group) String() string { return g.job.ID + "." + g.Name }

// alloc is an allocation.
type alloc struct {
	id        string
	group     *group
	index     int
	node      *node
	devices   []timeline.Device
	live      bool
	started   bool
	placedAt  int64
	startedAt int64
	saved     int64
	endedAt   int64 // when it ceased to be live
	victims   []*alloc
	interrupt bool   // its node was down while it was live
	from      string // allocation on another node that it continues
	// first holds the co-location terms of which it was the first match when it was placed.
	first []*labelTerm
}

// age returns how long the allocation has run, in nanoseconds.
func (a *alloc) age(now int64) int64 {
	if !a.started {
		return 0
	}
	return max(0, now-a.startedAt)
}

// cluster is the state at one event.
type cluster struct {
	run      Run
	now      int64
	nodes    map[string]*node
	nodeList []*node
	jobs     map[string]*job
	jobList  []*job
	allocs   map[string]*alloc
	order    []*alloc
	evicted  []eviction // of allocations that had started; moves count
	moves    []past
}

// checker applies events and compares them with the rules.
type checker struct {
	cluster

	losses   int // entries of Run.LostWork that were compared
	bound    bindingChecker
	findings []Finding
}

// eviction is one eviction for the budgets of a number per window.
type eviction struct {
	at    int64
	group *group
}

func (c *checker) report(rule, format string, args ...any) {
	c.findings = append(c.findings, Finding{time.Duration(c.now), rule, fmt.Sprintf(format, args...)})
}

func newChecker(run Run) *checker {
	c := &checker{cluster: cluster{run: run, nodes: map[string]*node{}, jobs: map[string]*job{}, allocs: map[string]*alloc{}}}
	for i := range run.File.Nodes {
		n := &run.File.Nodes[i]
		for _, id := range nodeIDs(n) {
			c.nodes[id] = &node{Node: n, id: id}
			c.nodeList = append(c.nodeList, c.nodes[id])
		}
	}
	for i := range run.File.Jobs {
		j := newJob(run.File, &run.File.Jobs[i])
		c.jobs[j.ID] = j
		c.jobList = append(c.jobList, j)
	}
	c.bound = newBindingChecker(c)
	for _, r := range run.File.Running {
		if r.Binding == "" {
			c.initial(r)
		}
	}
	return c
}

func nodeIDs(n *scenario.Node) (ids []string) {
	if n.Count == nil {
		return []string{n.ID}
	}
	for i := range *n.Count {
		ids = append(ids, fmt.Sprintf("%s-%d", n.ID, i))
	}
	return ids
}

func newJob(f *scenario.File, spec *scenario.Job) *job {
	j := &job{
		Job: spec, namespace: cmp.Or(spec.Namespace, "default"), priority: 50,
		perNode: spec.Type == "system" || spec.Type == "sysbatch",
	}
	class := defaultClass(f)
	for i := range f.Classes {
		if f.Classes[i].Name == spec.PriorityClass {
			class = &f.Classes[i]
		}
	}
	switch {
	case spec.Priority != nil:
		j.priority = int64(*spec.Priority)
	case class != nil:
		j.priority, j.never = int64(class.Value), class.PreemptionPolicy == "Never"
	}
	if spec.PreemptionPolicy != "" {
		j.never = spec.PreemptionPolicy == "Never"
	}
	for i := range spec.Groups {
		g := &group{Group: &spec.Groups[i], job: j, count: 1, done: map[int]bool{}, ended: map[string]bool{}}
		if g.Count != nil {
			g.count = *g.Count
		}
		j.groups = append(j.groups, g)
	}
	return j
}

// defaultClass returns the global default class with the smallest value, or nil.
func defaultClass(f *scenario.File) (least *scenario.PriorityClass) {
	for i := range f.Classes {
		if c := &f.Classes[i]; c.GlobalDefault && (least == nil || c.Value < least.Value) {
			least = c
		}
	}
	return least
}

// initial adds an allocation that runs before time 0. It gets the lowest free index.
func (c *cluster) initial(r scenario.Running) {
	g := c.group(r.Job, r.Group)
	index := 0
	if !g.job.perNode {
		for slices.ContainsFunc(c.order, func(a *alloc) bool { return a.group == g && a.index == index }) {
			index++
		}
	}
	a := &alloc{id: r.ID, group: g, index: index, node: c.nodes[r.Node], live: true, started: true, startedAt: int64(r.StartedAt)}
	g.job.registered = true
	c.allocs[a.id] = a
	c.order = append(c.order, a)
}

func (c *cluster) group(job, name string) *group {
	j := c.jobs[job]
	if j == nil {
		return nil
	}
	for _, g := range j.groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// gap returns the least priority gap that the policy requires of a preemptor without
// regard to time.
func (c *cluster) gap() int64 {
	base := int64(10)
	switch c.run.Policy {
	case "kubernetes", "karmada", "fair-share":
		base = 1
	}
	if d := c.run.File.Scheduler.PriorityDelta; d != nil {
		base = int64(*d)
	}
	return max(1, base)
}

// enabled reports whether preemption is enabled for a type of job.
func (c *cluster) enabled(kind string) bool {
	p := c.run.File.Scheduler.Preemption
	if p == nil {
		return true
	}
	if kind == "binding" {
		return p.Binding == nil || *p.Binding
	}
	mode := map[string]*scenario.PreemptionMode{"service": p.Service, "batch": p.Batch, "system": p.System, "sysbatch": p.SysBatch}[cmp.Or(kind, "service")]
	return mode == nil || mode.On
}

// unlimited is the time of an event that never happens.
const unlimited = int64(math.MaxInt64)

// lostAt returns when an allocation on a node that is down is lost.
func (a *alloc) lostAt() int64 {
	d := a.group.Disconnect
	switch {
	case !a.node.down:
		return unlimited
	case d == nil || a.node.draining:
		return a.node.downSince
	case d.LostAfter == nil || *d.LostAfter == 0:
		return unlimited
	}
	return a.node.downSince + int64(*d.LostAfter)
}

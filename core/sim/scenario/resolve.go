package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Resolved is a scenario as values of the model, with every default filled in. The
// scenario starts at Unix time 0. Jobs and nodes are not compiled; the state store
// compiles them.
type Resolved struct {
	Name     string
	Seed     uint64
	Config   model.SchedulerConfig
	Policies []PolicyVariant
	// Namespaces are those that the file lists, in file order.
	Namespaces []*model.Namespace
	Classes    []model.PriorityClass
	Nodes      []*model.Node
	Jobs       []*model.Job
	Budgets    []*model.Budget
	Running    []*model.Allocation // in file order
	Clusters   []*model.Cluster
	Bindings   []*model.Binding
	Assigned   []Assigned // in file order
	Steps      []Step
	Until      *int64 // Unix nanoseconds
	// TieOrder lists IDs of nodes and allocations, also of future ones, in the order in
	// which ties between them are broken; nil: bytewise ascending.
	TieOrder []string
	// Durations are those of instances, by the name of their first allocation, in nanoseconds;
	// others run for that of their group.
	Durations map[string]int64
	Warnings  []string
}

// Duration returns how long an instance of a group runs; 0: for ever.
func (r *Resolved) Duration(j *model.Job, g *model.Group, index int) int64 {
	if len(r.Durations) > 0 {
		if d, ok := r.Durations[fmt.Sprintf("%s.%s[%d]", j.ID, g.Name, index)]; ok {
			return d
		}
	}
	return g.Duration
}

// ShortestDuration returns the shortest duration of the instances of a group; 0: all run for
// ever.
func (r *Resolved) ShortestDuration(j *model.Job, g *model.Group) int64 {
	shortest := g.Duration
	if len(r.Durations) == 0 {
		return shortest
	}
	for i := range g.Count {
		if d := r.Duration(j, g, i); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// Step is one event of the scenario.
type Step struct {
	At  int64 // Unix nanoseconds
	Do  Action
	Job *model.Job // for Submit and Stop of a job
	// Binding is set for Submit and Stop if Job is nil.
	Binding *model.Binding
	Node    string // for the other actions
}

// Action is the kind of a step.
type Action uint8

// Actions of a step.
const (
	Submit Action = iota
	Stop
	NodeDown
	NodeUp
	Drain
)

func (a Action) String() string {
	return [...]string{"submit", "stop", "nodeDown", "nodeUp", "drain"}[a]
}

// DefaultPolicy is the preemption policy of scenarios that name none.
const DefaultPolicy = "default"

// DefaultDatacenter is the datacenter of nodes that name none, as in Nomad.
const DefaultDatacenter = "dc1"

// Resolve fills in defaults and returns the scenario as values of the model. It returns
// the *Error of Validate if the file is invalid.
func Resolve(f *File) (*Resolved, error) {
	c := newChecker(f)
	c.check()
	if err := c.problems.err(""); err != nil {
		return nil, err
	}
	r := &Resolved{
		Name: f.Name, Seed: f.Seed, Config: f.Scheduler.resolve(),
		Policies: f.Policies, TieOrder: f.TieOrder, Warnings: c.warnings,
	}
	for _, n := range f.Namespaces {
		r.Namespaces = append(r.Namespaces, n.model())
	}
	classes := newClasses(f.Classes)
	r.Classes = classes.list
	r.Warnings = append(r.Warnings, classes.warnings...)
	for i := range f.Nodes {
		r.Nodes = f.Nodes[i].resolve(r.Nodes)
	}
	r.Jobs = make([]*model.Job, len(f.Jobs))
	for i := range f.Jobs {
		r.Jobs[i] = f.Jobs[i].resolve(classes)
	}
	for i := range f.Budgets {
		r.Budgets = append(r.Budgets, f.Budgets[i].resolve())
	}
	r.Running = c.allocations(r.Jobs)
	if len(f.Durations) > 0 {
		r.Durations = make(map[string]int64, len(f.Durations))
		for name, d := range f.Durations {
			r.Durations[name] = int64(d)
		}
	}
	for i := range f.Clusters {
		r.Clusters = append(r.Clusters, f.Clusters[i].resolve())
	}
	for i := range f.Bindings {
		b, warning := f.Bindings[i].resolve(classes)
		r.Bindings = append(r.Bindings, b)
		if warning != "" {
			r.Warnings = append(r.Warnings, warning)
		}
	}
	r.Assigned = c.assigned(r.Bindings)
	r.Steps = c.steps(r.Jobs, r.Bindings)
	if f.Until != nil {
		r.Until = new(int64(*f.Until))
	}
	return r, nil
}

func (s *Scheduler) resolve() model.SchedulerConfig {
	config := model.SchedulerConfig{
		Algorithm:     model.Algorithm(cmp.Or(s.Algorithm, string(model.Binpack))),
		PriorityDelta: s.PriorityDelta,
		Policy:        cmp.Or(s.Policy, DefaultPolicy),
		Gates:         model.FeatureGates(s.FeatureGates),
	}
	if m := s.Moves; m != nil {
		config.Moves = &model.Rate{Number: m.PerJob, Window: time.Duration(m.Window)}
	}
	p := s.Preemption
	if p == nil {
		p = &Preemption{}
	}
	for t, mode := range map[model.JobType]*PreemptionMode{
		model.JobService: p.Service, model.JobBatch: p.Batch, model.JobSystem: p.System, model.JobSysBatch: p.SysBatch,
	} {
		config.Preemption[t] = mode == nil || mode.On
		config.Observe[t] = mode != nil && mode.Observe
	}
	config.Preemption[model.JobBinding] = p.Binding == nil || *p.Binding
	return config
}

// classes resolves priorities.
type classes struct {
	list     []model.PriorityClass
	byName   map[string]*model.PriorityClass
	fallback *model.PriorityClass // of jobs without priority and class; nil if there is no global default
	warnings []string
}

func newClasses(written []PriorityClass) *classes {
	c := &classes{byName: map[string]*model.PriorityClass{}, list: make([]model.PriorityClass, len(written))}
	for _, system := range model.SystemClasses() {
		c.byName[system.Name] = system
	}
	var defaults []*model.PriorityClass
	for i := range written {
		class := &c.list[i]
		*class = *written[i].model()
		c.byName[class.Name] = class
		if class.GlobalDefault {
			defaults = append(defaults, class)
		}
	}
	c.fallback = model.DefaultClass(defaults)
	if len(defaults) > 1 {
		var others []string
		for _, class := range defaults {
			if class != c.fallback {
				others = append(others, class.Name)
			}
		}
		c.warnings = append(c.warnings, fmt.Sprintf(
			"priorityClasses: %d are the global default: %s has the smallest value, %d, and is used; remove globalDefault from %s, because a server accepts only one",
			len(defaults), c.fallback.Name, c.fallback.Value, strings.Join(others, ", ")))
	}
	return c
}

func (n *Namespace) model() *model.Namespace {
	m := &model.Namespace{Name: n.Name, Weight: model.DefaultWeight, Description: n.Description}
	if n.Weight != nil {
		m.Weight = *n.Weight
	}
	return m
}

func (c *PriorityClass) model() *model.PriorityClass {
	return &model.PriorityClass{
		Name: c.Name, Value: c.Value, GlobalDefault: c.GlobalDefault,
		NeverPreempts: c.PreemptionPolicy == "Never", Description: c.Description,
	}
}

// resolve appends the nodes of an entry. They share attributes and other values, which
// the model never modifies.
func (n *Node) resolve(nodes []*model.Node) []*model.Node {
	one := n.model()
	if !n.expands() {
		return append(nodes, one)
	}
	nodes = slices.Grow(nodes, n.instances())
	for i := range n.instances() {
		node := *one
		node.ID = n.ID + "-" + strconv.Itoa(i)
		node.Ports = slices.Clone(one.Ports) // compilation sorts them in place
		nodes = append(nodes, &node)
	}
	return nodes
}

func (n *Node) model() *model.Node {
	node := &model.Node{
		ID: n.ID, Datacenter: cmp.Or(n.Datacenter, DefaultDatacenter), Class: n.Class,
		Capacity: model.Resources(n.Capacity), Reserved: model.Resources(n.Reserved),
		Ports: slices.Sorted(slices.Values(n.Ports)), Attributes: n.Attributes,
	}
	if n.Ready != nil && !*n.Ready {
		node.Status = model.NodeDown
	}
	for _, d := range n.Devices {
		node.Devices = append(node.Devices, model.Device{ID: d.ID, Count: d.Count, Attributes: d.Attributes})
	}
	for _, t := range n.Taints {
		node.Taints = append(node.Taints, model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)})
	}
	// Sort by id: the order in the file must not affect placement.
	slices.SortFunc(node.Devices, func(a, b model.Device) int { return cmp.Compare(a.ID, b.ID) })
	return node
}

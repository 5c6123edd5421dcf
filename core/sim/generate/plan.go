package generate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Limits of a spec: beyond the largest known clusters, and small enough to fit
// into memory. A group takes about 2 KB, a task that is not played nothing.
const (
	maxSpecNodes = 1_000_000
	maxJobs      = 500_000
	maxAllGroups = 1_000_000
	maxTasks     = 10_000_000
	maxGroups    = 1000
)

var namePattern = regexp.MustCompile(`^[a-z0-9.-]+$`)

// plan is a validated spec with everything resolved except random values.
type plan struct {
	spec     *Spec
	problems []scenario.Problem

	shapes   []shape
	nodes    int                 // total number
	capacity map[string]float64  // total, before jitter
	values   map[string][]string // attribute values of the nodes, ascending
	classes  []class
}

// shape is a resolved NodeShape.
type shape struct {
	*NodeShape
	count    int
	capacity scenario.Quantities
}

// Validate returns a *scenario.Error with every problem of the spec, or nil.
func (s *Spec) Validate() error {
	return newPlan(s).err()
}

func (p *plan) err() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b scenario.Problem) int { return a.Line - b.Line })
	return &scenario.Error{File: p.spec.file, Problems: p.problems}
}

// bad records a problem at a path of the spec.
func (p *plan) bad(path, message, remedy string) {
	p.problems = append(p.problems, scenario.Problem{
		Line: p.spec.line(path), Path: path, Message: message, Remedy: remedy,
	})
}

func (p *plan) badf(path, remedy, format string, args ...any) {
	p.bad(path, fmt.Sprintf(format, args...), remedy)
}

func newPlan(s *Spec) *plan {
	p := &plan{spec: s, capacity: make(map[string]float64), values: make(map[string][]string)}
	p.name("name", s.Name, nil)
	if s.Horizon <= 0 {
		p.bad("horizon", "horizon is missing", "write the period in which jobs arrive, such as 2h")
	}
	if s.Until != 0 && s.Until < s.Horizon {
		p.badf("until", "end later, or shorten the horizon", "%v is before the horizon (%v)", s.Until, s.Horizon)
	}
	p.planNodes()
	p.planBands()
	seen := make(map[string]bool)
	if len(s.Classes) == 0 {
		p.bad("classes", "classes are missing", "add at least one class")
	}
	for i := range s.Classes {
		p.planClass(i, seen)
	}
	for i := range s.Failures {
		p.planFailure(i)
	}
	return p
}

// name checks a required name. It must be unique if seen is not nil.
func (p *plan) name(path, name string, seen map[string]bool) {
	switch {
	case !namePattern.MatchString(name):
		p.badf(path, "use lower-case letters, digits, dots and dashes", "%.60q is not a valid name", name)
	case seen[name]:
		p.badf(path, "use a unique name", "duplicate name %q", name)
	case seen != nil:
		seen[name] = true
	}
}

func (p *plan) planNodes() {
	if len(p.spec.Nodes) == 0 {
		p.bad("nodes", "nodes are missing", "add at least one kind")
	}
	seen := make(map[string]bool)
	for i := range p.spec.Nodes {
		n := &p.spec.Nodes[i]
		path := fmt.Sprintf("nodes[%d]", i)
		p.name(path+".id", n.ID, seen)
		s := shape{NodeShape: n, count: 1, capacity: make(scenario.Quantities)}
		if n.Count != nil {
			s.count = *n.Count
		}
		if s.count < 0 || s.count > maxSpecNodes-p.nodes {
			p.badf(path+".count", "use fewer nodes", "%d nodes; expected 0 to %d in all", s.count, maxSpecNodes)
			s.count = 0
		}
		if n.Jitter < 0 || n.Jitter > 90 {
			p.badf(path+".jitter", "write per cent", "%d; expected 0 to 90", n.Jitter)
		}
		p.nodes += s.count
		for _, r := range slices.Sorted(maps.Keys(n.Capacity)) {
			v, err := amount(r, model.ParseCapacity)(n.Capacity[r])
			if err != nil {
				p.bad(path+".capacity."+r, err.Error(), "write an amount, such as 4000 or 8Gi")
			}
			s.capacity[r] = v
			p.capacity[r] += float64(v) * float64(s.count)
		}
		p.planDevices(path, n)
		p.planAttributes(path, n)
		p.shapes = append(p.shapes, s)
	}
}

func (p *plan) planDevices(path string, n *NodeShape) {
	for j, d := range n.Devices {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 {
			p.badf(fmt.Sprintf("%s.devices[%d]", path, j), "write {id: nvidia/gpu/a100, count: 8}",
				"%.60q × %d; expected vendor/type/model, and 1 or more", d.ID, d.Count)
		}
	}
}

func (p *plan) planAttributes(path string, n *NodeShape) {
	for _, a := range slices.Sorted(maps.Keys(n.Attributes)) {
		if len(n.Attributes[a].list) == 0 {
			p.bad(path+".attributes."+a, "value is missing", "write one, or a list to assign round-robin")
		}
		for _, v := range n.Attributes[a].list {
			if !slices.Contains(p.values[a], v) {
				p.values[a] = append(p.values[a], v)
			}
		}
		slices.Sort(p.values[a])
	}
}

func (p *plan) planBands() {
	seen := make(map[string]bool)
	for i := range p.spec.Bands {
		b := &p.spec.Bands[i]
		path := fmt.Sprintf("bands[%d]", i)
		p.name(path+".name", b.Name, seen)
		if !(b.Load >= 0 && b.Load <= 100) {
			p.badf(path+".load", "1 is the whole cluster", "%v; expected 0 to 100", b.Load)
		}
	}
}

package mixes

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A feature is one aspect that a scenario may combine with others.
type feature int

// The features.
const (
	gangs feature = iota
	systemJobs
	batchJobs
	budgets
	strictBudgets
	rateBudgets
	classes
	minRuntimes
	neverPreempt
	protectedJobs
	elasticGroups
	wholeJobs
	preemptionByType
	ports
	devices
	bandwidth
	constraints
	distinct
	separation
	colocation
	spreads
	taints
	noExecute
	drains
	failures
	disconnects
	stops
	killTimeouts
	checkpoints
	deltas
	spreadRank
	namespaces
	bindings
	zeroRequests
	extremePriorities
	overcommit
	numFeatures
)

// generator draws one scenario.
type generator struct {
	*rand.Rand
	on   [numFeatures]bool
	file *scenario.File
}

// Generate returns the scenario of a seed. Equal seeds give equal scenarios.
func Generate(seed uint64) *scenario.File {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6d69786573))}
	for range g.in(2, 9) {
		g.on[g.IntN(int(numFeatures))] = true
	}
	g.file = &scenario.File{Version: 1, Name: fmt.Sprintf("mix-%d", seed), Seed: seed}
	g.scheduler()
	g.nodes()
	g.jobs()
	g.budgets()
	if g.on[bindings] {
		g.bindings()
	}
	g.running()
	g.events()
	return g.file
}

func (g *generator) in(least, most int) int { return least + g.IntN(most-least+1) }
func (g *generator) oneIn(n int) bool       { return g.IntN(n) == 0 }

// with reports whether a feature is selected and applies this time, once in n.
func (g *generator) with(f feature, n int) bool { return g.on[f] && g.oneIn(n) }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) duration(least, most int) scenario.Duration {
	return scenario.Duration(time.Duration(g.in(least, most)) * time.Second)
}

// priority prefers values with small gaps between them.
func (g *generator) priority() int32 {
	if g.with(extremePriorities, 3) {
		return pick(g, int32(-2147483648), 2147483647, -1, 0, 2147483637)
	}
	return int32(pick(g, 10, 10, 20, 20, 25, 30, 40, 50, 55, 60, 70, 79, 80, 90))
}

func (g *generator) scheduler() {
	s := &g.file.Scheduler
	if g.on[spreadRank] {
		s.Algorithm = "spread"
	}
	if g.on[preemptionByType] {
		mode := func() *scenario.PreemptionMode { return &scenario.PreemptionMode{On: !g.oneIn(3)} }
		s.Preemption = &scenario.Preemption{Service: mode(), Batch: mode(), System: mode(), SysBatch: mode(), Binding: new(!g.oneIn(3))}
	}
	if g.on[deltas] {
		s.PriorityDelta = new(int32(pick(g, 1, 1, 5, 10, 20, 40)))
	}
	if g.on[classes] {
		g.file.Classes = []scenario.PriorityClass{
			{Name: "low", Value: 15, GlobalDefault: g.oneIn(2)},
			{Name: "high", Value: 85},
			{Name: "polite", Value: 75, PreemptionPolicy: "Never"},
		}
	}
	if g.on[namespaces] {
		g.file.Namespaces = []scenario.Namespace{{Name: "team-a", Weight: new(2.0)}, {Name: "team-b"}}
	}
}

func (g *generator) nodes() {
	alike := g.oneIn(2)
	size := g.in(2, 10) * 100
	for i := range g.in(2, 6) {
		if !alike {
			size = g.in(2, 10) * 100
		}
		n := scenario.Node{
			ID: fmt.Sprintf("n%d", i), Datacenter: pick(g, "dc1", "dc1", "dc1", "dc2"), Class: pick(g, "", "large"),
			Capacity:   scenario.Quantities{"cpu": int64(size), "memory": int64(g.in(4, 16) * 100)},
			Attributes: map[string]string{"zone": pick(g, "a", "b"), "rack": fmt.Sprintf("r%d", i/2), "rank": fmt.Sprint(i), "os.version": pick(g, "1.2.0", "1.3.5", "2.0.0")},
		}
		if g.oneIn(8) {
			n.Reserved = scenario.Quantities{"cpu": 100}
		}
		if g.oneIn(6) {
			delete(n.Attributes, "zone")
		}
		g.nodeExtras(&n)
		g.file.Nodes = append(g.file.Nodes, n)
	}
}

func (g *generator) nodeExtras(n *scenario.Node) {
	if g.with(ports, 4) {
		n.Ports = []uint16{uint16(g.in(80, 82))}
	}
	if g.on[bandwidth] {
		n.Capacity["network"] = int64(g.in(5, 10) * 100)
	}
	if g.on[devices] && !g.oneIn(3) {
		n.Devices = []scenario.Device{{ID: "acme/gpu/a", Count: int32(g.in(1, 4)), Attributes: map[string]string{"memory": "16"}}}
		if g.oneIn(2) {
			n.Devices = append(n.Devices, scenario.Device{ID: "acme/gpu/b", Count: int32(g.in(1, 4)), Attributes: map[string]string{"memory": "32"}})
		}
	}
	if g.with(taints, 2) {
		n.Taints = append(n.Taints, scenario.Taint{Key: "spot", Value: pick(g, "", "yes"), Effect: pick(g, "NoSchedule", "PreferNoSchedule")})
	}
	if g.with(noExecute, 3) {
		n.Taints = append(n.Taints, scenario.Taint{Key: "repair", Effect: "NoExecute"})
	}
	if g.oneIn(20) {
		n.Ready = new(false)
	}
}

func (g *generator) jobs() {
	for i := range g.in(3, 9) {
		j := scenario.Job{ID: fmt.Sprintf("j%d", i), Type: "service"}
		g.jobType(&j)
		g.jobPriority(&j)
		if g.with(namespaces, 2) {
			j.Namespace = pick(g, "team-a", "team-b")
		}
		if g.with(protectedJobs, 3) {
			j.Preemptible = new(false)
		}
		if g.with(protectedJobs, 3) {
			j.Toleration = &scenario.PreemptionToleration{MinPreemptorPriority: new(int32(g.in(3, 9) * 10))}
		}
		if g.with(minRuntimes, 2) {
			j.Toleration = &scenario.PreemptionToleration{MinRuntime: g.duration(60, 1200)}
		}
		if g.with(wholeJobs, 2) {
			j.DisruptionMode = "all"
		}
		if g.oneIn(12) {
			j.Datacenters = []string{pick(g, "dc1", "dc2")}
		}
		if g.with(gangs, 2) && (j.Type == "service" || j.Type == "batch") {
			j.AllAtOnce = true
		}
		for k := range pick(g, 1, 1, 1, 2, 3) {
			j.Groups = append(j.Groups, g.group(&j, k))
		}
		g.file.Jobs = append(g.file.Jobs, j)
	}
}

func (g *generator) jobType(j *scenario.Job) {
	switch {
	case g.with(systemJobs, 3):
		j.Type = pick(g, "system", "sysbatch")
	case g.with(batchJobs, 2):
		j.Type = "batch"
	}
}

func (g *generator) jobPriority(j *scenario.Job) {
	switch {
	case g.with(classes, 2):
		j.PriorityClass = pick(g, "low", "high", "polite")
	case g.with(classes, 3): // the default class
	default:
		j.Priority = new(g.priority())
	}
	if g.with(neverPreempt, 3) {
		j.PreemptionPolicy = "Never"
	}
}

func (g *generator) group(j *scenario.Job, k int) scenario.Group {
	perNode := j.Type == "system" || j.Type == "sysbatch"
	count := pick(g, 1, 1, 2, 2, 3, 4)
	if g.with(overcommit, 2) {
		count += 3
	}
	r := scenario.Group{
		Name: fmt.Sprintf("g%d", k), Resources: scenario.Quantities{"cpu": int64(g.in(1, 6) * 50), "memory": int64(g.in(0, 4) * 100)},
		Labels: map[string]string{"app": pick(g, "x", "y", "z")},
	}
	if g.oneIn(4) {
		r.Resources["cpu"] *= 2
	}
	if g.with(zeroRequests, 4) {
		r.Resources = scenario.Quantities{}
	}
	if !perNode {
		r.Count = &count
		if j.DisruptionMode == "all" && g.on[elasticGroups] && g.oneIn(2) {
			r.MinCount = g.in(1, count)
		}
		if g.oneIn(25) {
			r.Count, r.MinCount = new(0), 0
		}
	}
	g.hostResources(&r)
	g.nodeRules(&r)
	if !perNode || g.oneIn(3) {
		g.allocRules(j, &r, perNode)
	}
	g.lifetime(j, &r)
	return r
}

func (g *generator) hostResources(r *scenario.Group) {
	if g.with(ports, 3) {
		r.Ports = []uint16{uint16(g.in(80, 82))}
	}
	if g.with(bandwidth, 2) {
		r.Resources["network"] = int64(g.in(1, 5) * 100)
	}
	if g.with(devices, 2) {
		d := scenario.DeviceRequest{ID: pick(g, "gpu", "acme/gpu", "acme/gpu/a", "acme/gpu/b"), Count: new(int32(g.in(1, 2)))}
		if g.oneIn(4) {
			d.Constraints = []scenario.Constraint{{Attribute: "memory", Operator: ">=", Value: "20"}}
		}
		r.Devices = append(r.Devices, d)
	}
}

func (g *generator) nodeRules(r *scenario.Group) {
	if g.with(constraints, 2) {
		r.Constraints = append(r.Constraints, pick(g,
			scenario.Constraint{Attribute: "zone", Operator: "=", Value: "a"},
			scenario.Constraint{Attribute: "zone", Operator: "!=", Value: "b"},
			scenario.Constraint{Attribute: "zone", Operator: "is_set"},
			scenario.Constraint{Attribute: "zone", Operator: "is_not_set"},
			scenario.Constraint{Attribute: "rank", Operator: "<", Value: "3"},
			scenario.Constraint{Attribute: "rank", Operator: ">=", Value: "1"},
			scenario.Constraint{Attribute: "node.id", Operator: "in", Values: []string{"n0", "n1"}},
			scenario.Constraint{Attribute: "node.unique.id", Operator: "!=", Value: "n0"},
			scenario.Constraint{Attribute: "node.class", Operator: "=", Value: "large"},
			scenario.Constraint{Attribute: "node.datacenter", Operator: "notin", Values: []string{"dc2"}},
			scenario.Constraint{Attribute: "zone", Operator: "regexp", Value: "^[ab]$"},
			scenario.Constraint{Attribute: "os.version", Operator: "version", Value: ">= 1.3"},
		))
	}
	if g.with(constraints, 3) {
		r.Affinities = []scenario.Affinity{{Constraint: scenario.Constraint{Attribute: "zone", Operator: "=", Value: "a"}, Weight: pick(g, -100, -50, 50, 100)}}
	}
	if g.with(taints, 2) {
		r.Tolerations = append(r.Tolerations, pick(g,
			scenario.Toleration{Key: "spot", Operator: "Exists"},
			scenario.Toleration{Key: "spot", Operator: "Equal", Value: "yes"}))
	}
	if g.with(noExecute, 3) {
		t := scenario.Toleration{Key: "repair", Operator: "Exists", Effect: "NoExecute"}
		if g.oneIn(2) {
			t.For = g.duration(30, 600)
		}
		r.Tolerations = append(r.Tolerations, t)
	}
}

func (g *generator) allocRules(j *scenario.Job, r *scenario.Group, perNode bool) {
	app := func() map[string]string { return map[string]string{"app": pick(g, "x", "y", "z")} }
	if g.with(distinct, 3) && !perNode {
		r.Constraints = append(r.Constraints, pick(g,
			scenario.Constraint{Operator: "distinct_hosts"},
			scenario.Constraint{Operator: "distinct_property", Attribute: "rack"},
			scenario.Constraint{Operator: "distinct_property", Attribute: "zone", Value: "2"}))
	}
	if g.with(separation, 3) {
		r.Separate = []scenario.LabelTerm{{Labels: app(), TopologyKey: pick(g, "node", "node", "rack", "zone")}}
	}
	if g.with(colocation, 3) {
		labels := app()
		if j.AllAtOnce && !g.oneIn(4) {
			labels = r.Labels
		}
		r.Colocate = []scenario.LabelTerm{{Labels: labels, TopologyKey: pick(g, "node", "rack", "zone")}}
	}
	if g.with(spreads, 2) && !perNode {
		s := scenario.Spread{Attribute: pick(g, "zone", "rack"), Weight: new(g.in(1, 100))}
		if g.oneIn(2) {
			s.MaxSkew = new(g.in(1, 2))
		}
		r.Spread = []scenario.Spread{s}
	}
}

func (g *generator) lifetime(j *scenario.Job, r *scenario.Group) {
	if j.Type == "batch" || j.Type == "sysbatch" || g.oneIn(10) {
		r.Duration = g.duration(60, 1800)
	}
	if g.on[killTimeouts] {
		r.KillTimeout = pick(g, 0, g.duration(1, 60))
	}
	if g.with(checkpoints, 2) {
		r.Checkpoint = g.duration(30, 300)
	}
	if g.with(disconnects, 2) {
		r.Disconnect = &scenario.Disconnect{}
		if g.oneIn(2) {
			r.Disconnect.LostAfter = new(g.duration(60, 900))
		}
		if g.oneIn(2) {
			r.Disconnect.Replace = new(g.oneIn(2))
		}
	}
}

func (g *generator) budgets() {
	add := func(strict bool) {
		b := scenario.Budget{Name: fmt.Sprintf("b%d", len(g.file.Budgets)), Labels: map[string]string{"app": pick(g, "x", "y", "z")}}
		if g.with(namespaces, 3) {
			b.Namespace = pick(g, "team-a", "team-b")
		}
		if strict {
			b.Enforcement = "strict"
		}
		bound := &scenario.Bound{Number: int32(g.in(0, 4))}
		if g.oneIn(2) {
			bound = &scenario.Bound{Number: int32(g.in(0, 10) * 10), Percent: true}
		}
		if g.oneIn(2) {
			b.MinAvailable = bound
		} else {
			b.MaxUnavailable = bound
		}
		g.file.Budgets = append(g.file.Budgets, b)
	}
	if g.on[budgets] {
		add(g.oneIn(3))
	}
	if g.on[strictBudgets] {
		for range g.in(1, 2) {
			add(true)
		}
	}
	if g.on[rateBudgets] {
		b := scenario.Budget{Name: fmt.Sprintf("b%d", len(g.file.Budgets)), MaxEvictions: new(int32(g.in(0, 2))), Window: g.duration(60, 900)}
		if g.oneIn(2) {
			b.Labels = map[string]string{"app": pick(g, "x", "y")}
		}
		if g.oneIn(4) {
			b.Enforcement = "bestEffort"
		}
		g.file.Budgets = append(g.file.Budgets, b)
	}
}

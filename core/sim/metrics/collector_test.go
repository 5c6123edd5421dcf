package metrics

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
)

// fixture feeds a collector with a handwritten sequence of events.
type fixture struct {
	t     *testing.T
	c     *Collector
	dims  *model.Dimensions
	nodes map[string]*model.Node
	runs  map[string]*model.Allocation
}

type jobSpec struct {
	id             string
	priority       int32
	count          int
	cpu            int64
	gpu            int32
	namespace      string
	gang           bool
	nonPreemptible bool // preemptible: false
	system         bool
	checkpoint     int64 // checkpoint, in seconds
}

// newFixture returns a cluster with one node per amount of CPU, and its jobs.
func newFixture(t *testing.T, cfg Config, cpus []int64, specs ...jobSpec) (*fixture, map[string]*model.Job) {
	s := &fixture{t: t, dims: model.NewDimensions(), nodes: map[string]*model.Node{}, runs: map[string]*model.Allocation{}}
	for i, cpu := range cpus {
		n := &model.Node{ID: fmt.Sprintf("n%d", i+1), Capacity: model.Resources{"cpu": cpu}}
		n.Compile(s.dims)
		s.nodes[n.ID] = n
		cfg.Nodes = append(cfg.Nodes, n)
	}
	jobs := map[string]*model.Job{}
	for _, spec := range specs {
		j := &model.Job{
			ID: spec.id, Namespace: spec.namespace, Priority: spec.priority, AllAtOnce: spec.gang,
			NonPreemptible: spec.nonPreemptible,
			Groups: []*model.Group{{
				Name: "g", Count: spec.count, Resources: model.Resources{"cpu": spec.cpu},
				Checkpoint: spec.checkpoint * second,
			}},
		}
		if spec.system {
			j.Type = model.JobSystem
		}
		if j.Namespace == "" {
			j.Namespace = "default"
		}
		if spec.gpu > 0 {
			j.Groups[0].Devices = []model.DeviceRequest{{ID: "gpu", Count: spec.gpu}}
		}
		j.Compile(s.dims)
		jobs[j.ID] = j
		cfg.Jobs = append(cfg.Jobs, j)
	}
	cfg.Dims = s.dims
	s.c = New(cfg)
	return s, jobs
}

func (s *fixture) alloc(id string, j *model.Job, index int, node string) *model.Allocation {
	g := j.Groups[0]
	a := &model.Allocation{ID: id, Job: j, Group: g, Index: index, NodeID: node}
	s.runs[id] = a
	return a
}

// initial adds an allocation that started age seconds before time 0.
func (s *fixture) initial(id string, j *model.Job, index int, node string, age int64) {
	s.c.Initial(-age*second, s.alloc(id, j, index, node))
}

func (s *fixture) queue(at int64, j *model.Job, n int) {
	s.c.Submitted(at*second, j)
	s.c.Queued(at*second, j.Groups[0], n)
}

// place records a placement. Each victim loses its work since its start.
func (s *fixture) place(at int64, id string, j *model.Job, index int, node string, choice *Choice, victims ...string) {
	var vs []Victim
	for _, v := range victims {
		r := s.c.work.find(v)
		vs = append(vs, Victim{Alloc: v, LostWork: s.runs[v].Group.LostWork(r.age(at * second))})
	}
	s.c.Placed(at*second, s.alloc(id, j, index, node), vs, choice)
}

func (s *fixture) start(at int64, id string) { s.c.Started(at*second, s.runs[id]) }

// run records a placement that starts immediately.
func (s *fixture) run(at int64, id string, j *model.Job, index int, node string, victims ...string) {
	s.place(at, id, j, index, node, nil, victims...)
	s.start(at, id)
}

func (s *fixture) end(at int64) *Metrics { return s.c.Finish(at * second) }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestMetrics_OnePreemption(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{Until: 100 * second}, []int64{1000},
		jobSpec{id: "low", priority: 10, count: 3, cpu: 300}, jobSpec{id: "high", priority: 50, count: 1, cpu: 500})
	low, high := jobs["low"], jobs["high"]
	for i := range 3 {
		s.initial(fmt.Sprintf("a%d", i), low, i, "n1", 60)
	}
	s.queue(40, high, 1)
	var choice Choice
	choice.Reset(400)
	for range 3 {
		choice.Add(300)
	}
	s.place(40, "h", high, 0, "n1", &choice, "a1", "a2")
	s.queue(40, low, 2)
	s.start(45, "h") // the victims took 5 s to stop
	m := s.end(100)

	equal(t, "placed", m.Placed, 1)
	equal(t, "unplaced", m.Unplaced, 2)
	equal(t, "preemptions", m.Preemptions, 1)
	equal(t, "victims", m.Victims, 2)
	equal(t, "victimsPerPreemption", *m.VictimsPerPreemption, PerPreemption{2, 2, 2})
	equal(t, "regretVictims", *m.RegretVictims, 0)
	equal(t, "cascadeDepth", m.CascadeDepth, Depth{1, 1})
	// two victims × 300 × (60 s before the start + 40 s)
	equal(t, "wastedWork", m.WastedWork, map[string]float64{"cpu": 60_000})
	// useful: a0 300 × 160 s, high 500 × 55 s
	equal(t, "goodput", *m.Goodput, Round(75_500.0/135_500.0))
	// low waits 2 × 60 s, and a0 does not have a lower priority; high waited 5 s
	equal(t, "queueDelay", m.QueueDelay, map[string]Quantiles{
		"10": {60, 60, 60, 60, 60}, "50": {5, 5, 5, 5, 5},
	})
	equal(t, "starved", m.Starved, 0)
	equal(t, "inversionSeconds", m.InversionSeconds, 0)
	// 900 for 40 s, then 800 for 60 s
	equal(t, "utilisation", m.Utilisation, map[string]float64{"cpu": 0.84})
	// the typical request is 300: 100 free for 40 s, then 200 for 60 s, all stranded
	equal(t, "fragmentation", m.Fragmentation, map[string]float64{"cpu": 1})
	if m.GangsBroken != nil || m.Jain != nil || m.BudgetViolations != nil || m.DecisionLatency != nil {
		t.Error("Finish returned a metric that does not apply to the scenario")
	}
}

func TestMetrics_RegretCountsNeedlessVictims(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000},
		jobSpec{id: "small", priority: 10, count: 3, cpu: 100}, jobSpec{id: "large", priority: 20, count: 1, cpu: 600},
		jobSpec{id: "high", priority: 50, count: 1, cpu: 400})
	s.initial("big", jobs["large"], 0, "n1", 1)
	for i := range 3 {
		s.initial(fmt.Sprintf("s%d", i), jobs["small"], i, "n1", 1)
	}
	choice := Choice{Need: []int64{300}, Frees: []int64{100, 100, 100, 600}}
	s.place(0, "h", jobs["high"], 0, "n1", &choice, "s0", "s1", "s2")
	equal(t, "regretVictims", *s.end(1).RegretVictims, 2)
}

func TestMetrics_OmitsRegretIfAChoiceIsMissing(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000}, jobSpec{id: "low", count: 1, cpu: 900}, jobSpec{id: "high", priority: 9, count: 1, cpu: 900})
	s.initial("a", jobs["low"], 0, "n1", 1)
	s.run(0, "h", jobs["high"], 0, "n1", "a")
	if m := s.end(1); m.RegretVictims != nil {
		t.Errorf("regretVictims = %d", *m.RegretVictims)
	}
}

func TestMetrics_VictimsOfUnstartedPlacementAreUseless(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000},
		jobSpec{id: "low", priority: 1, count: 1, cpu: 900}, jobSpec{id: "mid", priority: 20, count: 1, cpu: 900},
		jobSpec{id: "high", priority: 40, count: 1, cpu: 900})
	s.initial("a", jobs["low"], 0, "n1", 1)
	s.place(0, "m", jobs["mid"], 0, "n1", nil, "a")
	s.place(2, "h", jobs["high"], 0, "n1", nil, "m")
	s.queue(2, jobs["mid"], 1)
	s.start(3, "h")
	m := s.end(10)
	equal(t, "uselessVictims", m.UselessVictims, 1)
	// mid has waited since 0: its placement did not end the wait
	equal(t, "queueDelay", m.QueueDelay["20"].Max, 10.0)
	// mid had not started, so only low lost work
	equal(t, "wastedWork", m.WastedWork["cpu"], 900*1.0)
}

func TestMetrics_ChainsAndRepeats(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000, 1000, 1000},
		jobSpec{id: "low", priority: 1, count: 1, cpu: 900}, jobSpec{id: "mid", priority: 20, count: 1, cpu: 900},
		jobSpec{id: "high", priority: 40, count: 2, cpu: 900})
	low, mid, high := jobs["low"], jobs["mid"], jobs["high"]
	s.initial("l", low, 0, "n2", 1)
	s.initial("m", mid, 0, "n1", 1)
	s.run(0, "h0", high, 0, "n1", "m")    // depth 1
	s.run(0, "m1", mid, 0, "n2", "l")     // depth 2: it was itself evicted
	s.run(0, "l1", low, 0, "n3")          // ends the chain
	s.run(599, "h1", high, 1, "n2", "m1") // depth 1; mid again, within 10 minutes
	s.run(1300, "m2", mid, 0, "n3", "l1") // depth 2; low again, but much later
	m := s.end(1400)
	equal(t, "cascadeDepth", m.CascadeDepth, Depth{2, 2})
	equal(t, "repeatVictims", m.RepeatVictims, 2)
	equal(t, "pingPong", m.PingPong, 1)
	equal(t, "preemptions", m.Preemptions, 4)
}

func TestMetrics_CountsPartiallyEvictedGangOnce(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000, 1000},
		jobSpec{id: "gang", priority: 1, count: 2, cpu: 400, gang: true}, jobSpec{id: "whole", priority: 1, count: 2, cpu: 100, gang: true},
		jobSpec{id: "high", priority: 40, count: 4, cpu: 500})
	for i, n := range []string{"n1", "n2"} {
		s.initial("g"+n, jobs["gang"], i, n, 1)
		s.initial("w"+n, jobs["whole"], i, n, 1)
	}
	s.run(0, "h0", jobs["high"], 0, "n1", "wn1")
	s.run(0, "h1", jobs["high"], 1, "n2", "wn2") // same instant: the gang is evicted completely
	s.run(5, "h2", jobs["high"], 2, "n1", "gn1") // broken
	s.run(7, "h3", jobs["high"], 3, "n2", "gn2") // the remaining instance
	equal(t, "gangsBroken", *s.end(9).GangsBroken, 1)
}

func TestMetrics_InversionRequiresPreemptibleLowerPriority(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000},
		jobSpec{id: "fixed", priority: 1, count: 1, cpu: 500, nonPreemptible: true}, jobSpec{id: "low", priority: 2, count: 1, cpu: 400},
		jobSpec{id: "high", priority: 40, count: 3, cpu: 600})
	s.initial("f", jobs["fixed"], 0, "n1", 0)
	s.queue(10, jobs["high"], 3)
	s.run(20, "l", jobs["low"], 0, "n1")
	s.c.Finished(35*second, s.runs["l"])
	equal(t, "inversionSeconds", s.end(100).InversionSeconds, 3*15.0)
}

func TestMetrics_CountsStarvedWaits(t *testing.T) {
	t.Parallel()
	feed := func(until, end int64) int {
		s, jobs := newFixture(t, Config{Until: until * second}, []int64{100}, jobSpec{id: "a", count: 3, cpu: 100})
		s.queue(0, jobs["a"], 3)
		s.run(1, "a0", jobs["a"], 0, "n1")
		s.c.Finished(3601*second, s.runs["a0"])
		s.run(3601, "a1", jobs["a"], 1, "n1")
		return s.end(end).Starved
	}
	equal(t, "with until: one wait of 3601 s and one still open", feed(3700, 3700), 2)
	s, jobs := newFixture(t, Config{}, []int64{100}, jobSpec{id: "a", count: 1, cpu: 200})
	s.queue(0, jobs["a"], 1)
	equal(t, "without until: one wait that never ends", s.end(1).Starved, 1)
	s, jobs = newFixture(t, Config{Until: second}, []int64{100}, jobSpec{id: "a", count: 1, cpu: 200})
	s.queue(0, jobs["a"], 1)
	equal(t, "with until after one second", s.end(1).Starved, 0)
}

func TestMetrics_Jain(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{Weight: func(name string) float64 { return map[string]float64{"a": 3, "b": 1}[name] }}, []int64{1000},
		jobSpec{id: "a", namespace: "a", count: 1, cpu: 600}, jobSpec{id: "b", namespace: "b", count: 1, cpu: 200})
	s.initial("a", jobs["a"], 0, "n1", 0)
	s.initial("b", jobs["b"], 0, "n1", 0)
	equal(t, "jain", *s.end(10).Jain, 1.0)

	s, jobs = newFixture(t, Config{}, []int64{1000},
		jobSpec{id: "a", namespace: "a", count: 1, cpu: 600}, jobSpec{id: "b", namespace: "b", count: 1, cpu: 200})
	s.initial("a", jobs["a"], 0, "n1", 0)
	s.initial("b", jobs["b"], 0, "n1", 0)
	equal(t, "jain", *s.end(0).Jain, 0.8) // (3+1)² ÷ (2 × 10)

	for name, c := range map[string]struct{ a, b, want float64 }{
		"the least weights":    {5e-324, 5e-324, 0.8},
		"the greatest weights": {1e308, 1e308, 0.8},
		"one great weight":     {1e308, 5e-324, 0.5},
		"one small weight":     {1e-300, 1, 0.5},
	} {
		s, jobs := newFixture(t, Config{Weight: func(name string) float64 { return map[string]float64{"a": c.a, "b": c.b}[name] }}, []int64{1000},
			jobSpec{id: "a", namespace: "a", count: 1, cpu: 600}, jobSpec{id: "b", namespace: "b", count: 1, cpu: 200})
		s.initial("a", jobs["a"], 0, "n1", 0)
		s.initial("b", jobs["b"], 0, "n1", 0)
		equal(t, name, *s.end(0).Jain, c.want)
	}
}

func TestMetrics_IgnoresDownNodes(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{Until: 30 * second}, []int64{1000, 1000}, jobSpec{id: "a", count: 2, cpu: 500, checkpoint: 10})
	s.initial("a0", jobs["a"], 0, "n1", 5)
	s.initial("a1", jobs["a"], 1, "n2", 5)
	down := *s.nodes["n2"]
	down.Status = model.NodeDown
	s.c.NodeChanged(10*second, &down)
	s.c.Lost(10*second, s.runs["a1"])
	s.queue(10, jobs["a"], 1)
	s.c.NodeChanged(20*second, s.nodes["n2"])
	m := s.end(30)
	// held 1000×10 + 500×10 + 500×10 of 2000×10 + 1000×10 + 2000×10
	equal(t, "utilisation", m.Utilisation["cpu"], 0.4)
	equal(t, "goodput", *m.Goodput, 1.0)
	equal(t, "wastedWork", m.WastedWork["cpu"], 0.0)
	equal(t, "unplaced", m.Unplaced, 1)
}

func TestMetrics_CheckpointsLimitLostWork(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000}, jobSpec{id: "low", count: 1, cpu: 1000, checkpoint: 30}, jobSpec{id: "high", priority: 9, count: 1, cpu: 1000})
	s.initial("l", jobs["low"], 0, "n1", 0)
	s.run(70, "h", jobs["high"], 0, "n1", "l")
	m := s.end(100)
	equal(t, "wastedWork", m.WastedWork["cpu"], 10_000.0)
	equal(t, "goodput", *m.Goodput, 0.9)
}

func TestMetrics_DevicesCountByVendorAndType(t *testing.T) {
	t.Parallel()
	dims := model.NewDimensions()
	node := func(id, gpu string) *model.Node {
		n := &model.Node{ID: id, Capacity: model.Resources{"cpu": 1000}, Devices: []model.Device{{ID: gpu, Count: 4}}}
		n.Compile(dims)
		return n
	}
	g := &model.Group{Name: "g", Count: 1, Resources: model.Resources{"cpu": 250}, Devices: []model.DeviceRequest{{ID: "gpu", Count: 2}}}
	j := &model.Job{ID: "j", Namespace: "default", Groups: []*model.Group{g}}
	j.Compile(dims)
	c := New(Config{Dims: dims, Nodes: []*model.Node{node("n1", "amd/gpu/x"), node("n2", "nvidia/gpu/t4"), node("n3", "nvidia/gpu/v100")}, Jobs: []*model.Job{j}})
	c.Initial(0, &model.Allocation{ID: "a", Job: j, Group: g, NodeID: "n3", Devices: []model.DeviceUse{{ID: "nvidia/gpu/v100", Count: 2}}})
	m := c.Finish(0)
	equal(t, "utilisation", m.Utilisation, map[string]float64{"cpu": Round(1.0 / 12), "amd/gpu": 0, "nvidia/gpu": 0.25})
}

func TestMetrics_TracksSystemJobsByNode(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{1000, 1000}, jobSpec{id: "sys", priority: 5, count: 1, cpu: 600, system: true},
		jobSpec{id: "high", priority: 9, count: 2, cpu: 600})
	s.initial("s1", jobs["sys"], 0, "n1", 0)
	s.initial("s2", jobs["sys"], 0, "n2", 0)
	s.run(1, "h1", jobs["high"], 0, "n1", "s1")
	s.run(1, "h2", jobs["high"], 1, "n2", "s2")
	equal(t, "repeatVictims", s.end(2).RepeatVictims, 0)
}

func TestMetrics_CountsAbandonedWaits(t *testing.T) {
	t.Parallel()
	s, jobs := newFixture(t, Config{}, []int64{100}, jobSpec{id: "a", count: 2, cpu: 100})
	s.queue(0, jobs["a"], 2)
	s.queue(30, jobs["a"], 0)
	m := s.end(40)
	equal(t, "queueDelay", m.QueueDelay["0"].Max, 30.0)
	equal(t, "unplaced", m.Unplaced, 0)
}

func TestMetrics_ManyPrioritiesShareBands(t *testing.T) {
	t.Parallel()
	var specs []jobSpec
	for p := range int32(12) {
		specs = append(specs, jobSpec{id: fmt.Sprint("j", p), priority: p - 2, count: 1, cpu: 1})
	}
	s, jobs := newFixture(t, Config{}, []int64{100}, specs...)
	for _, spec := range specs {
		s.queue(0, jobs[spec.id], 1)
	}
	m := s.end(1)
	for _, want := range []string{"-2..0", "1..3", "4..6", "7..9"} {
		if _, ok := m.QueueDelay[want]; !ok {
			t.Errorf("no band %s in %v", want, m.QueueDelay)
		}
	}
}

func TestMetrics_EveryNumberIsDefined(t *testing.T) {
	t.Parallel()
	one, share := 1, 0.5
	full := Metrics{
		VictimsPerPreemption: &PerPreemption{}, RegretVictims: &one, Waste: Waste{Moved: &one, WastedWork: map[string]float64{"cpu": 1}, WastedHours: map[string]float64{"cpu": 1}}, Goodput: &share,
		BudgetViolations: &one, GangsBroken: &one, QueueDelay: map[string]Quantiles{"1": {}},
		Replicas: Replicas{&one, &one, &one}, Optimality: Optimality{&one, &share, &one, &share, &share, &share, &share, &one, &one, &one, &share},
		Utilisation: map[string]float64{"cpu": 1}, Fragmentation: map[string]float64{"cpu": 1}, Jain: &share, DecisionLatency: &Latency{},
	}
	var keys map[string]any
	text, err := json.Marshal(full)
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != len(Definitions) {
		t.Errorf("%d metrics and %d definitions", len(keys), len(Definitions))
	}
	flat := map[string]bool{}
	for _, v := range full.Flatten() {
		d, ok := Define(v.Name)
		if !ok {
			t.Errorf("%s has no definition", v.Name)
		}
		flat[d.Name] = true
	}
	for _, d := range Definitions {
		if _, ok := keys[d.Name]; !ok || !flat[d.Name] {
			t.Errorf("definition of %s: in JSON %v, flattened %v", d.Name, ok, flat[d.Name])
		}
	}
}

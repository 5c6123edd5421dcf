package metrics

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// Config is what the collector knows of a scenario before it runs.
type Config struct {
	Dims  *model.Dimensions
	Nodes []*model.Node // compiled; the nodes there are at time 0, ready or not
	Jobs  []*model.Job  // compiled; all jobs of the scenario, for the typical ask

	// Weights are those of namespaces; 1 where absent.
	Weights map[string]float64
	// Until is the end that the scenario names; 0 when it names none and the
	// run ends once nothing more can happen.
	Until int64
	// Budgets says whether the scenario has disruption budgets at all.
	Budgets bool
	// Timing says whether Decision will be called.
	Timing bool

	StarveAfter int64 // a longer wait is starvation; default: 1 h
	PingPong    int64 // a second eviction within this is ping-pong; default: 10 min
}

// Defaults of Config.
const (
	second             = int64(1e9)
	DefaultStarveAfter = 3600 * second
	DefaultPingPong    = 600 * second
)

// Victim is an allocation evicted for a placement.
type Victim struct {
	Alloc          string // its id
	LostWork       int64  // nanoseconds of work that the eviction throws away
	BudgetViolated bool
	Elsewhere      bool // it does not run on the placement's node
}

// Choice is what could be evicted on the place of a preemption, as the chooser
// saw it: the question that regret asks again. The collector does not keep it,
// so its memory may be used again.
//
// Only what was lacking is a dimension: resources; instances of the device
// group chosen for a request; and each thing that certain candidates must
// leave for (a host port, separation), where Need is how many they are and
// each of them frees 1.
type Choice struct {
	Need  []int64 // by dimension, what was missing before any victim went; positive
	Frees []int64 // row by row, len(Need) amounts for each eligible candidate
}

// Reset empties the choice for need and keeps its memory.
func (c *Choice) Reset(need ...int64) {
	c.Need, c.Frees = append(c.Need[:0], need...), c.Frees[:0]
}

// Add adds an eligible candidate with what it frees, one amount for each
// dimension of Need.
func (c *Choice) Add(frees ...int64) { c.Frees = append(c.Frees, frees...) }

// Collector measures one run.
type Collector struct {
	cfg  Config
	cols *columns
	now  int64

	nodes    nodeTable
	work     workTable
	demand   demand
	evicted  evictions
	series   series
	counters Metrics // placed, policyCalls, policyFaults and evaluations alone
	latency  []int64
}

// New returns a collector at time 0 with cfg's nodes on it and nothing running.
func New(cfg Config) *Collector {
	if cfg.StarveAfter <= 0 {
		cfg.StarveAfter = DefaultStarveAfter
	}
	if cfg.PingPong <= 0 {
		cfg.PingPong = DefaultPingPong
	}
	c := &Collector{cfg: cfg, cols: newColumns(cfg.Dims, cfg.Nodes)}
	c.nodes.init(c.cols, len(cfg.Nodes), c.cols.typicalAsk(cfg.Jobs, len(cfg.Nodes)))
	c.work.init(c.cols)
	c.demand.init()
	c.evicted.init()
	c.series.init(c.cols.len(), cfg.Until)
	for _, n := range cfg.Nodes {
		c.NodeChanged(0, n)
	}
	return c
}

// advance brings every integral up to at.
func (c *Collector) advance(at int64) {
	if at < c.now {
		panic(fmt.Sprintf("metrics: time runs backwards, from %d to %d", c.now, at))
	}
	if at == c.now {
		return
	}
	c.evicted.settleGangs()
	c.demand.advance(at - c.now)
	c.series.advance(c.now, at, c.nodes.totals, c.demand.waiting)
	c.nodes.advance(at - c.now)
	c.now = at
}

// NodeChanged says that a node is new, up, down or changed. Capacity counts
// while the node's status is ready, also while it is drained or ineligible.
func (c *Collector) NodeChanged(at int64, n *model.Node) {
	c.advance(at)
	c.nodes.change(n)
}

// Submitted says that a job was submitted or changed.
func (c *Collector) Submitted(at int64, j *model.Job) {
	c.advance(at)
	c.job(j)
}

// Initial adds an allocation that runs before time 0; startedAt is zero or
// negative.
func (c *Collector) Initial(startedAt int64, a *model.Allocation) {
	r := c.add(a)
	r.started, r.start = true, startedAt
}

// Placed says that a plan with this allocation committed. victims are those of
// this allocation, on its node and elsewhere; choice is nil without victims,
// or where regret cannot be told.
func (c *Collector) Placed(at int64, a *model.Allocation, victims []Victim, choice *Choice) {
	c.advance(at)
	g := c.group(a.Group)
	depth := c.evicted.chain(g.slot(int32(a.Index), c.nodes.find(a.NodeID)))
	for i := range victims {
		c.victim(a, depth, &victims[i])
	}
	if len(victims) > 0 {
		c.preempted(depth, victims, choice)
	}
	r := c.add(a)
	r.since, r.victims = c.demand.placed(g, at), int32(len(victims))
	c.counters.Placed++
}

// Started says that a placed allocation begins to work: its victims are gone.
func (c *Collector) Started(at int64, a *model.Allocation) {
	c.advance(at)
	r := c.work.find(a.ID)
	if r == nil || r.started {
		return
	}
	r.started, r.start = true, at
	c.demand.started(r.group, at-r.since)
}

// Finished says that an allocation completed by itself.
func (c *Collector) Finished(at int64, a *model.Allocation) {
	c.advance(at)
	if r := c.work.find(a.ID); r != nil {
		c.end(r, 0, nil)
	}
}

// Stopped says that an allocation is no longer wanted: its job was stopped or
// scaled down. What it did was useful. For a victim it does nothing.
func (c *Collector) Stopped(at int64, a *model.Allocation) { c.Finished(at, a) }

// Lost says that an allocation went without anybody's wish: its node failed or
// is drained. What it did since its last checkpoint is neither useful nor
// wasted by preemption.
func (c *Collector) Lost(at int64, a *model.Allocation) {
	c.advance(at)
	r := c.work.find(a.ID)
	if r == nil {
		return
	}
	c.demand.resume(r)
	c.end(r, a.Group.LostWork(r.age(c.now)), c.work.spoiled)
}

// Queued says how many instances of a group are wanted and not placed. The
// engine calls it after each evaluation for every group of the job, and with 0
// when the job is stopped. Placed takes one off by itself.
func (c *Collector) Queued(at int64, g *model.Group, count int) {
	c.advance(at)
	c.demand.queued(c.group(g), at, count)
}

// EvaluationCreated counts evaluations made.
func (c *Collector) EvaluationCreated(n int) { c.counters.Evaluations.Created += n }

// EvaluationProcessed counts evaluations that a scheduler looked at.
func (c *Collector) EvaluationProcessed(n int) { c.counters.Evaluations.Processed += n }

// EvaluationCancelled counts evaluations cancelled as superseded.
func (c *Collector) EvaluationCancelled(n int) { c.counters.Evaluations.Cancelled += n }

// PolicyCalls counts calls of the policy's hooks.
func (c *Collector) PolicyCalls(n int) { c.counters.PolicyCalls += n }

// PolicyFaults counts faults charged to the policy.
func (c *Collector) PolicyFaults(n int) { c.counters.PolicyFaults += n }

// Decision records how long one evaluation took, in nanoseconds of wall clock.
// Only a run that is not meant to be byte-identical calls it.
func (c *Collector) Decision(nanoseconds int64) { c.latency = append(c.latency, nanoseconds) }

// add begins to count an allocation against its node.
func (c *Collector) add(a *model.Allocation) *allocRow {
	r := c.work.add(a, c.group(a.Group), c.nodes.find(a.NodeID))
	c.hold(r, +1)
	return r
}

// hold adds (+1) or takes off (-1) what r holds, everywhere it is counted.
func (c *Collector) hold(r *allocRow, sign int64) {
	c.nodes.hold(r.node, r.use, sign)
	c.work.hold(r, sign, c.now)
	c.demand.hold(r, sign)
}

// end takes an allocation off; lost nanoseconds of its work are added to to.
func (c *Collector) end(r *allocRow, lost int64, to []integral) {
	c.hold(r, -1)
	c.work.done(r, c.now, lost, to)
	if !r.started {
		c.evicted.useless += int(r.victims)
	}
	c.work.remove(r)
}

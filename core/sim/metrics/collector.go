package metrics

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// A Config describes the scenario that a Collector measures.
type Config struct {
	Dims  *model.Dimensions
	Nodes []*model.Node // compiled; the nodes at time 0, ready or not
	Jobs  []*model.Job  // compiled; all jobs of the scenario, for the typical request

	// Weight returns the positive fair-share weight of a namespace; nil: all weights are
	// equal.
	Weight func(namespace string) float64
	// Until is the configured end of the scenario. If it is 0, the run ends when no
	// event is left.
	Until int64
	// Budgets reports whether the scenario has disruption budgets.
	Budgets bool
	// Moves reports whether instances may be moved.
	Moves bool

	StarveAfter int64 // waits longer than this count as starvation; default: 1 h
	PingPong    int64 // evictions of one instance within this interval count as ping-pong; default: 10 min
}

// Defaults of Config.
const (
	second             = int64(1e9)
	DefaultStarveAfter = 3600 * second
	DefaultPingPong    = 600 * second
)

// A Victim is an allocation that was evicted for a placement.
type Victim struct {
	Alloc          string // allocation ID
	LostWork       int64  // nanoseconds of work that the eviction discards
	BudgetViolated bool
	OtherNode      bool // it ran on a node other than the placement's
}

// A Choice holds the eviction candidates of a preemption as the preemptor saw them.
// It is the input of the regret search. The collector does not retain it, so the
// caller may reuse its memory.
//
// Its dimensions are the ones with insufficient capacity: resources; instances of the
// device group selected for a request; and each conflict that requires certain
// candidates to be evicted (a host port, anti-affinity). For a conflict, Need is the
// number of these candidates and each of them frees 1.
type Choice struct {
	Need  []int64 // by dimension: the amount missing before any eviction; positive
	Frees []int64 // row-major: len(Need) amounts for each eligible candidate
}

// Reset clears the choice, sets its need and retains its memory.
func (c *Choice) Reset(need ...int64) {
	c.Need, c.Frees = append(c.Need[:0], need...), c.Frees[:0]
}

// Add appends an eligible candidate. frees holds the amount that its eviction frees,
// one value per dimension of Need.
func (c *Choice) Add(frees ...int64) { c.Frees = append(c.Frees, frees...) }

// A Collector measures one run.
type Collector struct {
	cfg  Config
	cols *columns
	now  int64

	nodes    nodeTable
	work     workTable
	demand   demand
	evicted  evictions
	series   series
	moved    int     // instances
	counters Metrics // only Placed, PolicyCalls, PolicyFaults and Evaluations are used
	latency  []int64
}

// New returns a collector at time 0 that holds cfg's nodes and no allocations.
func New(cfg Config) *Collector {
	if cfg.StarveAfter <= 0 {
		cfg.StarveAfter = DefaultStarveAfter
	}
	if cfg.PingPong <= 0 {
		cfg.PingPong = DefaultPingPong
	}
	c := &Collector{cfg: cfg, cols: newColumns(cfg.Dims, cfg.Nodes)}
	c.nodes.init(c.cols, len(cfg.Nodes), c.cols.typicalRequest(cfg.Jobs, len(cfg.Nodes)))
	c.work.init(c.cols)
	c.demand.init()
	c.evicted.init()
	c.series.init(c.cols.len(), cfg.Until)
	for _, n := range cfg.Nodes {
		c.NodeChanged(0, n)
	}
	return c
}

// advance updates every integral to time at. It panics if at lies in the past.
func (c *Collector) advance(at int64) {
	if at < c.now {
		panic(fmt.Sprintf("metrics: time moved backwards from %d to %d", c.now, at))
	}
	if at == c.now {
		return
	}
	c.evicted.countBrokenGangs()
	c.demand.advance(at - c.now)
	c.series.advance(c.now, at, c.nodes.totals, c.demand.waiting)
	c.nodes.advance(at - c.now)
	c.now = at
}

// NodeChanged records that a node was registered or changed. Its capacity counts if
// its status is ready, even if the node is draining or ineligible.
func (c *Collector) NodeChanged(at int64, n *model.Node) {
	c.advance(at)
	c.nodes.change(n)
}

// Submitted records that a job was submitted or updated.
func (c *Collector) Submitted(at int64, j *model.Job) {
	c.advance(at)
	c.job(j)
}

// Initial adds an allocation that started before time 0; startedAt is zero or
// negative.
func (c *Collector) Initial(startedAt int64, a *model.Allocation) {
	r := c.add(a)
	r.started, r.start = true, startedAt
}

// Placed records that a plan with this allocation was committed. victims are the
// allocations evicted for it, on its node and on other nodes. choice is nil if there
// are no victims or if regret cannot be computed.
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

// Started records that a placed allocation starts to run: its victims have stopped.
// It does nothing if the allocation has already started or ended.
func (c *Collector) Started(at int64, a *model.Allocation) {
	c.advance(at)
	r := c.work.find(a.ID)
	if r == nil || r.started {
		return
	}
	r.started, r.start = true, at
	c.demand.started(r.group, at-r.since)
}

// Finished records that an allocation completed.
func (c *Collector) Finished(at int64, a *model.Allocation) {
	c.advance(at)
	if r := c.work.find(a.ID); r != nil {
		c.end(r, 0, nil)
	}
}

// Stopped records that an allocation is no longer required because its job was
// stopped or scaled down, or that it was moved: it continues on another node to make room.
// Its work counts as useful, except that a move wastes the part since the last checkpoint, as
// an eviction does. If it is a victim, Stopped does nothing.
func (c *Collector) Stopped(at int64, a *model.Allocation, moved bool) {
	if !moved {
		c.Finished(at, a)
		return
	}
	c.advance(at)
	c.moved++
	if r := c.work.find(a.ID); r != nil {
		c.end(r, a.Group.LostWork(r.age(c.now)), c.work.wasted)
	}
}

// Lost records that an allocation ended because its node failed or was drained. Its
// work since the last checkpoint is neither useful nor wasted by preemption.
func (c *Collector) Lost(at int64, a *model.Allocation) {
	c.advance(at)
	r := c.work.find(a.ID)
	if r == nil {
		return
	}
	c.demand.resume(r)
	c.end(r, a.Group.LostWork(r.age(c.now)), c.work.spoiled)
}

// Queued sets the number of desired but unplaced instances of a group. The engine
// calls it after each evaluation for every group of the job, and with 0 if the job is
// stopped. Placed decrements the number.
func (c *Collector) Queued(at int64, g *model.Group, count int) {
	c.advance(at)
	c.demand.queued(c.group(g), at, count)
}

// EvaluationCreated counts created evaluations.
func (c *Collector) EvaluationCreated(n int) { c.counters.Evaluations.Created += n }

// EvaluationProcessed counts evaluations that a scheduler processed.
func (c *Collector) EvaluationProcessed(n int) { c.counters.Evaluations.Processed += n }

// EvaluationCancelled counts evaluations that were superseded.
func (c *Collector) EvaluationCancelled(n int) { c.counters.Evaluations.Cancelled += n }

// PolicyCalls counts calls of policy hooks.
func (c *Collector) PolicyCalls(n int) { c.counters.PolicyCalls += n }

// PolicyFaults counts faults attributed to the policy.
func (c *Collector) PolicyFaults(n int) { c.counters.PolicyFaults += n }

// Decision records the wall-clock time of one evaluation in nanoseconds. It is only
// called if the run need not be deterministic.
func (c *Collector) Decision(nanoseconds int64) { c.latency = append(c.latency, nanoseconds) }

// add counts a new allocation against its node and returns its row.
func (c *Collector) add(a *model.Allocation) *allocRow {
	r := c.work.add(a, c.group(a.Group), c.nodes.find(a.NodeID))
	c.hold(r, +1)
	return r
}

// hold adds (+1) or subtracts (-1) the resources of r in every table.
func (c *Collector) hold(r *allocRow, sign int64) {
	c.nodes.hold(r.node, r.use, sign)
	c.work.hold(r, sign, c.now)
	c.demand.hold(r, sign)
}

// end removes an allocation. If lost is positive, that many nanoseconds of its work
// are added to the integrals to.
func (c *Collector) end(r *allocRow, lost int64, to []integral) {
	c.hold(r, -1)
	c.work.addWork(r, c.now, lost, to)
	if !r.started {
		c.evicted.useless += int(r.victims)
	}
	c.work.remove(r)
}

package server

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// metrics are the metrics that a server counts; METRICS.md lists them. They are registered
// only if the server has a registry.
type metrics struct {
	redeliveries prometheus.Counter
	process      *prometheus.HistogramVec
	placements   *prometheus.CounterVec
	nodes        prometheus.Histogram
	cut          prometheus.Counter
	decisions    *prometheus.CounterVec
	victims      *prometheus.CounterVec
	observed     *prometheus.CounterVec
	lostWork     *prometheus.CounterVec
	repeated     *prometheus.CounterVec
	moves        prometheus.Counter
	verify       prometheus.Histogram
	commit       prometheus.Histogram

	mu       sync.Mutex
	rejected map[string]uint64 // by cause, of earlier terms
}

// durationBuckets returns buckets from 10 µs to 10 s.
func durationBuckets() []float64 { return prometheus.ExponentialBuckets(10e-6, 4, 11) }

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	m := &metrics{
		redeliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_broker_redeliveries_total", Help: "Evaluations delivered again because an earlier delivery was nacked or its lease expired.",
		}),
		process: prometheus.NewHistogramVec(histogram("cede_worker_process_seconds",
			"Time that workers spent on an evaluation, including its plans.", durationBuckets()), []string{"type"}),
		placements: counter("cede_sched_placements_total",
			"Instances that evaluations placed or updated, could not place, or whose placement was rejected.", "result"),
		nodes: prometheus.NewHistogram(histogram("cede_sched_nodes_evaluated",
			"Nodes of the cluster at each evaluation that placed or failed to place something.", prometheus.ExponentialBuckets(1, 4, 9))),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_sched_searches_cut_total", Help: "Searches for nodes or victims that stopped at their limit.",
		}),
		decisions: counter("cede_preempt_decisions_total",
			"Evaluations in which preemption was considered, by outcome.", "policy", "outcome"),
		victims: counter("cede_preempt_victims_total", "Evicted allocations, by the policy that chose them.", "policy"),
		lostWork: counter("cede_preempt_lost_work_seconds_total",
			"Work that evicted allocations had done since their last checkpoint, by the policy that chose them.", "policy"),
		repeated: counter("cede_preempt_repeat_victims_total",
			"Evicted allocations of instances that were evicted before, by the policy that chose them.", "policy"),
		observed: counter("cede_preempt_observed_victims_total",
			"Allocations that would have been evicted if preemption were not only observed, by the policy that chose them.", "policy"),
		moves: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_sched_moves_total", Help: "Allocations moved to another node to make room, counted when the move is committed.",
		}),
		verify: prometheus.NewHistogram(histogram("cede_plan_verify_seconds", "Time to verify a plan.", durationBuckets())),
		commit: prometheus.NewHistogram(histogram("cede_plan_commit_seconds",
			"Time to commit and apply a batch of plans.", durationBuckets())),
		rejected: map[string]uint64{},
	}
	for t := range model.JobType(model.EvalTypes) {
		m.process.WithLabelValues(t.String())
	}
	for _, result := range []string{"placed", "updated", "rejected", "unplaced"} {
		m.placements.WithLabelValues(result)
	}
	return m
}

// registerMetrics registers the metrics, if the server has a registry.
func (s *Server) registerMetrics() {
	if s.cfg.Registry == nil {
		return
	}
	m := s.metrics
	s.cfg.Registry.MustRegister(m.redeliveries, m.process, m.placements, m.nodes, m.cut, m.decisions, m.victims, m.observed, m.lostWork, m.repeated, m.moves,
		m.verify, m.commit, newCollector(s))
}

// initPolicy creates the counters of a policy with value 0: a rate over a counter that
// appears with its first value misses that value.
func (m *metrics) initPolicy(policy string) {
	for _, outcome := range []string{"evicted", "spared", "fault"} {
		m.decisions.WithLabelValues(policy, outcome)
	}
	m.victims.WithLabelValues(policy)
	for _, c := range []*prometheus.CounterVec{m.observed, m.lostWork, m.repeated} {
		c.WithLabelValues(policy)
	}
}

func (m *metrics) observeVerify(d time.Duration) { m.verify.Observe(d.Seconds()) }
func (m *metrics) observeCommit(d time.Duration) { m.commit.Observe(d.Seconds()) }

func (m *metrics) observeDelivery(d *broker.Delivery) {
	if d.Attempt > 1 {
		m.redeliveries.Inc()
	}
}

// observeDecision counts an outcome, on the goroutine of the worker.
func (s *Server) observeDecision(d scheduler.Decision) {
	s.policies.Observe(d)
	s.metrics.countOutcome(d)
}

func (m *metrics) countOutcome(d scheduler.Decision) {
	out := d.Outcome
	if out.Version == nil || out.Plan.Empty() && out.Placed() {
		return
	}
	m.nodes.Observe(float64(d.Snap.NodeCount()))
	m.cut.Add(float64(out.SearchesCut))
	evicts := false
	for i := range out.Plan.Groups {
		evicts = evicts || len(out.Plan.Groups[i].Evictions)+evictedAssignments(&out.Plan.Groups[i]) > 0
	}
	switch {
	case out.Fault != nil:
		m.decisions.WithLabelValues(out.Version.Name, "fault").Inc()
	case evicts:
		m.decisions.WithLabelValues(out.Version.Name, "evicted").Inc()
	case len(out.Calls) > 0:
		m.decisions.WithLabelValues(out.Version.Name, "spared").Inc()
	}
}

// observeWork counts the result of an evaluation, on the goroutine of the worker.
func (s *Server) observeWork(r worker.Report) {
	m := s.metrics
	m.process.WithLabelValues(r.Eval.Type.String()).Observe(r.Took.Seconds())
	if r.Outcome == nil {
		return
	}
	for i, plan := range r.Plans {
		m.countPlan(plan, r.Results[i], r.Outcome)
		m.countVictims(s.Snapshot(), plan, r.Results[i], r.Outcome)
	}
	for _, o := range r.Observed {
		if r.Outcome.Version != nil {
			m.observed.WithLabelValues(r.Outcome.Version.Name).Add(float64(len(o.Victims)))
		}
	}
	for _, n := range r.Outcome.Queued {
		m.placements.WithLabelValues("unplaced").Add(float64(n))
	}
}

// countVictims counts the lost work and the repeated evictions of a plan. snap holds its
// victims, before or after the plan: this server may apply it later. The instance of a victim
// was evicted before if the state still holds that allocation.
func (m *metrics) countVictims(snap *state.Snapshot, plan *model.Plan, result *model.PlanResult, out *scheduler.Outcome) {
	if out.Version == nil {
		return
	}
	lost, repeated := 0.0, 0
	for _, i := range result.Committed {
		for _, e := range plan.Groups[i].Evictions {
			v := snap.Alloc(e.AllocID)
			if v == nil {
				continue
			}
			lost += time.Duration(v.Group.LostWork(v.Age(plan.Now))).Seconds()
			if v.Incarnation > 0 && slices.ContainsFunc(snap.AppendJobAllocs(nil, v.Job.Key()), func(a *model.Allocation) bool {
				return a.Desired == model.DesiredEvict && a.ID != v.ID && a.Group.Name == v.Group.Name && a.Index == v.Index && (!v.Job.Type.PerNode() || a.NodeID == v.NodeID)
			}) {
				repeated++
			}
		}
	}
	m.lostWork.WithLabelValues(out.Version.Name).Add(lost)
	m.repeated.WithLabelValues(out.Version.Name).Add(float64(repeated))
}

func (m *metrics) countPlan(plan *model.Plan, result *model.PlanResult, out *scheduler.Outcome) {
	placed := 0
	for _, i := range result.Committed {
		g := &plan.Groups[i]
		placed += len(g.Placements)
		m.moves.Add(float64(moved(g)))
		m.placements.WithLabelValues("updated").Add(float64(len(g.Updates)))
		if n := len(g.Evictions) + evictedAssignments(g); n > 0 && out.Version != nil {
			m.victims.WithLabelValues(out.Version.Name).Add(float64(n))
		}
	}
	rejected := 0
	for _, r := range result.Rejected {
		if r.Places != nil { // part of a group; the rest was committed
			placed -= len(r.Places)
			rejected += len(r.Places)
		} else {
			rejected += len(plan.Groups[r.Group].Placements)
		}
	}
	m.placements.WithLabelValues("placed").Add(float64(placed))
	m.placements.WithLabelValues("rejected").Add(float64(rejected))
}

// moved returns how many allocations a group moves.
func moved(g *model.CommitGroup) (n int) {
	for i := range g.Stops {
		if g.Stops[i].MovedTo != "" {
			n++
		}
	}
	return n
}

// evictedAssignments returns how many assignments a group evicts from member clusters.
func evictedAssignments(g *model.CommitGroup) (n int) {
	for i := range g.Withdrawals {
		if g.Withdrawals[i].By != "" {
			n++
		}
	}
	return n
}

// addRejections adds the counts of the applier of a term that has ended.
func (m *metrics) addRejections(stats planner.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for cause, n := range stats.ByCause() {
		m.rejected[cause] += n
	}
}

// rejections returns how many commit groups were rejected, by cause.
func (s *Server) rejections() map[string]uint64 {
	all := map[string]uint64{}
	if t := s.term.Load(); t != nil {
		stats := t.applier.Stats()
		all = stats.ByCause()
	}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	for cause, n := range s.metrics.rejected {
		all[cause] += n
	}
	return all
}

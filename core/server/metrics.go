package server

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/worker"
)

// metrics is what a server measures of itself; METRICS.md says what each means.
// Without a registry it counts for nobody.
type metrics struct {
	redeliveries prometheus.Counter
	process      *prometheus.HistogramVec
	placements   *prometheus.CounterVec
	nodes        prometheus.Histogram
	cut          prometheus.Counter
	decisions    *prometheus.CounterVec
	victims      *prometheus.CounterVec
	verify       prometheus.Histogram
	commit       prometheus.Histogram

	mu       sync.Mutex
	rejected map[string]uint64 // by cause, of terms that are over
}

// fast is buckets for what takes microseconds to seconds.
func fast() []float64 { return prometheus.ExponentialBuckets(10e-6, 4, 11) }

func newMetrics(s *Server) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	m := &metrics{
		redeliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_broker_redeliveries_total", Help: "Evaluations handed out again because work on them came to nothing.",
		}),
		process: prometheus.NewHistogramVec(histogram("cede_worker_process_seconds",
			"How long workers took for an evaluation, plans included.", fast()), []string{"type"}),
		placements: counter("cede_sched_placements_total",
			"Instances that evaluations placed, could not place, or placed in vain.", "result"),
		nodes: prometheus.NewHistogram(histogram("cede_sched_nodes_evaluated",
			"Nodes of the cluster that an evaluation which places something chose from.", prometheus.ExponentialBuckets(1, 4, 9))),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_sched_searches_cut_total", Help: "Searches for places or victims that gave up before everything was tried.",
		}),
		decisions: counter("cede_preempt_decisions_total",
			"Evaluations in which somebody might have been evicted, by what came of it.", "policy", "outcome"),
		victims: counter("cede_preempt_victims_total", "Allocations evicted, by the policy that chose them.", "policy"),
		verify:  prometheus.NewHistogram(histogram("cede_plan_verify_seconds", "How long the check of a plan took.", fast())),
		commit: prometheus.NewHistogram(histogram("cede_plan_commit_seconds",
			"How long the log took to commit and apply a batch of plans.", fast())),
		rejected: map[string]uint64{},
	}
	for t := range model.JobType(model.EvalTypes) {
		m.process.WithLabelValues(t.String())
	}
	for _, result := range []string{"placed", "updated", "rejected", "unplaced"} {
		m.placements.WithLabelValues(result)
	}
	s.policies.OnName(m.begin)
	if s.cfg.Registry != nil {
		s.cfg.Registry.MustRegister(m.redeliveries, m.process, m.placements, m.nodes, m.cut, m.decisions, m.victims,
			m.verify, m.commit, newGauges(s))
	}
	return m
}

// begin has what is counted of a policy be there before there is anything to count: a
// rate over what appears with its first value misses that.
func (m *metrics) begin(policy string) {
	for _, outcome := range []string{"evicted", "spared", "fault"} {
		m.decisions.WithLabelValues(policy, outcome)
	}
	m.victims.WithLabelValues(policy)
}

func (m *metrics) verified(d time.Duration)  { m.verify.Observe(d.Seconds()) }
func (m *metrics) committed(d time.Duration) { m.commit.Observe(d.Seconds()) }

func (m *metrics) delivered(d *broker.Delivery) {
	if d.Attempt > 1 {
		m.redeliveries.Inc()
	}
}

// decided is told of every outcome, on the worker's goroutine.
func (s *Server) decided(d scheduler.Decision) {
	s.policies.Observe(d)
	out := d.Outcome
	if out.Version == nil || out.Plan.Empty() && out.Placed() {
		return
	}
	s.metrics.nodes.Observe(float64(d.Snap.NodeCount()))
	s.metrics.cut.Add(float64(out.SearchesCut))
	evicts := false
	for i := range out.Plan.Groups {
		evicts = evicts || len(out.Plan.Groups[i].Evictions)+bindingVictims(&out.Plan.Groups[i]) > 0
	}
	switch {
	case out.Fault != nil:
		s.metrics.decisions.WithLabelValues(out.Version.Name, "fault").Inc()
	case evicts:
		s.metrics.decisions.WithLabelValues(out.Version.Name, "evicted").Inc()
	case len(out.Calls) > 0:
		s.metrics.decisions.WithLabelValues(out.Version.Name, "spared").Inc()
	}
}

// worked is told what became of every evaluation, on the worker's goroutine.
func (s *Server) worked(r worker.Report) {
	m := s.metrics
	m.process.WithLabelValues(r.Eval.Type.String()).Observe(r.Took.Seconds())
	if r.Outcome == nil {
		return
	}
	for i, plan := range r.Plans {
		m.count(plan, r.Results[i], r.Outcome)
	}
	for _, n := range r.Outcome.Queued {
		m.placements.WithLabelValues("unplaced").Add(float64(n))
	}
}

func (m *metrics) count(plan *model.Plan, result *model.PlanResult, out *scheduler.Outcome) {
	placed := 0
	for _, i := range result.Committed {
		g := &plan.Groups[i]
		placed += len(g.Placements)
		m.placements.WithLabelValues("updated").Add(float64(len(g.Updates)))
		if n := len(g.Evictions) + bindingVictims(g); n > 0 && out.Version != nil {
			m.victims.WithLabelValues(out.Version.Name).Add(float64(n))
		}
	}
	rejected := 0
	for _, r := range result.Rejected {
		if r.Places != nil { // of a group that was committed beside them
			placed -= len(r.Places)
			rejected += len(r.Places)
		} else {
			rejected += len(plan.Groups[r.Group].Placements)
		}
	}
	m.placements.WithLabelValues("placed").Add(float64(placed))
	m.placements.WithLabelValues("rejected").Add(float64(rejected))
}

// bindingVictims is how many assignments leave a member cluster for others.
func bindingVictims(g *model.CommitGroup) (n int) {
	for i := range g.Withdrawals {
		if g.Withdrawals[i].By != "" {
			n++
		}
	}
	return n
}

// ended keeps what the applier of a term has counted.
func (m *metrics) ended(stats planner.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for cause, n := range stats.ByCause() {
		m.rejected[cause] += n
	}
}

// rejections is how many commit groups no longer held, by cause.
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

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
)

// gauges is what is read off the server when somebody asks.
type gauges struct {
	s                                                *Server
	evals, waits, depth, rejections, leader, applied *prometheus.Desc
}

var _ prometheus.Collector = (*gauges)(nil)

func newGauges(s *Server) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		s:     s,
		evals: desc("cede_broker_evals", "Evaluations in the broker of the leader, by state.", "state"),
		waits: desc("cede_broker_wait_seconds", "How long evaluations waited until they were handed out.", "type"),
		depth: desc("cede_plan_queue_depth", "Plans that wait for the applier."),
		rejections: desc("cede_plan_node_rejections_total",
			"Commit groups of plans that no longer held, by reason.", "reason"),
		leader:  desc("cede_raft_is_leader", "1 on the server that leads."),
		applied: desc("cede_raft_applied_index", "Index of the newest entry that is applied on this server."),
	}
}

// Describe lists the metrics.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.evals, g.waits, g.depth, g.rejections, g.leader, g.applied} {
		to <- d
	}
}

// Collect reads them.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	stats := g.s.broker.Stats()
	for _, c := range states(stats.Total()) {
		gauge(g.evals, float64(c.n), c.name)
	}
	for t := range stats.Waits {
		w := &stats.Waits[t]
		to <- prometheus.MustNewConstSummary(g.waits, uint64(w.Deliveries), w.Total.Seconds(), nil, model.JobType(t).String())
	}
	gauge(g.depth, float64(g.s.plans.Depth()))
	for cause, n := range g.s.rejections() {
		to <- prometheus.MustNewConstMetric(g.rejections, prometheus.CounterValue, float64(n), cause)
	}
	leads := 0.0
	if g.s.cfg.Log.IsLeader() {
		leads = 1
	}
	gauge(g.leader, leads)
	gauge(g.applied, float64(g.s.Snapshot().Index()))
}

type stateCount struct {
	name string
	n    int
}

func states(c broker.Counts) []stateCount {
	return []stateCount{
		{"ready", c.Ready},
		{"unacked", c.Unacked},
		{"pending", c.Pending},
		{"delayed", c.Delayed},
		{"backoff", c.Backoff},
		{"cancelable", c.Cancelable},
		{"failed", c.Failed},
		{"blocked", c.Blocked},
	}
}

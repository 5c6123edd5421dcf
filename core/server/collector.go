package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// collector reads metrics from the server when they are collected.
type collector struct {
	s                                                          *Server
	evals, waits, depth, rejections, leader, applied, bindings *prometheus.Desc
	voters, alive, workers, blocked                            *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

func newCollector(s *Server) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &collector{
		s:     s,
		evals: desc("cede_broker_evals", "Evaluations in the broker of the leader, by state.", "state"),
		waits: desc("cede_broker_wait_seconds", "Time that evaluations waited for delivery.", "type"),
		depth: desc("cede_plan_queue_depth", "Plans that wait for the applier."),
		rejections: desc("cede_plan_node_rejections_total",
			"Commit groups of plans that were rejected, by reason.", "reason"),
		bindings: desc("cede_bindings", "Bindings, by how many of their replicas are assigned.", "state"),
		leader:   desc("cede_raft_is_leader", "1 on the leader, else 0."),
		applied:  desc("cede_raft_applied_index", "Index of the newest entry that is applied on this server."),
		voters:   desc("cede_raft_voters", "Voting servers, as seen by this server."),
		workers:  desc("cede_workers", "Workers of this server: configured, and running.", "state"),
		blocked:  desc("cede_broker_blocked_oldest_seconds", "Time since the oldest blocked evaluation was created.", "type"),
		alive:    desc("cede_raft_voters_alive", "Voting servers that are alive, as this server observes them."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.evals, c.waits, c.depth, c.rejections, c.leader, c.applied, c.bindings, c.voters, c.alive, c.workers, c.blocked} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	stats := c.s.broker.Stats()
	for _, count := range evalCounts(stats.Total()) {
		gauge(c.evals, float64(count.n), count.state)
	}
	for t := range stats.Waits {
		w := &stats.Waits[t]
		to <- prometheus.MustNewConstSummary(c.waits, uint64(w.Deliveries), w.Total.Seconds(), nil, model.JobType(t).String())
	}
	gauge(c.depth, float64(c.s.plans.Depth()))
	for cause, n := range c.s.rejections() {
		to <- prometheus.MustNewConstMetric(c.rejections, prometheus.CounterValue, float64(n), cause)
	}
	workers := c.s.Workers()
	gauge(c.workers, float64(workers.Wanted), "wanted")
	gauge(c.workers, float64(workers.Running), "running")
	leader := 0.0
	if c.s.cfg.Log.IsLeader() {
		leader = 1
	}
	gauge(c.leader, leader)
	snap := c.s.Snapshot()
	gauge(c.applied, float64(snap.Index()))
	for _, count := range bindingCounts(snap) {
		gauge(c.bindings, float64(count.n), count.state)
	}
	for t, at := range oldestBlocked(snap) {
		age := 0.0
		if at != 0 {
			age = max(0, c.s.cfg.Clock.Now().Sub(time.Unix(0, at)).Seconds())
		}
		gauge(c.blocked, age, model.JobType(t).String())
	}
	voters, alive := c.s.CountVoters()
	gauge(c.voters, float64(voters))
	gauge(c.alive, float64(alive))
}

// oldestBlocked returns when the oldest blocked evaluation of each type was created, in
// Unix nanoseconds; 0: there is none.
func oldestBlocked(snap *state.Snapshot) (at [model.EvalTypes]int64) {
	for e := range snap.Evals() {
		if e.Status == model.EvalBlocked && (at[e.Type] == 0 || e.CreateTime < at[e.Type]) {
			at[e.Type] = e.CreateTime
		}
	}
	return at
}

type stateCount struct {
	state string
	n     int
}

func evalCounts(c broker.Counts) []stateCount {
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

// bindingCounts counts bindings by state. A duplicated binding counts as bound if it has
// one cluster.
func bindingCounts(snap *state.Snapshot) []stateCount {
	counts := []stateCount{{state: "bound"}, {state: "partial"}, {state: "pending"}, {state: "stopped"}}
	for b := range snap.Bindings() {
		placed := 0
		for _, a := range snap.BindingAssignments(b.Key()) {
			if a.CountsAsPlaced() {
				placed += a.Replicas
			}
		}
		switch {
		case b.Stopped:
			counts[3].n++
		case placed >= b.Replicas:
			counts[0].n++
		case placed > 0:
			counts[1].n++
		default:
			counts[2].n++
		}
	}
	return counts
}

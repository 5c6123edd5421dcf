package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// gauges is what is read off the server when somebody asks.
type gauges struct {
	s                                                          *Server
	evals, waits, depth, rejections, leader, applied, bindings *prometheus.Desc
	voters, alive, workers                                     *prometheus.Desc
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
		bindings: desc("cede_bindings", "Bindings by how much of what they want has a place.", "state"),
		leader:   desc("cede_raft_is_leader", "1 on the server that leads."),
		applied:  desc("cede_raft_applied_index", "Index of the newest entry that is applied on this server."),
		voters:   desc("cede_raft_voters", "Servers that vote, as this server knows."),
		workers:  desc("cede_workers", "Workers of this server: those that are wanted, and those that run.", "state"),
		alive:    desc("cede_raft_voters_alive", "Servers that vote and are there, as this server sees them."),
	}
}

// Describe lists the metrics.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.evals, g.waits, g.depth, g.rejections, g.leader, g.applied, g.bindings, g.voters, g.alive, g.workers} {
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
	workers := g.s.Workers()
	gauge(g.workers, float64(workers.Wanted), "wanted")
	gauge(g.workers, float64(workers.Running), "running")
	leads := 0.0
	if g.s.cfg.Log.IsLeader() {
		leads = 1
	}
	gauge(g.leader, leads)
	snap := g.s.Snapshot()
	gauge(g.applied, float64(snap.Index()))
	for _, c := range bindingStates(snap) {
		gauge(g.bindings, float64(c.n), c.name)
	}
	voters, alive := g.s.countVoters()
	gauge(g.voters, float64(voters))
	gauge(g.alive, float64(alive))
}

// countVoters is how many servers vote, and how many of them are there. A voter that
// is gone costs nothing that anybody notices, until one more is: so it is measured.
func (s *Server) countVoters() (all, alive int) {
	if s.cfg.Raft == nil {
		return 1, 1 // this one
	}
	there := map[string]bool{s.cfg.ID: true}
	for _, m := range s.Members() {
		there[m.ID] = there[m.ID] || m.Status == MemberAlive
	}
	voters := s.voters()
	for _, id := range voters {
		if there[id] {
			alive++
		}
	}
	return len(voters), alive
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

// bindingStates counts bindings. What is duplicated counts as bound with one cluster.
func bindingStates(snap *state.Snapshot) []stateCount {
	counts := []stateCount{{name: "bound"}, {name: "partial"}, {name: "pending"}, {name: "stopped"}}
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

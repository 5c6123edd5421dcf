package server

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// policyMetrics is what is measured of policies.
type policyMetrics struct {
	calls     *prometheus.HistogramVec
	faults    *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
}

// newPolicyMetrics registers the metrics; without a registry they count for
// nobody.
func newPolicyMetrics(r *prometheus.Registry, p *policies) *policyMetrics {
	m := &policyMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cede_policy_call_seconds", Help: "How long calls of policies took, by hook.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10), // 10 µs to 2.6 s
		}, []string{"policy", "point"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_policy_faults_total", Help: "Evaluations in which a policy was at fault.",
		}, []string{"policy", "fault"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_policy_fallbacks_total", Help: "Evaluations in which default decided instead of a policy at fault.",
		}, []string{"policy"}),
	}
	if r != nil {
		r.MustRegister(m.calls, m.faults, m.fallbacks, &policyCollector{
			policies: p,
			active: prometheus.NewDesc("cede_policy_active_info",
				"Policies in force on this server; always 1.", []string{"policy", "digest"}, nil),
			instances: prometheus.NewDesc("cede_policy_instances",
				"Instances of policies in force: idle, or busy with an evaluation.", []string{"policy", "state"}, nil),
		})
	}
	return m
}

// begin is as that of metrics.
func (m *policyMetrics) begin(name string) {
	for fault := range policy.Fault(policy.Faults) {
		m.faults.WithLabelValues(name, fault.String())
	}
	m.fallbacks.WithLabelValues(name)
}

// count counts an outcome.
func (m *policyMetrics) count(out *scheduler.Outcome) {
	for i := range out.Calls {
		c := &out.Calls[i]
		m.calls.WithLabelValues(c.Policy, c.Hook).Observe(c.Duration.Seconds())
	}
	fault, ok := errors.AsType[*policy.Error](out.Fault)
	if !ok {
		return
	}
	m.faults.WithLabelValues(fault.Policy, fault.Fault.String()).Inc()
	if out.Version != nil && out.Version.ID != fault.Version {
		m.fallbacks.WithLabelValues(fault.Policy).Inc()
	}
}

// policyCollector tells what is in force when somebody asks.
type policyCollector struct {
	policies          *policies
	active, instances *prometheus.Desc
}

var _ prometheus.Collector = (*policyCollector)(nil)

// Describe names the metrics.
func (c *policyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.active
	ch <- c.instances
}

// Collect measures what is in force.
func (c *policyCollector) Collect(ch chan<- prometheus.Metric) {
	set := c.policies.active.Pin()
	defer set.Unpin()
	for _, v := range namedOnce(set.Versions()) {
		ch <- prometheus.MustNewConstMetric(c.active, prometheus.GaugeValue, 1, v.Name, v.Digest)
		idle, busy := v.Instances()
		ch <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(idle), v.Name, "idle")
		ch <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(busy), v.Name, "busy")
	}
}

// namedOnce leaves out versions whose name an earlier one has: the built-in
// default, which stands behind every set, where another one has its name.
func namedOnce(list []*policy.Version) []*policy.Version {
	seen := map[string]bool{}
	var once []*policy.Version
	for _, v := range list {
		if !seen[v.Name] {
			seen[v.Name] = true
			once = append(once, v)
		}
	}
	return once
}

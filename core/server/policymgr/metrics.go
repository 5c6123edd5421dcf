package policymgr

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// metrics are the metrics of policies; core/server/METRICS.md lists them.
type metrics struct {
	calls     *prometheus.HistogramVec
	faults    *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
}

// newMetrics registers the metrics, unless the registry is nil.
func newMetrics(r *prometheus.Registry, set *policy.ActiveSet) *metrics {
	m := &metrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cede_policy_call_seconds", Help: "Duration of policy calls, by hook.",
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
		r.MustRegister(m.calls, m.faults, m.fallbacks, &collector{
			set: set,
			active: prometheus.NewDesc("cede_policy_active_info",
				"Active policies of this server; always 1.", []string{"policy", "digest"}, nil),
			instances: prometheus.NewDesc("cede_policy_instances",
				"Instances of active policies, by state: idle, or busy with an evaluation.", []string{"policy", "state"}, nil),
		})
	}
	return m
}

// initPolicy creates the counters of a policy with value 0: a rate over a counter that
// appears with its first value misses that value.
func (m *metrics) initPolicy(name string) {
	for fault := range policy.Fault(policy.Faults) {
		m.faults.WithLabelValues(name, fault.String())
	}
	m.fallbacks.WithLabelValues(name)
}

// count counts an outcome.
func (m *metrics) count(out *scheduler.Outcome) {
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

// collector reads the active set when metrics are collected.
type collector struct {
	set               *policy.ActiveSet
	active, instances *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.active
	ch <- c.instances
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	set := c.set.Pin()
	defer set.Unpin()
	for _, v := range firstOfEachName(set.Versions()) {
		ch <- prometheus.MustNewConstMetric(c.active, prometheus.GaugeValue, 1, v.Name, v.Digest)
		idle, busy := v.Instances()
		ch <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(idle), v.Name, "idle")
		ch <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(busy), v.Name, "busy")
	}
}

// firstOfEachName returns the first version of each name. The builtin default is in every
// set, even if another version has its name.
func firstOfEachName(list []*policy.Version) []*policy.Version {
	seen := map[string]bool{}
	var first []*policy.Version
	for _, v := range list {
		if !seen[v.Name] {
			seen[v.Name] = true
			first = append(first, v)
		}
	}
	return first
}

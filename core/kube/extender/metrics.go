package extender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of an Extender.
type metrics struct {
	preemptions *prometheus.CounterVec
	podGroups   *prometheus.CounterVec
	seconds     prometheus.Histogram
}

// Values of the label of cede_kube_pod_group_victims_total.
const (
	groupNamed    = "named"
	groupExcluded = "excluded"
)

// newMetrics returns working metrics. If r is nil they are not registered.
func newMetrics(r prometheus.Registerer, c *cache) *metrics {
	m := &metrics{
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_kube_preemptions_total",
			Help: "Preemption requests of kube-scheduler by final outcome. A response that names victims is counted when the eviction is observed (chosen), when kube-scheduler did not evict them (discarded), or after the deadline without a feed (unconfirmed).",
		}, []string{"outcome"}),
		podGroups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_kube_pod_group_victims_total",
			Help: "Pod groups that preemption requests concern: groups of the disruption mode All named as victims as a whole (named), or groups excluded because an extender cannot evict them: those with pods on several nodes, and composite groups (excluded).",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "cede_kube_preemption_duration_seconds",
			Help:    "Duration of preemption requests.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	for _, end := range []string{resultChosen, resultDiscarded, resultUnconfirmed, resultVetoed, resultGroup, resultUnknown, resultFault, resultTimeout, resultBusy, resultRefused, resultStandby, resultInternal} {
		m.preemptions.WithLabelValues(end)
	}
	for _, result := range []string{groupNamed, groupExcluded} {
		m.podGroups.WithLabelValues(result)
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.preemptions, m.podGroups, m.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_nodes", Help: "Nodes of the Kubernetes cluster in the cache.",
	}, func() float64 { nodes, _ := c.size(); return float64(nodes) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_pods", Help: "Pods of the Kubernetes cluster in the cache.",
	}, func() float64 { _, pods := c.size(); return float64(pods) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_open_answers", Help: "Preemption responses that name victims whose eviction is neither observed nor overdue.",
	}, func() float64 { return float64(c.unconfirmed()) }))
	return m
}

func (m *metrics) preempted(end outcome, duration time.Duration) {
	if end.result != resultAnswered {
		m.count(end.result)
	}
	m.seconds.Observe(duration.Seconds())
	m.podGroups.WithLabelValues(groupNamed).Add(float64(end.groups))
	m.podGroups.WithLabelValues(groupExcluded).Add(float64(len(end.excluded)))
}

func (m *metrics) count(result string) { m.preemptions.WithLabelValues(result).Inc() }

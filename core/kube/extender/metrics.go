package extender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the extender measures.
type metrics struct {
	preemptions *prometheus.CounterVec
	seconds     prometheus.Histogram
}

// newMetrics makes metrics that work; with a nil registerer nobody reads them.
func newMetrics(r prometheus.Registerer, size func() (nodes, pods int)) *metrics {
	m := &metrics{
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_kube_preemptions_total",
			Help: "Preemptions that kube-scheduler asked about, by how they were answered; for all but chosen and vetoed its own proposal stood.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "cede_kube_preemption_duration_seconds",
			Help:    "How long answering a preemption took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	for _, end := range []string{resultChosen, resultVetoed, resultUnknown, resultFault, resultTimeout, resultBusy, resultInternal} {
		m.preemptions.WithLabelValues(end)
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.preemptions, m.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_nodes", Help: "Nodes of the Kubernetes cluster that the extender knows.",
	}, func() float64 { nodes, _ := size(); return float64(nodes) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_pods", Help: "Pods of the Kubernetes cluster that the extender knows.",
	}, func() float64 { _, pods := size(); return float64(pods) }))
	return m
}

func (m *metrics) preempted(end outcome, took time.Duration) {
	m.preemptions.WithLabelValues(end.result).Inc()
	m.seconds.Observe(took.Seconds())
}

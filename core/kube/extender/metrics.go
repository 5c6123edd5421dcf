package extender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of an Extender.
type metrics struct {
	preemptions *prometheus.CounterVec
	seconds     prometheus.Histogram
}

// newMetrics returns working metrics. If r is nil they are not registered.
func newMetrics(r prometheus.Registerer, size func() (nodes, pods int)) *metrics {
	m := &metrics{
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cede_kube_preemptions_total",
			Help: "Preemption requests of kube-scheduler by outcome. For outcomes other than chosen and vetoed its own proposal stood.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "cede_kube_preemption_duration_seconds",
			Help:    "Duration of preemption requests.",
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
		Name: "cede_kube_nodes", Help: "Nodes of the Kubernetes cluster in the cache.",
	}, func() float64 { nodes, _ := size(); return float64(nodes) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_pods", Help: "Pods of the Kubernetes cluster in the cache.",
	}, func() float64 { _, pods := size(); return float64(pods) }))
	return m
}

func (m *metrics) preempted(end outcome, duration time.Duration) {
	m.preemptions.WithLabelValues(end.result).Inc()
	m.seconds.Observe(duration.Seconds())
}

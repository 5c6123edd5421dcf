package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the metrics of the API.
type metrics struct {
	seconds *prometheus.HistogramVec
	panics  prometheus.Counter
}

// newMetrics returns working metrics. If r is nil, they are not exported.
func newMetrics(r *prometheus.Registry) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "cede_http_request_duration_seconds",
			Help:    "Duration of API requests, including blocking queries and streams.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
		}, []string{"route", "code"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cede_http_panics_total",
			Help: "Requests that failed with a panic. Each one is a bug and is logged.",
		}),
	}
	if r != nil {
		r.MustRegister(m.seconds, m.panics)
	}
	return m
}

func (m *metrics) observe(route string, status int, took time.Duration) {
	m.seconds.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

package app

import (
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cede-scheduler/cede/core/agent"
)

// metrics is what the process measures of itself.
type metrics struct {
	registry   *prometheus.Registry
	reloadOK   prometheus.Gauge
	reloadTime prometheus.Gauge
}

func newMetrics(b Build) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cede_config_last_reload_successful", Help: "1 where the configuration was taken over when it was last read.",
		}),
		reloadTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cede_config_last_reload_success_timestamp_seconds", Help: "When the configuration was last taken over.",
		}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cede_build_info", Help: "1, with what the program was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	info.Set(1)
	m.registry.MustRegister(m.reloadOK, m.reloadTime, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reloaded(nil)
	return m
}

// reloaded notes how reading the configuration went.
func (m *metrics) reloaded(err error) {
	if err != nil {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloadTime.Set(float64(time.Now().UnixMilli()) / 1000)
}

// handler serves what was measured and, for whoever looks for what is slow, the
// profiles of the runtime.
func (m *metrics) handler(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// gauges is a collector of values that are looked up when they are asked for.
type gauges struct {
	desc  *prometheus.Desc
	label string
	read  func() map[string]float64
}

func newGauges(name, help, label string, read func() map[string]float64) *gauges {
	return &gauges{desc: prometheus.NewDesc(name, help, []string{label}, nil), label: label, read: read}
}

// Describe names the metric.
func (g *gauges) Describe(c chan<- *prometheus.Desc) { c <- g.desc }

// Collect reads the values.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	for value, n := range g.read() {
		c <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, n, value)
	}
}

func allocGauges(a *agent.Agent) *gauges {
	return newGauges("cede_node_allocs", "Allocations on this node, by what was last reported of them.", "status", func() map[string]float64 {
		values := map[string]float64{}
		for status, n := range a.Stats() {
			values[string(status)] = float64(n)
		}
		return values
	})
}

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

// metrics holds the metrics of the process.
type metrics struct {
	registry   *prometheus.Registry
	reloadOK   prometheus.Gauge
	reloadTime prometheus.Gauge
	refused    *prometheus.CounterVec // connections, by listener
	apply      prometheus.Histogram   // time to apply log entries to the state
	collect    prometheus.Histogram   // garbage collection of storage files
}

func newMetrics(b Build) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cede_config_last_reload_successful", Help: "1 if the last reload of the configuration succeeded, else 0.",
		}),
		reloadTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cede_config_last_reload_success_timestamp_seconds", Help: "Time of the last successful reload of the configuration.",
		}),
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cede_connections_refused_total", Help: "Connections refused because their address had reached its limit.",
	}, []string{"listener"})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cede_build_info", Help: "Build information of the program; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	info.Set(1)
	m.registry.MustRegister(m.reloadOK, m.reloadTime, m.refused, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.recordReload(nil)
	return m
}

// recordReload records the result of a reload.
func (m *metrics) recordReload(err error) {
	if err != nil {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloadTime.Set(float64(time.Now().UnixMilli()) / 1000)
}

// observeCluster exports whether the API server of a Kubernetes cluster is reachable.
func (m *metrics) observeCluster(reachable func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cede_kube_api_reachable", Help: "1 if the API server of Kubernetes answered the last request, else 0: then the cache holds the objects that were read before.",
	}, func() float64 {
		if reachable() {
			return 1
		}
		return 0
	}))
}

// handler serves the metrics and, if profiles is set, the profiles of the runtime.
func (m *metrics) handler(g *metricsGuard, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.protectMetrics(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})))
	if profiles {
		for path, h := range map[string]http.HandlerFunc{
			"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
		} {
			mux.Handle("/debug/pprof/"+path, g.protectProfiles(h))
		}
	}
	return mux
}

// gaugeCollector collects values that are read at every scrape.
type gaugeCollector struct {
	desc *prometheus.Desc
	read func() map[string]float64
}

func newGaugeCollector(name, help, label string, read func() map[string]float64) *gaugeCollector {
	return &gaugeCollector{desc: prometheus.NewDesc(name, help, []string{label}, nil), read: read}
}

// Describe implements prometheus.Collector.
func (g *gaugeCollector) Describe(c chan<- *prometheus.Desc) { c <- g.desc }

// Collect implements prometheus.Collector.
func (g *gaugeCollector) Collect(c chan<- prometheus.Metric) {
	for value, n := range g.read() {
		c <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, n, value)
	}
}

// registerServerMetrics registers the metrics of a server's log and storage.
func (m *metrics) registerServerMetrics() {
	m.apply = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "cede_raft_fsm_apply_seconds", Help: "Duration of applying log entries to the state.",
		Buckets: prometheus.ExponentialBuckets(10e-6, 4, 11),
	})
	m.collect = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "cede_storage_gc_seconds", Help: "Duration of storage garbage collection: log entries behind a snapshot, and expired history.",
		Buckets: prometheus.ExponentialBuckets(100e-6, 4, 10),
	})
	m.registry.MustRegister(m.apply, m.collect)
}

// timer measures the time to apply an entry.
func (m *metrics) timer() func() {
	began := time.Now()
	return func() { m.apply.Observe(time.Since(began).Seconds()) }
}

// allocStatuses lists the client statuses of allocations.
var allocStatuses = []agent.Status{agent.StatusPending, agent.StatusRunning, agent.StatusComplete, agent.StatusFailed}

func allocGauges(a *agent.Agent) *gaugeCollector {
	return newGaugeCollector("cede_node_allocs", "Allocations on this node by last reported status.", "status", func() map[string]float64 {
		values := map[string]float64{}
		for _, status := range allocStatuses {
			values[string(status)] = 0
		}
		for status, n := range a.Stats() {
			values[string(status)] = float64(n)
		}
		return values
	})
}

// memberGauges returns the gauge of the pool's servers. If the server has no gossip,
// it counts itself alone.
func memberGauges(t *poolMember) *gaugeCollector {
	return newGaugeCollector("cede_gossip_members", "Servers of the pool by status, as seen by this server.", "status", func() map[string]float64 {
		n := map[string]float64{"alive": 0, "failed": 0, "left": 0}
		if t == nil || t.gossip == nil {
			n["alive"] = 1
			return n
		}
		for _, m := range t.gossip.Members() {
			n[m.Status.String()]++
		}
		return n
	})
}

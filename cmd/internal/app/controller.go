package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/pool"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A Cluster is a Kubernetes cluster that feeds an extender.
type Cluster interface {
	// Run feeds until the context is cancelled, and returns after all goroutines ended.
	Run(ctx context.Context)
	// Ready returns nil once the extender has received the whole cluster.
	Ready() error
	// Reachable reports whether the API server answered the last request.
	Reachable() bool
}

// An Elector elects one of several replicas.
type Elector interface {
	// Run takes part in the election until the context is cancelled.
	Run(ctx context.Context)
	// Leads returns nil if this process is the leader, and otherwise the reason.
	Leads() error
}

// A Feeder receives the objects of a Cluster.
type Feeder interface {
	Feed(d *kube.Dump, whole bool)
}

// ControllerOptions configure a controller.
type ControllerOptions struct {
	Options
	// Connect returns the cluster that the configuration names.
	Connect func(c *config.Kubernetes, to Feeder, log *slog.Logger) (Cluster, error)
	// Elect returns the election that the configuration names.
	Elect func(c *config.Kubernetes, log *slog.Logger) (Elector, error)
}

// A controller answers kube-scheduler from a watch of its cluster, without a server. It
// evicts nothing itself.
type controller struct {
	config   *config.Config
	log      *slog.Logger
	level    slog.LevelVar
	metrics  *metrics
	certs    *certificates // nil without TLS
	policy   *watchedPolicy
	reporter *pool.Reporter // nil without a pool
	version  string         // of the program
	extender *extender.Extender
	cluster  Cluster
	elector  Elector // nil: the only replica
	http     net.Listener
	guard    *metricsGuard
	monitor  net.Listener // of the metrics; nil if disabled
	down     teardown
	failed   chan error // capacity 2: one of each listener

	mu          sync.Mutex // held by reload
	reloadError string     // of the last reload, which is logged once
}

// RunController runs a controller until the context is cancelled or a listener fails.
// ready is called with the URL once it listens. A value of reload reads certificates
// and policy again.
func RunController(ctx context.Context, o ControllerOptions, reload <-chan os.Signal, ready func(url string)) (err error) {
	c := &controller{config: &o.Config.Config, metrics: newMetrics(o.Build), version: o.Build.Version, failed: make(chan error, 2)}
	c.level.Set(parseLevel(c.config.Log.Level))
	c.log = newLogger(o.Stderr, o.Terminal, c.config.Log.Format, &c.level)
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, c.down.run(stop))
	}()
	for _, w := range o.Config.Warnings() {
		c.log.WarnContext(ctx, "insecure configuration", "key", w.Key, "where", w.Where, "text", w.Text)
	}
	if err := c.start(ctx, o); err != nil {
		return err
	}
	ready(c.url())
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.failed:
			return err
		case <-reload:
			c.reload(ctx)
		}
	}
}

func (c *controller) start(ctx context.Context, o ControllerOptions) (err error) {
	if c.certs, err = newCertificates(c.config.TLS); err != nil {
		return err
	}
	transport := c.certs.transport()
	c.down.push("connections of the pool", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	servers, err := dialPool(&c.config.Kubernetes, transport, o.Build.Version)
	if err != nil {
		return err
	}
	if servers != nil {
		c.reporter = pool.NewReporter(servers, c.state, func() string { return c.policy.activeVersion() }, c.log)
	}
	source, err := newPolicySource(&c.config.Kubernetes, servers)
	if err != nil {
		return err
	}
	if c.policy, err = newWatchedPolicy(ctx, c.config, source, c.log, c.metrics); err != nil {
		return err
	}
	c.down.push("policy", func(context.Context) error { return c.policy.close() })
	cfg := extender.Config{
		Policies: c.policy.active, Live: true, Deadline: c.config.Kubernetes.Deadline, EvictionDeadline: c.config.Kubernetes.EvictionDeadline,
		Logger: c.log, Registry: c.metrics.registry,
	}
	if c.reporter != nil {
		cfg.Decided = c.reporter.Add
	}
	c.extender, err = extender.New(cfg)
	if err != nil {
		return err
	}
	if c.cluster, err = o.Connect(&c.config.Kubernetes, c.extender, c.log); err != nil {
		return fmt.Errorf("cannot connect to the Kubernetes cluster: %w", err)
	}
	c.metrics.observeCluster(c.cluster.Reachable)
	if c.config.Kubernetes.Lease != "" {
		if c.elector, err = o.Elect(&c.config.Kubernetes, c.log); err != nil {
			return fmt.Errorf("cannot connect to the Kubernetes cluster: %w", err)
		}
	}
	if err := c.listen(); err != nil {
		return err
	}
	if c.reporter != nil {
		c.background("reports", c.reporter.Run) // ends after the last decision
	}
	c.background("watch", c.cluster.Run)
	if c.elector != nil {
		c.background("election", c.elector.Run) // ends, and releases the lease, after the last answer
	}
	c.background("reload", c.reloadPeriodically)
	c.background("policy changes", func(ctx context.Context) { source.Watch(ctx, func() { c.reload(ctx) }) })
	c.serve("HTTP", &http.Server{Handler: rest.NewBrowserGuard(c.http.Addr(), c.config.Listen.Hosts...).Protect(c.handler(), c.extender.RefuseVerb), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}, c.http)
	if c.monitor != nil {
		metrics := c.metrics.handler(c.guard, c.config.Telemetry.Pprof)
		c.serve("metrics", metricsServer(rest.NewBrowserGuard(c.monitor.Addr(), c.config.Listen.Hosts...).Protect(metrics)), c.monitor)
	}
	c.log.InfoContext(ctx, "listening", "url", c.url(), "policy", c.config.Kubernetes.Policy)
	return nil
}

// background runs fn until the controller stops.
func (c *controller) background(name string, fn func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { fn(ctx) })
	c.down.push(name, func(context.Context) error {
		cancel()
		running.Wait()
		return nil
	})
}

func (c *controller) listen() error {
	l, err := net.Listen("tcp", c.config.Listen.HTTP)
	if err != nil {
		return listenError("listen.http", err)
	}
	c.down.push("HTTP listener", func(context.Context) error { return closed(l) })
	limited := netutil.LimitListener(limitPerAddress(l, c.config.Limits.ConnectionsPerAddress, c.metrics.refused.WithLabelValues("http")), c.config.Limits.Connections)
	c.http = c.withTLS(limited, c.config.TLS.VerifyClient)
	if c.config.Listen.Metrics == "" {
		return nil
	}
	m, err := net.Listen("tcp", c.config.Listen.Metrics)
	if err != nil {
		return listenError("listen.metrics", err)
	}
	c.down.push("metrics listener", func(context.Context) error { return closed(m) })
	c.guard = &metricsGuard{local: c.config.MetricsLocal()}
	c.guard.setToken(c.config.Telemetry.Token)
	c.monitor = netutil.LimitListener(limitPerAddress(m, metricsConnsPerAddress, c.metrics.refused.WithLabelValues("metrics")), metricsConns)
	if !c.guard.local {
		c.monitor = c.withTLS(c.monitor, false)
	}
	return nil
}

// withTLS wraps a listener if certificates are configured. If verify is set, client
// certificates are verified but not required, because the kubelet has none for its
// probes; handlers check for them.
func (c *controller) withTLS(l net.Listener, verify bool) net.Listener {
	if !c.certs.hasServerCertificate() {
		return l
	}
	outer := c.certs.server(false)
	inner := outer.GetConfigForClient
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		one, err := inner(hello)
		if verify && err == nil {
			one.ClientAuth, one.ClientCAs = tls.VerifyClientCertIfGiven, c.certs.now.Load().roots
		}
		return one, err
	}
	return tls.NewListener(l, outer)
}

func (c *controller) serve(name string, srv *http.Server, l net.Listener) {
	srv.ErrorLog = slog.NewLogLogger(c.log.Handler(), slog.LevelDebug)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.failed <- fmt.Errorf("%s: %w", name, err)
		}
	}()
	c.down.push(name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // connections that are still open after the timeout are closed
		}
		<-done
		return nil
	})
}

// url returns the address of the HTTP listener.
func (c *controller) url() string { return c.certs.scheme() + "://" + c.http.Addr().String() }

// handler returns the handler of the HTTP listener. Health checks need no
// authentication.
func (c *controller) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"GET /livez", "GET /healthz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, client.Health{OK: true}) })
	}
	ready := func(check func() error, hint string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				writeErrorResponse(w, http.StatusServiceUnavailable, client.CodeUnavailable, err.Error(), hint)
				return
			}
			writeJSON(w, http.StatusOK, client.Health{OK: true})
		}
	}
	const hint = "check the permissions of the service account and the address of the API server"
	mux.HandleFunc("GET /readyz", ready(func() error { return errors.Join(c.cluster.Ready(), c.leads()) }, hint))
	mux.HandleFunc("GET /readyz/sync", ready(c.cluster.Ready, hint))
	mux.Handle("/kube/v1/", c.authenticated(c.leading(c.extender.Handler("/kube/v1", extender.Filter, extender.Prioritize, extender.Preempt))))
	return mux
}

// state returns what is reported to the pool.
func (c *controller) state() client.KubernetesController {
	nodes, pods := c.extender.Size()
	s := client.KubernetesController{
		ID: c.config.Name, Version: c.version, Nodes: nodes, Pods: pods, Policy: c.config.Kubernetes.Policy, PolicyVersion: c.policy.activeVersion(),
	}
	if err := errors.Join(c.cluster.Ready(), c.leads()); err != nil {
		s.Problem = err.Error()
	}
	s.Ready = s.Problem == ""
	c.mu.Lock()
	defer c.mu.Unlock()
	s.PolicyProblem = c.reloadError
	return s
}

// leads returns nil if this replica answers kube-scheduler.
func (c *controller) leads() error {
	if c.elector == nil {
		return nil
	}
	return c.elector.Leads()
}

// leading answers requests as if there were no extender unless this replica leads: it has
// no record of the answers of the leader, and would name further victims.
func (c *controller) leading(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.leads() != nil {
			c.extender.Refuse(w, r, extender.ErrStandby)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authenticated requires the token or a verified client certificate if one of them is
// configured. kube-scheduler sends the token as the password of its URL.
func (c *controller) authenticated(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(c.config.Kubernetes.Token))
	open := c.config.Kubernetes.Token == "" && !c.config.TLS.VerifyClient
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, password, basic := r.BasicAuth(); basic {
			secret, ok = password, true
		}
		have := sha256.Sum256([]byte(secret))
		byToken := ok && c.config.Kubernetes.Token != "" && subtle.ConstantTimeCompare(have[:], want[:]) == 1
		byCertificate := c.config.TLS.VerifyClient && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && hasName(r.TLS.PeerCertificates[0], c.config.Kubernetes.ClientNames)
		if open || byToken || byCertificate {
			next.ServeHTTP(w, r)
			return
		}
		c.extender.Refuse(w, r, extender.ErrUnauthenticated)
	})
}

// hasName reports whether a certificate has one of the names. No names accept any.
func hasName(c *x509.Certificate, names []string) bool {
	return len(names) == 0 || slices.Contains(names, c.Subject.CommonName) || slices.ContainsFunc(c.DNSNames, func(name string) bool { return slices.Contains(names, name) })
}

// reload reads certificates and policy again. If that fails, the previous ones stay.
func (c *controller) reload(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.certs != nil {
		err = c.certs.load(c.config.TLS)
	}
	text := ""
	if err = errors.Join(err, c.policy.reload(ctx)); err != nil {
		text = err.Error()
	}
	if text != "" && text != c.reloadError {
		c.log.ErrorContext(ctx, "reload failed", "err", err)
	}
	c.reloadError = text
	c.metrics.recordReload(err)
}

// reloadPeriodically reads changed files. A directory that is mounted from a ConfigMap
// or Secret changes without a signal.
func (c *controller) reloadPeriodically(ctx context.Context) {
	tick := time.NewTicker(c.config.Kubernetes.PolicyInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.reload(ctx)
		}
	}
}

package api

import (
	"cmp"
	_ "embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/kube/report"
)

// Config holds the dependencies and settings of an API. Server is required.
type Config struct {
	Server      Server
	Replication Replication // nil: a single server, which is the leader
	Process     Process
	Kube        *extender.Extender // nil: kube-scheduler requests are rejected
	Comparisons *comparisons.Queue // nil: comparisons are rejected
	KubeReports *report.Store      // of controllers of Kubernetes clusters; nil: they are rejected

	ID, Region, Datacenter string // of this server, as its pool lists it
	Version                string // of the binary

	// Security requires a token of every caller. If it is false, every caller has
	// every role, which is safe only on a loopback address.
	Security bool
	// Traces enables trace contexts: requests join the trace in their traceparent header.
	Traces bool
	Limits Limits

	// ForwardTransport sends requests to the leader that only the leader can handle.
	// Default: http.DefaultTransport.
	ForwardTransport http.RoundTripper

	Clock    clock.Clock          // default: clock.Real
	Logger   *slog.Logger         // default: no logging
	Registry *prometheus.Registry // default: no metrics
}

// Limits protect a server from its clients. A zero field means the default.
type Limits struct {
	Body    int64         // bytes of a JSON body; default: 1 MiB
	Job     int64         // bytes of a body with a job or a plan token; default: 4 MiB
	Depth   int           // nesting depth of JSON; default: 64
	Rate    float64       // requests per second of one client; default: 500; negative: unlimited
	Burst   int           // requests that may exceed Rate at once; default: 1000
	Clients int           // number of clients with their own rate; default: 16,384
	Conns   int           // concurrent connections; default: 32,768
	Wait    time.Duration // maximum wait of a blocking query; default: 10m
	Header  time.Duration // deadline to receive the header of a request; default: 10s
	Read    time.Duration // deadline to receive the body of a request; default: 30s
	Upload  time.Duration // deadline to receive a module or a snapshot; default: 10m
	Write   time.Duration // deadline for a client to accept each part of a response; default: 30s
	Idle    time.Duration // before an idle connection is closed; default: 2m
	Call    time.Duration // deadline of a write; default: 30s
	Beat    time.Duration // interval of keep-alives on an idle stream; default: 10s
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 1<<20)
	l.Job = cmp.Or(l.Job, 4<<20)
	l.Depth = cmp.Or(l.Depth, 64)
	l.Rate = cmp.Or(l.Rate, 500)
	l.Burst = cmp.Or(l.Burst, 1000)
	l.Clients = cmp.Or(l.Clients, 16384)
	l.Conns = cmp.Or(l.Conns, 32768)
	l.Wait = cmp.Or(l.Wait, 10*time.Minute)
	l.Header = cmp.Or(l.Header, 10*time.Second)
	l.Read = cmp.Or(l.Read, 30*time.Second)
	l.Upload = cmp.Or(l.Upload, 10*time.Minute)
	l.Write = cmp.Or(l.Write, 30*time.Second)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Call = cmp.Or(l.Call, 30*time.Second)
	l.Beat = cmp.Or(l.Beat, 10*time.Second)
	return l
}

// An API handles HTTP requests for one server.
type API struct {
	cfg       Config
	routes    []route
	tables    *tableWatches
	rates     *rest.RateLimiter
	metrics   *metrics
	objects   objectTexts // of event streams
	logger    *slog.Logger
	routed    *http.ServeMux
	stopping  chan struct{} // closed by EndStreams
	startTime time.Time
}

// New returns an API. It does not listen on any address. It returns an error if
// cfg.Server is nil.
func New(cfg Config) (*API, error) {
	if cfg.Server == nil {
		return nil, errors.New("Config.Server is required")
	}
	cfg.Limits = cfg.Limits.withDefaults()
	cfg.Clock = cmp.Or(cfg.Clock, clock.Clock(clock.Real{}))
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{
		cfg: cfg, routes: table(), logger: cfg.Logger, stopping: make(chan struct{}), startTime: cfg.Clock.Now(),
		tables: newTables(cfg.Server), rates: rest.NewRateLimiter(cfg.Limits.Rate, cfg.Limits.Burst, cfg.Limits.Clients, cfg.Clock), metrics: newMetrics(cfg.Registry),
	}
	a.routed = a.mux()
	return a, nil
}

// ServeHTTP handles one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The mux redirects an unclean path, and a redirect turns a write into a read.
	// IDs with dots or slashes arrive escaped, so they are not affected.
	if p := r.URL.EscapedPath(); strings.Contains(p, "//") || strings.Contains(p, "/./") || strings.Contains(p, "/../") {
		a.serve(&unclean).ServeHTTP(w, r)
		return
	}
	a.routed.ServeHTTP(w, r)
}

// SetRate changes the rate limit of each client, in requests per second, and its
// burst. A negative rate disables the limit. SetRate may be called while requests are
// served.
func (a *API) SetRate(perSecond float64, burst int) { a.rates.Set(perSecond, burst) }

// EndStreams ends event streams and blocking queries, which return the current state,
// so that a server can stop without waiting for them. Later requests return without
// blocking.
func (a *API) EndStreams() {
	select {
	case <-a.stopping:
	default:
		close(a.stopping)
	}
}

// document is the OpenAPI document, generated from the table of routes and from the
// types and comments of sdk/client.
//
//go:generate go test -run TestNomadCommands_MatchSource -write
//go:generate go test -run TestDocument|TestNomadClient_CallsHaveDocumentedEffect -write
//go:embed openapi.json
var document []byte

// HTTPServer returns an HTTP server for the API with the deadlines of its limits. The
// caller serves a listener from Listener, and calls EndStreams before Shutdown. The
// server has no write deadline, because each part of a response has its own.
func (a *API) HTTPServer() *http.Server {
	l := a.cfg.Limits
	return &http.Server{
		Handler:           a,
		ReadHeaderTimeout: l.Header,
		IdleTimeout:       l.Idle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
}

// Listener returns l with a limit of connections. Further connections wait until
// another one closes.
func (a *API) Listener(l net.Listener) net.Listener {
	return netutil.LimitListener(l, a.cfg.Limits.Conns)
}

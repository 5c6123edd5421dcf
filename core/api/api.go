package api

import (
	"log/slog"
	"net"
	"net/http"

	_ "embed"
	"errors"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/kube/extender"
)

// Config is what an API works with. Server is needed.
type Config struct {
	Server      Server
	Replication Replication // nil: there is one server, and it leads
	Process     Process
	Kube        *extender.Extender // nil: no kube-scheduler is answered

	ID, Region, Datacenter string // of this server, as its pool calls it
	Version                string // of the program

	// Security is whether callers need a token. Without it everybody may do
	// everything: for a loopback address alone.
	Security bool
	// Traces is whether requests may belong to traces, as their traceparent says.
	Traces bool
	Limits Limits

	// ForwardTransport sends what only the leader can answer on to it; default:
	// http.DefaultTransport.
	ForwardTransport http.RoundTripper

	Clock    clock.Clock          // default: clock.Real
	Logger   *slog.Logger         // default: nothing is logged
	Registry *prometheus.Registry // default: nothing is measured
}

// Limits protect a server from its callers. Zero means the default.
type Limits struct {
	Body    int64         // bytes of a JSON body; default: 1 MiB
	Job     int64         // bytes of a body with a job; default: 4 MiB
	Depth   int           // of JSON; default: 64
	Rate    float64       // requests a second of one client; default: 500; negative: any
	Burst   int           // at once beyond that rate; default: 1000
	Clients int           // clients that are told apart; default: 16,384
	Conns   int           // connections at a time; default: 32,768
	Wait    time.Duration // a blocking query waits at most; default: 10m
	Header  time.Duration // within which a request's header must be there; default: 10s
	Read    time.Duration // within which its body must be there; default: 30s
	Upload  time.Duration // within which a module or a snapshot must be there; default: 10m
	Write   time.Duration // within which a client must take a piece of the answer; default: 30s
	Idle    time.Duration // before an idle connection is closed; default: 2m
	Call    time.Duration // within which a write must be done; default: 30s
	Beat    time.Duration // between signs of life on a silent stream; default: 10s
}

func (l Limits) withDefaults() Limits {
	orElse(&l.Body, 1<<20)
	orElse(&l.Job, 4<<20)
	orElse(&l.Depth, 64)
	orElse(&l.Rate, 500)
	orElse(&l.Burst, 1000)
	orElse(&l.Clients, 16384)
	orElse(&l.Conns, 32768)
	orElse(&l.Wait, 10*time.Minute)
	orElse(&l.Header, 10*time.Second)
	orElse(&l.Read, 30*time.Second)
	orElse(&l.Upload, 10*time.Minute)
	orElse(&l.Write, 30*time.Second)
	orElse(&l.Idle, 2*time.Minute)
	orElse(&l.Call, 30*time.Second)
	orElse(&l.Beat, 10*time.Second)
	return l
}

func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

// API answers requests.
type API struct {
	cfg      Config
	routes   []route
	tables   *tableWatches
	rates    *rest.RateLimiter
	metrics  *metrics
	logger   *slog.Logger
	routed   *http.ServeMux
	stopping chan struct{} // closed by EndStreams
	began    time.Time
}

// New makes an API; it listens nowhere by itself.
func New(cfg Config) (*API, error) {
	if cfg.Server == nil {
		return nil, errors.New("Config.Server is required")
	}
	cfg.Limits = cfg.Limits.withDefaults()
	orElse(&cfg.Clock, clock.Clock(clock.Real{}))
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{
		cfg: cfg, routes: table(), logger: cfg.Logger, stopping: make(chan struct{}), began: cfg.Clock.Now(),
		tables: newTables(cfg.Server), rates: rest.NewRateLimiter(cfg.Limits.Rate, cfg.Limits.Burst, cfg.Limits.Clients, cfg.Clock), metrics: newMetrics(cfg.Registry),
	}
	a.routed = a.mux()
	return a, nil
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The mux would answer an unclean path with a redirect, which turns a write
	// into a read; an id that holds dots or slashes comes escaped and is left alone.
	if p := r.URL.EscapedPath(); strings.Contains(p, "//") || strings.Contains(p, "/./") || strings.Contains(p, "/../") {
		a.serve(&unclean).ServeHTTP(w, r)
		return
	}
	a.routed.ServeHTTP(w, r)
}

// SetRate changes what one client may ask a second, and at once beyond that;
// negative: any. It may be called while requests are served.
func (a *API) SetRate(perSecond float64, burst int) { a.rates.Set(perSecond, burst) }

// EndStreams ends blocking queries, which answer what there is, and event
// streams, so that a server that stops need not wait for them. Requests that
// come later are answered without waiting.
func (a *API) EndStreams() {
	select {
	case <-a.stopping:
	default:
		close(a.stopping)
	}
}

// document is the OpenAPI document, made of the table of routes and the types
// and comments of sdk/client.
//
//go:generate go test -run TestDocument -write
//go:embed openapi.json
var document []byte

// HTTPServer is a server for the API, with the deadlines of its limits. The
// caller gives it a listener, from Listener, and shuts it down after EndStreams.
// It has no deadline for writing: each piece that is written has its own.
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

// Listener is l with a limit to connections: those beyond wait until others
// close.
func (a *API) Listener(l net.Listener) net.Listener {
	return netutil.LimitListener(l, a.cfg.Limits.Conns)
}

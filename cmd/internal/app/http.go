package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/web"
	"github.com/cede-scheduler/cede/sdk/client"
)

// httpServer holds the HTTP listeners of the process.
type httpServer struct {
	listener       net.Listener
	url            string // of this process, for its own clients
	advertised     string // HOST:PORT for other hosts
	metrics        net.Listener
	metricsAddress string
	guard          *metricsGuard
}

// listen opens the listeners. Requests are not answered before serve.
func (p *Process) listen(c *config.Config) (*httpServer, error) {
	h := &httpServer{}
	l, err := net.Listen("tcp", c.Listen.HTTP)
	if err != nil {
		return nil, listenError("listen.http", err)
	}
	p.down.push("HTTP listener", func(context.Context) error { return closed(l) })
	fair := limitPerAddress(l, c.Limits.ConnectionsPerAddress, p.metrics.refused.WithLabelValues("http"))
	h.listener = p.certs.wrap(netutil.LimitListener(fair, c.Limits.Connections), c.TLS.VerifyClient)
	h.advertised = advertise(c.Advertise.HTTP, l.Addr().String())
	h.url = p.certs.scheme() + "://" + l.Addr().String()
	if host, _, err := net.SplitHostPort(h.url[len(p.certs.scheme())+3:]); err == nil && net.ParseIP(host).IsUnspecified() {
		h.url = p.certs.scheme() + "://" + h.advertised
	}
	if c.Listen.Metrics == "" {
		return h, nil
	}
	if h.metrics, err = net.Listen("tcp", c.Listen.Metrics); err != nil {
		return nil, listenError("listen.metrics", err)
	}
	m := h.metrics
	h.metricsAddress = m.Addr().String()
	p.down.push("metrics listener", func(context.Context) error { return closed(m) })
	h.metrics, h.guard = p.guarded(m, c)
	return h, nil
}

// guarded returns the metrics listener with the protection that its address requires,
// and the guard that authorizes callers. If the listener is bound to loopback,
// callers need no client certificate.
func (p *Process) guarded(l net.Listener, c *config.Config) (net.Listener, *metricsGuard) {
	g := &metricsGuard{local: c.MetricsLocal()}
	g.setToken(c.Telemetry.Token)
	l = netutil.LimitListener(limitPerAddress(l, metricsConnsPerAddress, p.metrics.refused.WithLabelValues("metrics")), metricsConns)
	if g.local {
		return l, g
	}
	return p.certs.wrap(l, c.TLS.VerifyClient), g
}

func listenError(key string, err error) error {
	return fmt.Errorf("%s: %w; check for another process on this port, or set another address", key, err)
}

// closed closes a listener, which its server may have closed already.
func closed(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// reachable returns an address that other hosts can use: if address is a wildcard,
// the first non-loopback address of the host.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !net.ParseIP(host).IsUnspecified() {
		return address
	}
	addresses, _ := net.InterfaceAddrs() // if there are none, the wildcard is returned
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return address
}

// drainTimeout limits the time that pending responses have when the process stops.
const drainTimeout = 5 * time.Second

// serve starts to answer requests.
func (h *httpServer) serve(p *Process) {
	hosts := append([]string{p.config.Advertise.HTTP}, p.config.Listen.Hosts...)
	guard := rest.NewBrowserGuard(h.listener.Addr(), hosts...)
	handler := guard.Protect(p.handler())
	if p.server != nil {
		handler = guard.Protect(p.handler(), p.server.extender.RefuseVerb)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	if p.server != nil {
		srv = p.server.api.HTTPServer()
		srv.Handler = handler
	}
	p.apiHandler("HTTP", srv, h.listener)
	if h.metrics != nil {
		metrics := p.metrics.handler(h.guard, p.config.Telemetry.Pprof)
		p.apiHandler("metrics", metricsServer(rest.NewBrowserGuard(h.metrics.Addr(), hosts...).Protect(metrics)), h.metrics)
	}
	if p.server != nil {
		// Close event streams before the rest stops, so that their readers receive an
		// end of stream.
		p.down.push("streams", func(context.Context) error {
			p.server.api.EndStreams()
			return nil
		})
	}
}

// metricsConns is the number of concurrent connections to the metrics listener: a few
// scrapers, and an operator who profiles the process.
const (
	metricsConns           = 64
	metricsConnsPerAddress = 16
)

// metricsServer has no write timeout: a profile takes as long as its request
// specifies.
func metricsServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// apiHandler serves a listener until the process stops.
func (p *Process) apiHandler(name string, srv *http.Server, l net.Listener) {
	if srv.ErrorLog == nil { // TLS handshake errors of unknown clients are not logged
		srv.ErrorLog = slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
	p.down.push(name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // connections that are still open after the timeout are closed
		}
		<-done
		return nil
	})
}

// handler returns the handler of the process's HTTP listener: the API and the console if
// a server runs here, the logs of allocations, and the health check if only a node runs.
func (p *Process) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocation/{id}/logs", p.serveLogs)
	mux.HandleFunc("GET /v1/client/fs/logs/{id}", p.serveLogs) // the path that Nomad's clients use
	if p.server != nil {
		mux.Handle(web.Prefix, web.Handler())
		mux.Handle("GET /{$}", http.RedirectHandler(web.Prefix, http.StatusFound))
		mux.Handle("/", p.server.api)
		return mux
	}
	for _, path := range []string{"GET /livez", "GET /readyz", "GET /healthz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, client.Health{OK: true}) })
	}
	mux.HandleFunc("GET /v1/agent/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, client.AgentHealths{Client: &client.AgentHealth{Ok: true, Message: "ok"}})
	})
	mux.HandleFunc("POST /v1/agent/reload", p.serveReload)
	mux.HandleFunc("PUT /v1/agent/reload", p.serveReload)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeErrorResponse(w, http.StatusNotFound, client.CodeNotFound, r.URL.Path+" is not served by a node", "set CEDE_ADDR to one of client.servers")
	})
	return mux
}

// headerForwarded marks a request that a server has passed on to a node.
const headerForwarded = "X-Cede-Forwarded-By"

// serveLogs serves the log of an allocation, from this node or by proxying to the
// node that runs it.
func (p *Process) serveLogs(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	a := p.agent.Load()
	here := a != nil && (p.server == nil || a.Has(id))
	if !here && p.server == nil {
		writeErrorResponse(w, http.StatusNotFound, client.CodeNotFound, "no node runs in this process", "")
		return
	}
	if !here && p.o.Config.ACL.Enabled && !p.authenticates(r) {
		// Return the same error if the allocation does not exist, so that its
		// existence is not disclosed.
		writeErrorResponse(w, http.StatusUnauthorized, client.CodeUnauthenticated, "missing or unknown token", "set CEDE_TOKEN, or send Authorization: Bearer TOKEN")
		return
	}
	node, address, text := "", "", ""
	if !here {
		node, address, text = p.server.findAllocNode(id)
		here = a != nil && node == a.NodeID() // assigned to this node, but not received yet
	}
	switch {
	case here:
		a.Handler().ServeHTTP(w, r)
		return
	case address == "":
		writeErrorResponse(w, http.StatusNotFound, client.CodeNotFound, text, "`cede alloc status` shows the node")
		return
	case r.Header.Get(headerForwarded) != "":
		// Do not forward: the address leads back to this process, and requests would
		// loop.
		writeErrorResponse(w, http.StatusNotFound, client.CodeNotFound, fmt.Sprintf("node %s is not reachable at %s: a server responded", node, address), "correct the node's advertise.http")
		return
	}
	proxy := httputil.ReverseProxy{
		Transport:     p.server.transport,
		FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(&url.URL{Scheme: p.certs.scheme(), Host: address})
			pr.Out.Header.Set(headerForwarded, p.server.id)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			writeErrorResponse(w, http.StatusServiceUnavailable, client.CodeUnavailable, fmt.Sprintf("cannot reach the agent at %s: %v", address, err), "check that the node runs and that its advertise.http is reachable from the servers")
		},
	}
	proxy.ServeHTTP(w, r)
}

// authenticates reports whether the request carries a token of this cluster. The
// servers check which namespaces the token may read.
func (p *Process) authenticates(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.Header.Get("X-Nomad-Token")
	}
	_, ok = p.server.server.Authenticate(token)
	return ok
}

// serveReload serves the reload endpoint of a process without the API.
func (p *Process) serveReload(w http.ResponseWriter, r *http.Request) {
	if p.clientAs != nil {
		if err := p.authorizeOperator(r); err != nil {
			writeError(w, err)
			return
		}
	}
	changed, err := p.Reload(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, client.ReloadResponse{Changed: changed})
}

func writeErrorResponse(w http.ResponseWriter, status int, code, message, hint string) {
	writeJSON(w, status, client.Error{Code: code, Message: message, Hint: hint})
}

func writeError(w http.ResponseWriter, err error) {
	var e *client.Error
	if errors.As(err, &e) && e.StatusCode != 0 {
		writeJSON(w, e.StatusCode, e)
		return
	}
	writeErrorResponse(w, http.StatusBadRequest, client.CodeInvalid, err.Error(), "")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

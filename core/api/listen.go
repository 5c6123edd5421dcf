package api

import (
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/net/netutil"
)

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

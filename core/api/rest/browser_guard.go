package rest

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// A BrowserGuard rejects requests that a web page sends from a browser with access to the
// listener. They succeed otherwise if the listener needs no token, as with cede agent
// --dev.
//
//   - A write from another origin is rejected by the headers Sec-Fetch-Site and Origin,
//     which a page cannot change. Other clients send neither.
//   - On a loopback address, a Host header with an unknown name is rejected. A page
//     whose name resolves to 127.0.0.1 has the origin of the listener, so the first
//     check does not detect it.
//
// A BrowserGuard is safe for concurrent use.
type BrowserGuard struct {
	origins *http.CrossOriginProtection
	// hosts lists the names that a Host header may contain in addition to loopback
	// addresses; nil: any host is accepted.
	hosts []string
}

// NewBrowserGuard returns the guard of a listener. hosts lists the names that clients
// use in addition to loopback addresses; they matter only if the listener is on
// loopback. Ports in hosts are ignored.
func NewBrowserGuard(listener net.Addr, hosts ...string) *BrowserGuard {
	g := &BrowserGuard{origins: http.NewCrossOriginProtection()}
	if !isLoopback(hostName(listener.String())) {
		return g
	}
	g.hosts = []string{"localhost"}
	for _, h := range hosts {
		if name := hostName(h); name != "" {
			g.hosts = append(g.hosts, name)
		}
	}
	return g
}

// Protect returns a handler that passes accepted requests to next. The first of refuse that
// returns true has answered a request that is not accepted; without one, the status is 403.
func (g *BrowserGuard) Protect(next http.Handler, refuse ...func(w http.ResponseWriter, r *http.Request, why error) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := g.check(r); f != nil {
			for _, answer := range refuse {
				if answer(w, r, f) {
					return
				}
			}
			if r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // the body is not read
			}
			f.fill()
			f.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *BrowserGuard) check(r *http.Request) *Failure {
	if g.hosts != nil && !g.allows(hostName(r.Host)) {
		return (&Failure{Code: CodeForbidden, Message: "unknown host " + Quote(r.Host) + " in the Host header of a request to a loopback address"}).
			WithHint("use 127.0.0.1 or localhost; if a proxy forwards requests with another name, add the name to listen.hosts")
	}
	if g.origins.Check(r) != nil {
		return (&Failure{Code: CodeForbidden, Message: "write from another origin: " + Quote(r.Header.Get("Origin"))}).
			WithHint("web pages of other origins cannot write; use cede or another client")
	}
	return nil
}

func (g *BrowserGuard) allows(name string) bool {
	return isLoopback(name) || slices.Contains(g.hosts, name)
}

// FromBrowser reports whether a browser sent the request for a page.
func FromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// hostName returns the host of HOST:PORT or HOST, in lower case, without brackets
// and without a final dot.
func hostName(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	return strings.ToLower(strings.TrimSuffix(address, "."))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

package watch

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A serverClock holds the time of the API server, which does not depend on the clock of
// this machine. It is safe for concurrent use.
type serverClock struct {
	mu     sync.Mutex
	latest time.Time // of a response; zero: unknown
}

// wrap returns a transport that reads the time from responses.
func (c *serverClock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if at.After(c.latest) {
				c.latest = at
			}
		}
		return resp, nil
	})
}

// now returns the time of the latest response.
func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// A connection records whether the API server answers, and logs each change once. client-go
// retries refused connections silently, while the objects that were read age. It is safe for
// concurrent use.
type connection struct {
	log *slog.Logger

	mu     sync.Mutex
	failed bool
}

// wrap returns a transport that observes the requests.
func (c *connection) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil || r.Context().Err() == nil { // otherwise the caller gave up
			c.observe(r, err)
		}
		return resp, err
	})
}

func (c *connection) observe(r *http.Request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch failed := err != nil; {
	case failed && !c.failed:
		c.log.WarnContext(r.Context(), "kubernetes API server unreachable", "url", r.URL.Scheme+"://"+r.URL.Host, "err", err)
	case !failed && c.failed:
		c.log.InfoContext(r.Context(), "kubernetes API server reachable again")
	}
	c.failed = err != nil
}

// reachable reports whether the last request was answered.
func (c *connection) reachable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failed
}

package rest

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cede-scheduler/cede/core/clock"
)

// RateLimiter limits the request rate of each client. A client is identified by its
// address, because verifying any other identity costs as much as the request.
type RateLimiter struct {
	clock clock.Clock
	most  int

	mu        sync.Mutex
	perSecond float64
	burst     int
	clients   map[string]*rate.Limiter
}

// NewRateLimiter returns a limiter of requests per second and client, which remembers at
// most the given number of clients.
func NewRateLimiter(perSecond float64, burst, clients int, c clock.Clock) *RateLimiter {
	return &RateLimiter{clock: c, most: clients, perSecond: perSecond, burst: burst, clients: map[string]*rate.Limiter{}}
}

// Set changes the limits and resets all clients.
func (r *RateLimiter) Set(perSecond float64, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.burst = perSecond, max(burst, 1)
	clear(r.clients)
}

// Acquire returns how long the client must wait; 0 if the request is allowed.
func (r *RateLimiter) Acquire(client string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond < 0 {
		return 0
	}
	now := r.clock.Now()
	l := r.clients[client]
	if l == nil {
		if len(r.clients) >= r.most {
			r.forget(now)
		}
		l = rate.NewLimiter(rate.Limit(r.perSecond), r.burst)
		r.clients[client] = l
	}
	if l.AllowN(now, 1) {
		return 0
	}
	missing := 1 - l.TokensAt(now)
	return max(time.Duration(missing/r.perSecond*float64(time.Second)), time.Millisecond)
}

// forget drops clients whose burst is complete again: they are equivalent to new
// ones. If all are active, all are dropped, so that memory stays bounded.
func (r *RateLimiter) forget(now time.Time) {
	for name, l := range r.clients {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.clients, name)
		}
	}
	if len(r.clients) >= r.most {
		clear(r.clients)
	}
}

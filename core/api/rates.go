package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cede-scheduler/cede/core/clock"
)

// rates bounds how often each client asks. A client is an address: what a
// request says of itself cannot be believed before somebody has paid for
// looking at it.
type rates struct {
	clock clock.Clock
	most  int

	mu        sync.Mutex
	perSecond float64
	burst     int
	clients   map[string]*rate.Limiter
}

func newRates(l Limits, c clock.Clock) *rates {
	return &rates{clock: c, most: l.Clients, perSecond: l.Rate, burst: l.Burst, clients: map[string]*rate.Limiter{}}
}

func (r *rates) set(perSecond float64, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.burst = perSecond, max(burst, 1)
	clear(r.clients)
}

// take is how long the client must wait; 0: it need not.
func (r *rates) take(client string) time.Duration {
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

// forget drops clients that have all their burst again: they are as good as
// new ones. Where all are busy, all start anew: memory stays bounded.
func (r *rates) forget(now time.Time) {
	for name, l := range r.clients {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.clients, name)
		}
	}
	if len(r.clients) >= r.most {
		clear(r.clients)
	}
}

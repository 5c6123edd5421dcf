package client

import (
	"context"
	"net/http"
	"time"
)

const (
	// reachEvery is how long one server may take to respond before the next one is
	// probed in parallel. Over a slow line this selects another server, which does no
	// harm.
	reachEvery = 500 * time.Millisecond
	// reachWithin bounds the probes. After it, the request uses the first server.
	reachWithin = 3 * time.Second
)

// findResponsive finds one of several servers that responds, before the first request. A
// stopped process or a hung machine accepts connections and never responds, and a
// request cannot detect this: a write without an idempotency key may be sent to one
// server only, and a slow response differs from silence. Probes have no side effects
// and run in parallel; the first server of the list is preferred.
func (c *Client) findResponsive(ctx context.Context) {
	list := *c.addresses.Load()
	if len(list) < 2 || c.silence <= 0 || c.reached.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	first := c.preferred.Load()
	next, out := uint32(0), 0
	answers := make(chan probeResult, len(list))
	for {
		if next < uint32(len(list)) {
			at := (first + next) % uint32(len(list))
			go func() { answers <- probeResult{at, c.probe(ctx, list[at])} }()
			next, out = next+1, out+1
		}
		timer := time.NewTimer(min(reachEvery, c.silence))
		select {
		case a := <-answers:
			timer.Stop()
			if out--; a.there {
				c.preferred.CompareAndSwap(first, a.at)
				return
			}
			if out == 0 && next == uint32(len(list)) {
				return // none responds: the request reports it
			}
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// probeResult is the result of probing one server of the list.
type probeResult struct {
	at    uint32
	there bool
}

// probe reports whether a server responds at all. The probe carries no secret.
func (c *Client) probe(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/livez", nil)
	if err != nil {
		return false
	}
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	drain(resp.Body)
	_ = resp.Body.Close()
	return true
}

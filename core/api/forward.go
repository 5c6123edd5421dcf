package api

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// passedOn sends a request that only the leader can answer on to it, and is
// whether it did. A request that was passed on is not passed on again: while
// servers disagree about who leads it would go round.
func (a *API) passedOn(c *call) bool {
	if a.cfg.Replication == nil || a.cfg.Process.LeaderURL == nil || a.cfg.Replication.IsLeader() || !c.needsLeader() {
		return false
	}
	if c.r.Header.Get(headerForwarded) != "" {
		return false // answered with no_leader by whoever tries to write
	}
	target, err := url.Parse(a.cfg.Process.LeaderURL())
	if err != nil || target.Host == "" {
		return false
	}
	within := a.cfg.Limits.Read
	if c.route.binary {
		within = a.cfg.Limits.Upload
	}
	// The body must come in time; then the leader has its time to answer.
	_ = c.w.control.SetReadDeadline(time.Now().Add(within + a.cfg.Limits.Call))
	proxy := httputil.ReverseProxy{
		Transport:     a.cfg.ForwardTransport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
			p.Out.Header.Set(headerForwarded, a.cfg.ID)
			p.Out.Header.Set(headerRequestID, c.id)
		},
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Del(headerRequestID) // it is set
			a.catchUp(c, resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			a.fail(c, &failure{
				code: codeNoLeader, message: "the leader cannot be reached: " + err.Error(),
				help: "it may be about to change: try again; a write may have been carried out, so use the same Idempotency-Key",
			})
		},
	}
	proxy.ServeHTTP(c.w, c.r)
	return true
}

// catchUpWithin bounds how long a write is held back for this server to have it.
const catchUpWithin = 2 * time.Second

// catchUp waits until this server has what was written at the leader for a caller
// who goes on here: what it wrote, it reads. A server that is far behind holds nobody
// up for it.
func (a *API) catchUp(c *call, resp *http.Response) {
	index, err := strconv.ParseUint(resp.Header.Get(headerIndex), 10, 64)
	if err != nil || c.r.Method == http.MethodGet || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), catchUpWithin)
	defer cancel()
	_, _ = a.cfg.Server.WaitIndex(ctx, index) // else it reads what this server has
}

// needsLeader is whether only the leader can answer.
func (c *call) needsLeader() bool {
	if c.route.leads {
		return true
	}
	consistent, _ := c.flag("consistent") // what is wrong with it is told later
	return consistent
}

// passedOnBy is whether a request came by way of another server of the pool. The
// header alone proves nothing: the address must be one of theirs.
func (a *API) passedOnBy(c *call, address string) bool {
	return c.r.Header.Get(headerForwarded) != "" && slices.ContainsFunc(a.pool(), func(m Member) bool {
		return m.Name != a.cfg.ID && host(m.Address) == address
	})
}

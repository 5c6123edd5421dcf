package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
)

// forwardToLeader sends a request that only the leader can answer on to it, and is
// whether it did. A request that was passed on is not passed on again: while
// servers disagree about who leads it would go round.
func (a *API) forwardToLeader(c *call) bool {
	if a.cfg.Replication == nil || a.cfg.Process.LeaderURL == nil || a.cfg.Replication.IsLeader() || !c.needsLeader() {
		return false
	}
	if c.r.Header.Get(headerForwarded) != "" {
		return false // answered with no_leader by whoever tries to write
	}
	leader := a.cfg.Process.LeaderURL()
	target, err := url.Parse(leader)
	if err != nil || target.Host == "" {
		return false
	}
	within := a.cfg.Limits.Read
	if c.route.binary {
		within = a.cfg.Limits.Upload
	}
	// The body must come in time; then the leader has its time to answer.
	_ = c.w.Control.SetReadDeadline(time.Now().Add(within + a.cfg.Limits.Call))
	answers, end := a.watchForwarded(c, leader)
	defer end()
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
			answers()
			for _, set := range []string{headerRequestID, headerNoSniff} {
				resp.Header.Del(set)
			}
			a.catchUp(c, resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if cause := context.Cause(r.Context()); errors.Is(cause, errLeaderChanged) {
				err = cause
			}
			a.fail(c, &rest.Failure{
				Code: rest.CodeNoLeader, Message: "the leader cannot be reached: " + err.Error(),
				Hint: "leadership may be changing: try again; a write may have been applied, so reuse its Idempotency-Key",
			})
		},
	}
	proxy.ServeHTTP(c.w, c.r)
	return true
}

const (
	// leaderCheckInterval is how often it is looked whether the server that a request was passed on
	// to leads still, and leadsNot how many such looks must find that it does not.
	leaderCheckInterval = 500 * time.Millisecond
	leaderCheckFailures = 2
)

// errLeaderChanged is of a request that was passed on to a server which leads no more.
var errLeaderChanged = errors.New("it lost leadership before it responded")

// watchForwarded ends a request that is passed on when the server that was to answer it
// leads no more and does not say so itself. Whoever is deposed answers that; but a process
// that was stopped does not, and its connections stay: the caller would wait for ever for
// a server that the others have replaced. answers is called once it begins to answer.
func (a *API) watchForwarded(c *call, leader string) (answers, end func()) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	c.r = c.r.WithContext(ctx)
	var answered atomic.Bool
	look := func() {
		ticks := time.NewTicker(leaderCheckInterval)
		defer ticks.Stop()
		for not := 0; not < leaderCheckFailures; {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			if answered.Load() {
				return
			}
			if not++; a.cfg.Process.LeaderURL() == leader {
				not = 0
			}
		}
		cancel(errLeaderChanged)
	}
	timer := time.AfterFunc(leaderCheckInterval, look) // what is answered at once needs no look
	return func() { answered.Store(true); timer.Stop() }, func() { timer.Stop(); cancel(nil) }
}

// catchUpTimeout bounds how long a write is held back for this server to have it.
const catchUpTimeout = 2 * time.Second

// catchUp waits until this server has what was written at the leader for a caller
// who goes on here: what it wrote, it reads. A server that is far behind holds nobody
// up for it.
func (a *API) catchUp(c *call, resp *http.Response) {
	index, err := strconv.ParseUint(resp.Header.Get(headerIndex), 10, 64)
	if err != nil || c.r.Method == http.MethodGet || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), catchUpTimeout)
	defer cancel()
	_, _ = a.cfg.Server.WaitIndex(ctx, index) // else it reads what this server has
}

// needsLeader is whether only the leader can answer.
func (c *call) needsLeader() bool {
	if c.route.leaderOnly {
		return true
	}
	consistent, _ := queryFlag(c, "consistent") // what is wrong with it is told later
	return consistent
}

// isForwardedBy is whether a request came by way of another server of the pool. The
// header alone proves nothing: the address must be one of theirs.
func (a *API) isForwardedBy(c *call, address string) bool {
	return c.r.Header.Get(headerForwarded) != "" && slices.ContainsFunc(a.memberList(), func(m Member) bool {
		return m.Name != a.cfg.ID && host(m.Address) == address
	})
}

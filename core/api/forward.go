package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
)

// forwardToLeader forwards a request that only the leader can handle, and reports
// whether it did. A forwarded request is not forwarded again: if servers disagree
// about the leader, it would loop.
func (a *API) forwardToLeader(c *call) bool {
	if a.cfg.Replication == nil || a.cfg.Process.LeaderURL == nil || a.cfg.Replication.IsLeader() || !c.needsLeader() {
		return false
	}
	if c.r.Header.Get(headerForwarded) != "" {
		return false // the write itself then fails with no_leader
	}
	leader := a.cfg.Process.LeaderURL()
	target, err := url.Parse(leader)
	if err != nil || target.Host == "" {
		return false
	}
	timeout := a.cfg.Limits.Read
	if c.route.isBinary {
		timeout = a.cfg.Limits.Upload
	}
	// The deadline covers the body and then the time of the leader to respond.
	_ = c.w.Control.SetReadDeadline(time.Now().Add(timeout + a.cfg.Limits.Call))
	started, end := a.watchForwarded(c, leader)
	defer end()
	proxy := httputil.ReverseProxy{
		Transport:     a.cfg.ForwardTransport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
			p.Out.Header.Set(headerForwarded, a.cfg.ID)
			p.Out.Header.Set(headerRequestID, c.id)
			signOrigin(a.cfg.Server, p.Out, host(c.r.RemoteAddr))
		},
		ModifyResponse: func(resp *http.Response) error {
			started()
			for _, set := range []string{headerRequestID, headerNoSniff} {
				resp.Header.Del(set)
			}
			a.catchUp(c, resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			a.fail(c, forwardFailure(c.route, r, err))
		},
	}
	proxy.ServeHTTP(c.w, c.r)
	return true
}

// forwardFailure returns the error of a forwarded request without a response. If a write may
// have reached the leader, its outcome is unknown.
func forwardFailure(route *route, r *http.Request, err error) error {
	if cause := context.Cause(r.Context()); errors.Is(cause, errLeaderChanged) {
		err = cause
	}
	dial, failed := errors.AsType[*net.OpError](err)
	if route.changesNothing(r.Method) || failed && dial.Op == "dial" {
		return &rest.Failure{
			Code: rest.CodeNoLeader, Message: "the leader cannot be reached: " + err.Error(),
			Hint: "leadership may be changing: try again",
		}
	}
	return rest.UnknownOutcome("the leader did not answer: %v", err)
}

const (
	// leaderCheckInterval is the interval at which a waiting request checks that the
	// server it was forwarded to is still the leader. leaderCheckFailures is the
	// number of consecutive failed checks that end the request.
	leaderCheckInterval = 500 * time.Millisecond
	leaderCheckFailures = 2
)

// errLeaderChanged means that the server a request was forwarded to lost leadership.
var errLeaderChanged = errors.New("it lost leadership before it responded")

// watchForwarded cancels a forwarded request if its target loses leadership without
// responding. A deposed leader responds with an error, but a suspended process does
// not, and its connections stay open: the caller would wait forever for a server that
// was replaced. The caller must call started when the response starts, and end when
// the request is finished.
func (a *API) watchForwarded(c *call, leader string) (started, end func()) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	c.r = c.r.WithContext(ctx)
	var hasStarted atomic.Bool
	checkLeader := func() {
		ticks := time.NewTicker(leaderCheckInterval)
		defer ticks.Stop()
		for failures := 0; failures < leaderCheckFailures; {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			if hasStarted.Load() {
				return
			}
			if failures++; a.cfg.Process.LeaderURL() == leader {
				failures = 0
			}
		}
		cancel(errLeaderChanged)
	}
	timer := time.AfterFunc(leaderCheckInterval, checkLeader) // short requests are never checked
	return func() { hasStarted.Store(true); timer.Stop() }, func() { timer.Stop(); cancel(nil) }
}

// catchUpTimeout bounds the delay of a forwarded write until this server has applied it.
const catchUpTimeout = 2 * time.Second

// catchUp waits until this server has applied a write that it forwarded, so that the
// caller reads its own writes here. After catchUpTimeout it gives up: a server that
// is far behind does not block writes.
func (a *API) catchUp(c *call, resp *http.Response) {
	index, err := strconv.ParseUint(resp.Header.Get(headerIndex), 10, 64)
	if err != nil || c.route.changesNothing(c.r.Method) || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), catchUpTimeout)
	defer cancel()
	_, _ = a.cfg.Server.WaitIndex(ctx, index) // on timeout the caller reads an older state
}

// needsLeader reports whether only the leader can handle the request.
func (c *call) needsLeader() bool {
	if c.route.leaderOnly {
		return true
	}
	consistent, _ := queryFlag(c, "consistent") // the handler reports an invalid value
	return consistent
}

// isForwardedBy reports whether another server of the pool forwarded the request. Any
// client can set the header, so the address must be that of a member.
func (a *API) isForwardedBy(c *call, address string) bool {
	return c.r.Header.Get(headerForwarded) != "" && slices.ContainsFunc(a.knownMembers(), func(m Member) bool {
		return m.Name != a.cfg.ID && host(m.Address) == address
	})
}

// originKey returns the key with which servers sign the address of a client, and false if
// the cluster has none. The state holds it, so that only servers of this cluster have it.
func originKey(s States) (key []byte, ok bool) {
	meta := s.Snapshot().Meta()
	h := hmac.New(sha256.New, meta.Key[:])
	_, _ = h.Write([]byte("origins of forwarded requests of " + meta.ClusterID))
	return h.Sum(nil), meta.Key != [32]byte{}
}

// originMAC authenticates the address of a client for one forwarded request.
func originMAC(key []byte, r *http.Request, address string) string {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{
		r.Header.Get(headerForwarded), address, r.Header.Get(headerRequestID), r.Method, r.URL.EscapedPath(), r.URL.RawQuery,
	} {
		_, _ = fmt.Fprintf(h, "%d:%s\n", len(part), part) // a hash does not fail
	}
	return hex.EncodeToString(h.Sum(nil))
}

// signOrigin adds the address of the client to a request to the leader.
func signOrigin(s States, out *http.Request, address string) {
	out.Header.Del(headerOrigin)
	if key, ok := originKey(s); ok {
		out.Header.Set(headerOrigin, address+" "+originMAC(key, out, address))
	}
}

// originOf returns the source of a request. The address is that of the connection. If
// another server forwarded the request, it is the address of the connection there: any
// client can set the header, so that a signature with the key of the servers is required.
func originOf(c *call) model.AuditOrigin {
	o := model.AuditOrigin{Address: host(c.r.RemoteAddr), RequestID: c.id}
	if c.token != nil {
		o.Actor, o.ActorName = c.token.Accessor, c.token.Name
	}
	address, mac, signed := strings.Cut(c.r.Header.Get(headerOrigin), " ")
	if !signed {
		return o
	}
	if key, ok := originKey(c.api.cfg.Server); ok && hmac.Equal([]byte(mac), []byte(originMAC(key, c.r, address))) {
		o.Address, o.Via = address, c.r.Header.Get(headerForwarded)
	}
	return o
}

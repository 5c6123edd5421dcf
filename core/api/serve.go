package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
)

// The headers of the API, and those that Nomad's clients read.
const (
	headerIndex       = "X-Nomad-Index"
	headerLeader      = "X-Nomad-KnownLeader"
	headerContact     = "X-Nomad-LastContact"
	headerNext        = "X-Nomad-NextToken"
	headerNomadToken  = "X-Nomad-Token"
	headerToken       = "X-Cede-Token"
	headerNodeSecret  = "X-Cede-Node-Secret"
	headerRequestID   = "X-Request-Id"
	headerIdempotency = "Idempotency-Key"
	headerComplete    = "X-Cede-Complete"
	headerForwarded   = "X-Cede-Forwarded-By"
	headerOrigin      = "X-Cede-Origin"
	headerNoSniff     = "X-Content-Type-Options"
)

// A call is one request in progress.
type call struct {
	api   *API
	route *route
	w     *rest.Recorder
	r     *http.Request
	id    string
	token *model.Token // token of the caller; nil: unauthenticated

	cancels []context.CancelFunc // of the contexts of writes
}

// serve returns the HTTP handler of a route. In every case it sends one response,
// logs one line and records one duration.
func (a *API) serve(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := a.cfg.Clock.Now()
		r = a.traced(r)
		c := &call{api: a, route: rt, w: rest.NewRecorder(w, a.cfg.Limits.Write), r: r, id: requestID(r)}
		c.w.Header().Set(headerRequestID, c.id)
		c.w.Header().Set(headerNoSniff, "nosniff")
		defer func() {
			for _, cancel := range c.cancels {
				cancel()
			}
			panicValue := recover()
			if panicValue != nil {
				a.recoverPanic(c, panicValue)
			}
			a.finish(c, started)
			if panicValue != nil && c.w.Broken {
				// Part of the response is sent: abort, so that it cannot pass for a complete one.
				panic(http.ErrAbortHandler)
			}
		}()
		if r.ContentLength != 0 {
			// A client must send the body that it announced, even if it is not read.
			_ = c.w.Control.SetReadDeadline(time.Now().Add(a.cfg.Limits.Read)) // fails only in tests without a connection
		}
		a.respond(c)
	})
}

// traced returns the request in the trace of its traceparent header.
func (a *API) traced(r *http.Request) *http.Request {
	if !a.cfg.Traces || r.Header.Get("Traceparent") == "" {
		return r
	}
	return r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
}

// respond runs the route's handler and sends the response.
func (a *API) respond(c *call) {
	err := a.admit(c)
	if err == nil {
		err = c.checkContentType()
	}
	if err != nil && c.route.refuse != nil && c.route.refuse(a, c, err) {
		return
	}
	if err == nil && a.forwardToLeader(c) {
		return
	}
	var out any
	if err == nil {
		out, err = c.route.handle(a, c)
	}
	switch {
	case err != nil:
		a.fail(c, err)
	case out == any(responded):
	case out == nil:
		c.w.WriteHeader(http.StatusNoContent)
	default:
		rest.WriteJSON(c.w, http.StatusOK, out)
	}
}

// fail sends an error, unless a response was already started.
func (a *API) fail(c *call, err error) {
	f := rest.FailureOf(err)
	if f.Code == rest.CodeInternal {
		a.logger.LogAttrs(c.r.Context(), slog.LevelError, "request failed", c.attrs(slog.Any("err", err))...)
	}
	if c.w.Status != 0 {
		c.w.Broken = true
		panic(http.ErrAbortHandler)
	}
	c.refuseBody()
	f.Write(c.w)
}

// refuseBody closes the connection if an announced body was not read to its end,
// because a rejected client may send forever.
func (c *call) refuseBody() {
	if c.r.ContentLength != 0 && !c.w.BodyRead {
		c.w.Header().Set("Connection", "close")
	}
}

// recoverPanic responds to a request after a panic of its handler. Other requests continue.
func (a *API) recoverPanic(c *call, panicValue any) {
	if panicValue == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value by identity
		c.w.Broken = true
		return
	}
	a.metrics.panics.Inc()
	a.logger.LogAttrs(c.r.Context(), slog.LevelError, "request panicked",
		c.attrs(slog.Any("panic", panicValue), slog.String("stack", string(debug.Stack())))...)
	if c.w.Status != 0 {
		c.w.Broken = true
		return
	}
	f := rest.FailureOf(nil)
	f.Write(c.w)
}

// finish logs the request and records its metrics.
func (a *API) finish(c *call, started time.Time) {
	duration := a.cfg.Clock.Now().Sub(started)
	status := c.w.Status
	status = cmp.Or(status, 499) // the client disconnected before the response
	a.metrics.observe(c.route.name, status, duration)
	level := slog.LevelDebug
	if c.route.leaderOnly && c.r.Method != http.MethodGet {
		level = slog.LevelInfo // operators look for writes
	}
	if c.route.isPolled() {
		level = slog.LevelDebug
	}
	a.logger.LogAttrs(context.WithoutCancel(c.r.Context()), level, "request", c.attrs(
		slog.Int("status", status), slog.Duration("duration", duration), slog.Int64("bytes", c.w.Bytes))...)
}

// isPolled reports whether agents call the route all the time.
func (r *route) isPolled() bool { return r.tag == tagAgent }

func (c *call) attrs(more ...slog.Attr) []slog.Attr {
	list := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", c.r.Method), slog.String("route", c.route.name),
		slog.String("path", c.r.URL.Path), slog.String("remote", c.r.RemoteAddr),
	}
	if c.token != nil {
		list = append(list, slog.String("accessor", c.token.Accessor))
	}
	return append(list, more...)
}

// admit returns an error if the client exceeds its rate limit or the caller may not
// use the route.
func (a *API) admit(c *call) error {
	if c.route.roles == nil && c.route.scope == scopePublic && c.route.tag == tagHealth {
		return nil // monitoring must not be rate limited
	}
	addr := host(c.r.RemoteAddr)
	if a.isForwardedBy(c, addr) {
		return a.authorize(c) // the forwarding server has applied the limit
	}
	if wait := a.rates.Acquire(addr); wait > 0 {
		return &rest.Failure{
			Code: rest.CodeRateLimited, Message: "too many requests from " + addr, RetryAfter: wait,
			Hint: "send requests less often, or use blocking queries (index and wait) and the event stream instead of polling",
		}
	}
	return a.authorize(c)
}

// authorize returns an error if the caller may not use the route: CodeUnauthenticated
// if the token is missing or unknown, CodeForbidden if it lacks a role, and
// CodeNoLeader if the token is unknown to a server that has not caught up.
func (a *API) authorize(c *call) error {
	if !a.cfg.Security {
		return nil
	}
	secret := requestSecret(c.r)
	if secret != "" {
		token, ok := a.cfg.Server.Authenticate(secret)
		if !ok && !a.cfg.Server.CaughtUp() {
			return notCaughtUp("cannot verify the token: ")
		}
		if !ok {
			return &rest.Failure{Code: rest.CodeUnauthenticated, Message: "the token is unknown or no longer valid", Hint: "check CEDE_TOKEN"}
		}
		c.token = token
	}
	if c.route.roles == nil {
		return nil
	}
	if c.token == nil {
		return &rest.Failure{Code: rest.CodeUnauthenticated, Message: "a token is required", Hint: "set CEDE_TOKEN, or send the header Authorization: Bearer"}
	}
	if !acl.Allows(c.token.Roles, c.route.roles...) {
		return forbidden(c, "the role %s", joinRoles(c.route.roles))
	}
	return c.checkScope()
}

func forbidden(c *call, format string, args ...any) *rest.Failure {
	f := rest.Invalid("token "+rest.Quote(c.token.Name)+" lacks "+format, args...)
	f.Code, f.Hint = rest.CodeForbidden, "request the permission from an administrator of tokens"
	return f.With("Roles", c.token.Roles)
}

func joinRoles(roles []acl.Role) string {
	list := make([]string, len(roles))
	for i, r := range roles {
		list[i] = string(r)
	}
	return strings.Join(list, " or ")
}

// checkScope returns an error if a token that is restricted to a namespace requests
// anything outside of it.
func (c *call) checkScope() error {
	if c.token.Namespace == "" || c.route.scope == scopePublic {
		return nil
	}
	if c.route.scope == scopeCluster {
		return forbidden(c, "access to the whole cluster: it is restricted to namespace %s", rest.Quote(c.token.Namespace))
	}
	if ns := c.namespace(); ns != c.token.Namespace {
		return forbidden(c, "access to namespace %s: it is restricted to %s", rest.Quote(ns), rest.Quote(c.token.Namespace))
	}
	return nil
}

// canSee reports whether the caller may read objects of this namespace.
func (c *call) canSee(namespace string) bool {
	return c.token == nil || c.token.Namespace == "" || c.token.Namespace == namespace
}

// requestSecret returns the secret of the request, or "" if it has none.
func requestSecret(r *http.Request) string {
	if text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(text)
	}
	if text := r.Header.Get(headerToken); text != "" {
		return text
	}
	if _, secret, ok := r.BasicAuth(); ok {
		return secret // kube-scheduler supports only https://cede:SECRET@host/kube/v1
	}
	return r.Header.Get(headerNomadToken)
}

// requestIDPattern matches the request IDs that clients may choose.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// requestID returns the ID that the client sent if it is safe to log, or else a new
// one.
func requestID(r *http.Request) string {
	if id := r.Header.Get(headerRequestID); requestIDPattern.MatchString(id) {
		return id
	}
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

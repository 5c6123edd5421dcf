package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// request is one HTTP request, with all its attempts.
type request struct {
	c           *Client
	method      string
	path        string // escaped
	query       url.Values
	header      http.Header
	body        []byte
	stream      io.Reader     // used instead of body; such a request is sent once
	repeatable  bool          // sending it twice is safe
	conditional bool          // sending it twice is safe if the first attempt had no effect
	prompt      bool          // if a server does not respond in time, the next is tried
	wait        time.Duration // how long the server may wait before it responds
	uncertain   bool          // an attempt failed that may have taken effect
	contentType string
}

// call returns a request. The parts of the path are escaped, so that an ID may
// contain a slash.
func (c *Client) call(method string, parts ...string) *request {
	r := &request{c: c, method: method, path: "/v1", query: url.Values{}, header: http.Header{}, repeatable: method == http.MethodGet}
	for _, p := range parts {
		r.path += "/" + url.PathEscape(p)
	}
	r.namespace("")
	if method == http.MethodGet {
		r.freshness(c.stale, c.consistent)
	}
	return r
}

// freshness sets the required consistency of a read; the last call counts.
func (r *request) freshness(stale, consistent bool) {
	for _, way := range []struct {
		name string
		on   bool
	}{{"stale", stale}, {"consistent", consistent}} {
		if stale || consistent {
			r.query.Del(way.name)
		}
		if way.on {
			r.query.Set(way.name, "true")
		}
	}
}

func (r *request) namespace(ns string) {
	ns = cmp.Or(ns, r.c.defaultNS)
	if ns != "" {
		r.query.Set("namespace", ns)
	}
}

// json sets the body.
func (r *request) json(v any) (*request, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	r.body, r.contentType = body, "application/json"
	return r, nil
}

// once makes a write repeatable. Servers process each idempotency key once for jobs and
// bindings; other writes must have the same effect if they are processed twice.
func (r *request) once() *request {
	if r.header.Get(headerIdempotency) == "" {
		var key [16]byte
		_, _ = rand.Read(key[:]) // never fails
		r.header.Set(headerIdempotency, hex.EncodeToString(key[:]))
	}
	r.repeatable = true
	return r
}

// check makes a write conditional: the object must have this ModifyIndex; nil: any. A
// conditional write is repeated only after an attempt without effect, because its condition
// would not hold after another one.
func (r *request) check(index *uint64) *request {
	if index == nil {
		return r.once()
	}
	r.query.Set("cas", strconv.FormatUint(*index, 10))
	r.conditional = true
	return r
}

// exchange sends in as JSON and decodes the response into out.
func (r *request) exchange(ctx context.Context, in, out any) error {
	r, err := r.json(in)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, out)
	return err
}

// do sends the request, repeats it if that is safe and useful, and decodes the
// response into out, unless out is nil.
func (r *request) do(ctx context.Context, out any) (*QueryMeta, error) {
	r.prompt = true
	resp, err := r.send(ctx)
	if r.uncertain && r.method == http.MethodDelete && IsNotFound(err) {
		return &QueryMeta{}, nil // an earlier attempt has deleted it
	}
	if err != nil {
		return nil, err
	}
	defer func() { drain(resp.Body); _ = resp.Body.Close() }()
	meta := readMeta(resp)
	if out == nil {
		return meta, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return meta, fmt.Errorf("%s %s: invalid response of the server: %w", r.method, r.path, err)
	}
	return meta, nil
}

// send returns a successful response. The caller must close its body.
func (r *request) send(ctx context.Context) (*http.Response, error) {
	r.c.findResponsive(ctx)
	first := r.c.preferred.Load()
	var electing time.Time // since when no server has a leader; zero: there is one
	for attempt := 0; ; attempt++ {
		list := *r.c.addresses.Load()
		at := (first + uint32(attempt)) % uint32(len(list))
		resp, err := r.sendOnce(ctx, list[at])
		if err == nil {
			r.c.preferred.Store(at)
			return resp, nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			// The server may hang: the next request starts with another one.
			r.c.preferred.CompareAndSwap(at, (at+1)%uint32(len(list)))
		}
		if electing.IsZero() && HasCode(err, CodeNoLeader) {
			electing = time.Now()
		}
		r.uncertain = r.uncertain || OutcomeUnknown(err)
		delay, again := r.again(ctx, err, attempt, electing)
		if !again {
			return nil, err
		}
		if !sleep(ctx, delay) {
			return nil, err
		}
	}
}

const (
	// electionPatience is the minimum time for which a request is repeated if no
	// server has a leader, unless the caller sets Retries. An election usually takes
	// less than a second.
	electionPatience = 3 * time.Second
	// defaultSilence is the default of Config.Silence.
	defaultSilence = 10 * time.Second
	// electionDelay is the longest delay between attempts during an election.
	electionDelay = 200 * time.Millisecond
)

// again reports whether the request is repeated after err, and after which delay.
// electing is the time since which no server has had a leader.
func (r *request) again(ctx context.Context, err error, attempt int, electing time.Time) (time.Duration, bool) {
	most := r.c.attempts()
	safe := r.repeatable || r.conditional && !OutcomeUnknown(err)
	if !safe || r.stream != nil || most == 0 || ctx.Err() != nil {
		return 0, false
	}
	more := attempt < most
	delay := r.c.backoff(attempt)
	if !electing.IsZero() {
		delay = min(delay, electionDelay)
		more = more || time.Since(electing) < r.c.electionPatience
	}
	e := asError(err)
	switch {
	case e == nil: // no response: the next server may respond
		if attempt < len(*r.c.addresses.Load())-1 {
			delay = 0
		}
		return delay, more
	case e.Code == CodeNoLeader:
		return delay, more
	case e.Code == CodeRateLimited, e.Code == CodeUnavailable, e.Code == CodeUnknownOutcome:
		return max(delay, e.RetryAfter), more
	}
	return 0, false
}

// attempts returns the number of further attempts: at least one per server.
func (c *Client) attempts() int {
	if c.retries == 0 {
		return 0
	}
	return max(c.retries, len(*c.addresses.Load())-1)
}

// backoff returns the delay before an attempt. It doubles with each attempt, up to 5
// s; half of it is random, so that clients do not retry simultaneously.
func (c *Client) backoff(attempt int) time.Duration {
	d := min(c.retryDelay<<min(attempt, 10), 5*time.Second)
	return d/2 + mathrand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *request) sendOnce(ctx context.Context, address string) (*http.Response, error) {
	target := address + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	switch {
	case r.stream != nil:
		body = r.stream
	case r.body != nil:
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header = r.header.Clone()
	req.Header.Set("User-Agent", r.c.userAgent)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if r.c.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.c.token)
	}
	resp, err := r.answered(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL is part of the message below
		}
		return nil, &UnreachableError{Address: address, Err: err}
	}
	if r.c.heard != nil && r.method == http.MethodGet && resp.Header.Get(headerLeader) != "" {
		r.c.heard(address, *readMeta(resp))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer func() { drain(resp.Body); _ = resp.Body.Close() }()
		return nil, readError(resp)
	}
	return resp, nil
}

// errSilent is returned if a server does not respond in time.
var errSilent = errors.New("no response in time")

// answered sends one attempt. If another server could be tried instead, it waits for
// the start of the response no longer than Config.Silence.
func (r *request) answered(req *http.Request) (*http.Response, error) {
	if !r.prompt || !r.repeatable || r.c.silence <= 0 || len(*r.c.addresses.Load()) < 2 {
		return r.c.http.Do(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	silence := time.AfterFunc(r.c.silence+r.wait, func() { cancel(errSilent) })
	resp, err := r.c.http.Do(req.WithContext(ctx))
	silence.Stop()
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &closeHookBody{ReadCloser: resp.Body, end: func() { cancel(nil) }}
	return resp, nil
}

// closeHookBody is a body that calls a function when it is closed.
type closeHookBody struct {
	io.ReadCloser

	end func()
}

func (b *closeHookBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// drain reads a small rest of a body, so that its connection can be reused.
func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, 64<<10) }

// retryAfter returns the delay that a response requests.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// get sends a read with query options.
func (c *Client) get(ctx context.Context, q *QueryOptions, out any, parts ...string) (*QueryMeta, error) {
	r := c.call(http.MethodGet, parts...)
	q.apply(r)
	return r.do(ctx, out)
}

// write sends in, which may be nil, and decodes the response into out, which may be
// nil. If once is set, the write is repeated if its outcome is unknown.
func (c *Client) write(ctx context.Context, method string, w *WriteOptions, once bool, in, out any, parts ...string) error {
	r := c.call(method, parts...)
	w.apply(r)
	switch {
	case once && method == http.MethodDelete:
		// Without a key, which servers ignore here: net/http itself would repeat the request
		// with one, and do could not distinguish a second deletion from that of a missing
		// object.
		r.repeatable = true
	case once:
		r.once()
	}
	if in != nil {
		if _, err := r.json(in); err != nil {
			return err
		}
	}
	_, err := r.do(ctx, out)
	return err
}

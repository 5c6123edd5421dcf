package client

import (
	"bytes"
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

// request is one thing to ask, as often as it takes.
type request struct {
	c           *Client
	method      string
	path        string // escaped
	query       url.Values
	header      http.Header
	body        []byte
	stream      io.Reader     // instead of body; such a request is sent once
	repeatable  bool          // sending it twice does no harm
	prompt      bool          // whoever does not begin to answer in time is passed over
	wait        time.Duration // how long the server is asked to wait before it answers
	contentType string
}

// call starts a request. The parts of the path are escaped, so that an id may
// hold a slash.
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

// freshness is how new the state must be that is read; the last word counts.
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
	if ns == "" {
		ns = r.c.defaultNS
	}
	if ns != "" {
		r.query.Set("namespace", ns)
	}
}

// json gives the request a body.
func (r *request) json(v any) (*request, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	r.body, r.contentType = body, "application/json"
	return r, nil
}

// once makes a write repeatable: servers do the same key's work once.
func (r *request) once() *request {
	if r.header.Get(headerIdempotency) == "" {
		var key [16]byte
		_, _ = rand.Read(key[:]) // never fails
		r.header.Set(headerIdempotency, hex.EncodeToString(key[:]))
	}
	r.repeatable = true
	return r
}

// exchange sends in, a pointer to what JSON is made of, and reads the answer into out.
func (r *request) exchange(ctx context.Context, in, out any) error {
	r, err := r.json(in)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, out)
	return err
}

// do sends the request, again where that is harmless and of use, and decodes
// the answer into out, unless out is nil.
func (r *request) do(ctx context.Context, out any) (*QueryMeta, error) {
	r.prompt = true
	resp, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { drain(resp.Body); _ = resp.Body.Close() }()
	meta := readMeta(resp)
	if out == nil {
		return meta, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return meta, fmt.Errorf("%s %s: the server's answer: %w", r.method, r.path, err)
	}
	return meta, nil
}

// send returns a response of success; its body is the caller's to close.
func (r *request) send(ctx context.Context) (*http.Response, error) {
	r.c.reach(ctx)
	first := r.c.preferred.Load()
	var electing time.Time // since when servers know no leader; zero: they do
	for attempt := 0; ; attempt++ {
		list := *r.c.addresses.Load()
		at := (first + uint32(attempt)) % uint32(len(list))
		resp, err := r.sendOnce(ctx, list[at])
		if err == nil {
			r.c.preferred.Store(at)
			return resp, nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			// It may sleep: whoever asks next begins with another one.
			r.c.preferred.CompareAndSwap(at, (at+1)%uint32(len(list)))
		}
		if electing.IsZero() && HasCode(err, CodeNoLeader) {
			electing = time.Now()
		}
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
	// electionPatience is for how long a request is repeated at least, unless the caller
	// says how often, once a server knew no leader: mostly there is one within a second.
	electionPatience = 3 * time.Second
	// defaultSilence is how long one of several servers may take to begin its answer.
	defaultSilence = 10 * time.Second
	// electionDelay is the longest pause meanwhile.
	electionDelay = 200 * time.Millisecond
)

// again is whether to repeat the request after err, and after how long. electing is
// since when servers know no leader.
func (r *request) again(ctx context.Context, err error, attempt int, electing time.Time) (time.Duration, bool) {
	most := r.c.attempts()
	if !r.repeatable || r.stream != nil || most == 0 || ctx.Err() != nil {
		return 0, false
	}
	more := attempt < most
	delay := r.c.backoff(attempt)
	if !electing.IsZero() {
		delay = min(delay, electionDelay)
		more = more || time.Since(electing) < r.c.patience
	}
	e := asError(err)
	switch {
	case e == nil: // nobody answered: the next one may
		if attempt < len(*r.c.addresses.Load())-1 {
			delay = 0
		}
		return delay, more
	case e.Code == CodeNoLeader:
		return delay, more
	case e.Code == CodeRateLimited, e.Code == CodeUnavailable:
		return max(delay, e.RetryAfter), more
	}
	return 0, false
}

// attempts is how many further ones are made: each server gets its turn.
func (c *Client) attempts() int {
	if c.retries == 0 {
		return 0
	}
	return max(c.retries, len(*c.addresses.Load())-1)
}

// backoff doubles with each attempt, up to 5 s; half of it is chance, so that
// many clients do not come back at once.
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
			err = u.Err // the URL is named below
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

// errSilent is why a server that does not answer is passed over.
var errSilent = errors.New("it does not answer in time")

// answered sends one attempt. Where another server could be asked instead, it waits
// no longer for the first of the answer than Config.Silence.
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
	resp.Body = &endedBody{ReadCloser: resp.Body, end: func() { cancel(nil) }}
	return resp, nil
}

// endedBody is a body with something to do when it is closed.
type endedBody struct {
	io.ReadCloser

	end func()
}

func (b *endedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// drain empties a small rest of a body, so that its connection can be used
// again.
func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, 64<<10) }

// retryAfter is how long a response asks to wait.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// get asks for something that can be read by queries.
func (c *Client) get(ctx context.Context, q *QueryOptions, out any, parts ...string) (*QueryMeta, error) {
	r := c.call(http.MethodGet, parts...)
	q.apply(r)
	return r.do(ctx, out)
}

// write sends in, which may be nil, and decodes the answer into out, which may
// be nil. Where the server knows idempotency keys, once makes one.
func (c *Client) write(ctx context.Context, method string, w *WriteOptions, once bool, in, out any, parts ...string) error {
	r := c.call(method, parts...)
	w.apply(r)
	if once {
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

package client

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// QueryOptions narrows and times a read. A nil *QueryOptions is the zero one.
type QueryOptions struct {
	Namespace  string        // "*": all; "": the client's
	Prefix     string        // of ids
	Index      uint64        // with Wait: answer once the state is newer than this
	Wait       time.Duration // how long to wait for that at most; 0 with Index: the server's default (5 m)
	PerPage    int           // at most this many; 0: all
	NextToken  string        // of the page before
	Stale      bool          // any server answers from what it has
	Consistent bool          // the leader makes sure that it still leads first
	Params     url.Values    // further parameters
}

// WriteOptions says for whom, and how often, a write is made. A nil
// *WriteOptions is the zero one.
type WriteOptions struct {
	Namespace      string // "": the client's
	IdempotencyKey string // the same key does the same thing once; where writes may be repeated and it is "": a random one
}

// QueryMeta is what a read says of the state that it read.
type QueryMeta struct {
	LastIndex   uint64        // for the next blocking query's Index
	LastContact time.Duration // since the server last heard the leader
	KnownLeader bool
	NextToken   string // of the next page; "": this was the last
	RequestID   string
}

// The headers of requests and responses.
const (
	headerIndex       = "X-Nomad-Index"
	headerLeader      = "X-Nomad-KnownLeader"
	headerContact     = "X-Nomad-LastContact"
	headerNext        = "X-Nomad-NextToken"
	headerNodeSecret  = "X-Cede-Node-Secret"
	headerRequestID   = "X-Request-Id"
	headerIdempotency = "Idempotency-Key"
)

// serversWait is how long a server waits for a newer state unless it is told.
const serversWait = 5 * time.Minute

func (q *QueryOptions) apply(r *request) {
	if q == nil {
		return
	}
	r.namespace(q.Namespace)
	set := func(name, value string) {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	set("prefix", q.Prefix)
	set("next_token", q.NextToken)
	if q.Index > 0 {
		r.query.Set("index", strconv.FormatUint(q.Index, 10))
		r.wait = cmp.Or(q.Wait, serversWait)
	}
	if q.Wait > 0 {
		r.query.Set("wait", q.Wait.String())
	}
	if q.PerPage > 0 {
		r.query.Set("per_page", strconv.Itoa(q.PerPage))
	}
	r.freshness(q.Stale, q.Consistent)
	maps.Copy(r.query, q.Params)
}

// of is the options for something that may name its namespace itself.
func (w *WriteOptions) of(namespace string) *WriteOptions {
	var options WriteOptions
	if w != nil {
		options = *w
	}
	options.Namespace = cmp.Or(namespace, options.Namespace)
	return &options
}

func (w *WriteOptions) apply(r *request) {
	if w == nil {
		return
	}
	r.namespace(w.Namespace)
	if w.IdempotencyKey != "" {
		r.header.Set(headerIdempotency, w.IdempotencyKey)
	}
}

func readMeta(resp *http.Response) *QueryMeta {
	h := resp.Header
	m := &QueryMeta{NextToken: h.Get(headerNext), RequestID: h.Get(headerRequestID)}
	m.LastIndex, _ = strconv.ParseUint(h.Get(headerIndex), 10, 64)
	m.KnownLeader, _ = strconv.ParseBool(h.Get(headerLeader))
	ms, _ := strconv.ParseInt(h.Get(headerContact), 10, 64)
	m.LastContact = time.Duration(ms) * time.Millisecond
	return m
}

// AllPages calls get for one page after another, until there is no next one or
// get fails.
func AllPages(ctx context.Context, q *QueryOptions, get func(context.Context, *QueryOptions) (*QueryMeta, error)) error {
	page := QueryOptions{}
	if q != nil {
		page = *q
	}
	for {
		meta, err := get(ctx, &page)
		if err != nil {
			return err
		}
		if meta.NextToken == "" {
			return nil
		}
		page.NextToken = meta.NextToken
	}
}

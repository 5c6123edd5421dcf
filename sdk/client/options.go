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

// QueryOptions holds the options of a read. A nil *QueryOptions means no options.
type QueryOptions struct {
	Namespace  string        // "*": all; "": the client's
	Prefix     string        // of ids
	Index      uint64        // with Wait: respond once the state is newer than this index
	Wait       time.Duration // maximum time to wait; 0 with Index: the server's default (5 m)
	PerPage    int           // maximum number of results; 0: all
	NextToken  string        // from the preceding page
	Stale      bool          // any server responds from its own state
	Consistent bool          // the leader verifies that it still leads first
	Params     url.Values    // further parameters
}

// WriteOptions holds the options of a write. A nil *WriteOptions means no options.
type WriteOptions struct {
	Namespace      string // "": the client's
	IdempotencyKey string // writes with the same key are processed once; if it is "" and the write may be repeated, a random key is used
}

// QueryMeta describes the state that a read returned.
type QueryMeta struct {
	LastIndex   uint64        // for the next blocking query's Index
	LastContact time.Duration // time since the server's last contact with the leader
	KnownLeader bool
	NextToken   string // of the next page; "" on the last page
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

// serversWait is the server's default for Wait.
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

// of returns the options with the namespace of an object that may carry one.
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

// AllPages calls get for one page after another, until there is no next page or get
// returns an error.
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

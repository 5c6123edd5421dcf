package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Allocations is what can be done with allocations; Client.Allocations makes
// one.
type Allocations struct{ c *Client }

// List lists allocations, ascending by id.
func (a Allocations) List(ctx context.Context, q *QueryOptions) (list []*AllocationStub, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &list, "allocations")
	return list, meta, err
}

// Get returns an allocation. The id may be any prefix that is unique.
func (a Allocations) Get(ctx context.Context, id string, q *QueryOptions) (*Allocation, *QueryMeta, error) {
	out := &Allocation{}
	meta, err := a.c.get(ctx, q, out, "allocation", id)
	return out, meta, err
}

// Stop ends an allocation; its job gets another.
func (a Allocations) Stop(ctx context.Context, id string, w *WriteOptions) (*AllocStopResponse, error) {
	out := &AllocStopResponse{}
	return out, a.c.write(ctx, http.MethodPost, w, false, nil, out, "allocation", id, "stop")
}

// LogOptions says what of an allocation's output to read.
type LogOptions struct {
	Task   string // may be empty where the group has one task
	Stderr bool   // standard error in place of standard output
	Follow bool   // goes on until the task ends
	Offset int64  // bytes from the beginning; negative: from the end
}

// Logs copies what an allocation wrote to w. The server asks the node, so it is
// told here as well when the node does not answer.
func (a Allocations) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	r := a.c.call(http.MethodGet, "allocation", id, "logs")
	r.query = url.Values{"stream": {"stdout"}}
	if o.Stderr {
		r.query.Set("stream", "stderr")
	}
	if o.Task != "" {
		r.query.Set("task", o.Task)
	}
	if o.Follow {
		r.query.Set("follow", "true")
	}
	if o.Offset != 0 {
		r.query.Set("offset", strconv.FormatInt(o.Offset, 10))
	}
	resp, err := r.send(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	_, err = io.Copy(w, resp.Body)
	return err
}

// Evaluations is what can be done with evaluations; Client.Evaluations makes
// one.
type Evaluations struct{ c *Client }

// List lists evaluations, ascending by id.
func (e Evaluations) List(ctx context.Context, q *QueryOptions) (list []*Evaluation, meta *QueryMeta, err error) {
	meta, err = e.c.get(ctx, q, &list, "evaluations")
	return list, meta, err
}

// Get returns an evaluation, with those that it made and that made it. The id
// may be any prefix that is unique.
func (e Evaluations) Get(ctx context.Context, id string, q *QueryOptions) (*Evaluation, *QueryMeta, error) {
	out := &Evaluation{}
	r := e.c.call(http.MethodGet, "evaluation", id)
	q.apply(r)
	r.query.Set("related", "true")
	meta, err := r.do(ctx, out)
	return out, meta, err
}

// Allocations lists what an evaluation placed or changed last.
func (e Evaluations) Allocations(ctx context.Context, id string, q *QueryOptions) (list []*AllocationStub, meta *QueryMeta, err error) {
	meta, err = e.c.get(ctx, q, &list, "evaluation", id, "allocations")
	return list, meta, err
}

package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Allocations holds the calls for allocations; see Client.Allocations.
type Allocations struct{ c *Client }

// List lists allocations, ascending by id.
func (a Allocations) List(ctx context.Context, q *QueryOptions) (list []*AllocationStub, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &list, "allocations")
	return list, meta, err
}

// Get returns an allocation. The ID may be any unique prefix.
func (a Allocations) Get(ctx context.Context, id string, q *QueryOptions) (*Allocation, *QueryMeta, error) {
	out := &Allocation{}
	meta, err := a.c.get(ctx, q, out, "allocation", id)
	return out, meta, err
}

// Stop stops an allocation. Its job gets a replacement.
func (a Allocations) Stop(ctx context.Context, id string, w *WriteOptions) (*AllocStopResponse, error) {
	out := &AllocStopResponse{}
	return out, a.c.write(ctx, http.MethodPost, w, true, nil, out, "allocation", id, "stop")
}

// LogOptions selects the output of an allocation.
type LogOptions struct {
	Task   string // may be empty if the group has one task
	Stderr bool   // standard error instead of standard output
	Follow bool   // continue until the task ends
	Offset int64  // bytes from the beginning; negative: from the end
}

// Logs copies the output of an allocation to w. The server requests it from the node.
// If the node does not respond, Logs returns an error.
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

// Evaluations holds the calls for evaluations; see Client.Evaluations.
type Evaluations struct{ c *Client }

// List lists evaluations, ascending by id.
func (e Evaluations) List(ctx context.Context, q *QueryOptions) (list []*Evaluation, meta *QueryMeta, err error) {
	meta, err = e.c.get(ctx, q, &list, "evaluations")
	return list, meta, err
}

// Get returns an evaluation with its predecessors and successors. The ID may be any
// unique prefix.
func (e Evaluations) Get(ctx context.Context, id string, q *QueryOptions) (*Evaluation, *QueryMeta, error) {
	out := &Evaluation{}
	r := e.c.call(http.MethodGet, "evaluation", id)
	q.apply(r)
	r.query.Set("related", "true")
	meta, err := r.do(ctx, out)
	return out, meta, err
}

// Allocations lists the allocations that an evaluation placed or changed last.
func (e Evaluations) Allocations(ctx context.Context, id string, q *QueryOptions) (list []*AllocationStub, meta *QueryMeta, err error) {
	meta, err = e.c.get(ctx, q, &list, "evaluation", id, "allocations")
	return list, meta, err
}

// Cancel cancels pending and blocked evaluations, all of them or none. It returns an error
// that lists each evaluation that is unknown, is being processed, or has ended. Evaluations
// that are cancelled already are accepted.
func (e Evaluations) Cancel(ctx context.Context, ids []string, w *WriteOptions) (*EvalCancelResponse, error) {
	out := &EvalCancelResponse{}
	return out, e.c.write(ctx, http.MethodDelete, w, true, &EvalCancelRequest{EvalIDs: ids}, out, "evaluations")
}

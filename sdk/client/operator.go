package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Operator is what keeps a cluster well; Client.Operator makes one.
type Operator struct{ c *Client }

// BrokerPause stops handing out evaluations; they are kept.
func (o Operator) BrokerPause(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodPut, "pause")
}

// BrokerResume hands evaluations out again.
func (o Operator) BrokerResume(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodPut, "resume")
}

// BrokerStatus counts what the broker holds.
func (o Operator) BrokerStatus(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodGet, "status")
}

func (o Operator) broker(ctx context.Context, method, verb string) (*BrokerStatus, error) {
	out := &BrokerStatus{}
	return out, o.c.write(ctx, method, nil, false, nil, out, "operator", "broker", verb)
}

// RaftStatus says how replication stands on the server that answers.
func (o Operator) RaftStatus(ctx context.Context) (*RaftStatus, error) {
	out := &RaftStatus{}
	_, err := o.c.get(ctx, nil, out, "operator", "raft", "status")
	return out, err
}

// RaftStatusWithHash is RaftStatus with a hash over the server's state, which costs it
// a walk over everything.
func (o Operator) RaftStatusWithHash(ctx context.Context) (*RaftStatus, error) {
	r := o.c.call(http.MethodGet, "operator", "raft", "status")
	r.query.Set("hash", "true")
	out := &RaftStatus{}
	_, err := r.do(ctx, out)
	return out, err
}

// RaftConfiguration says who the cluster's servers are.
func (o Operator) RaftConfiguration(ctx context.Context) (*RaftConfiguration, error) {
	out := &RaftConfiguration{}
	_, err := o.c.get(ctx, nil, out, "operator", "raft", "configuration")
	return out, err
}

// TransferLeadership has another server lead.
func (o Operator) TransferLeadership(ctx context.Context) error {
	return o.c.write(ctx, http.MethodPut, nil, false, nil, nil, "operator", "raft", "transfer-leadership")
}

// SnapshotSave writes the whole state to w.
func (o Operator) SnapshotSave(ctx context.Context, w io.Writer) error {
	r := o.c.call(http.MethodGet, "operator", "snapshot")
	r.header.Set("Accept", "application/octet-stream")
	resp, err := r.send(ctx)
	if err != nil {
		return err
	}
	defer func() { drain(resp.Body); _ = resp.Body.Close() }()
	n, err := io.Copy(w, resp.Body)
	if err == nil && resp.Trailer.Get(headerComplete) != "true" {
		err = &Error{Code: CodeUnavailable, Message: "the snapshot broke off after " + strconv.FormatInt(n, 10) + " bytes", Hint: "save it again; what was written is of no use"}
	}
	return err
}

// headerComplete ends the answer to SnapshotSave: the snapshot is whole.
const headerComplete = "X-Cede-Complete"

// SnapshotRestore replaces the whole state by a snapshot.
func (o Operator) SnapshotRestore(ctx context.Context, from io.Reader) error {
	r := o.c.call(http.MethodPut, "operator", "snapshot")
	r.stream, r.contentType = from, "application/octet-stream"
	_, err := r.do(ctx, nil)
	return err
}

// GC collects garbage now; with force, whatever is finished, however new.
func (o Operator) GC(ctx context.Context, force bool) (*GCResponse, error) {
	r := o.c.call(http.MethodPut, "system", "gc")
	r.query.Set("force", strconv.FormatBool(force))
	out := &GCResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// Reload has the server read its configuration again.
func (o Operator) Reload(ctx context.Context) (*ReloadResponse, error) {
	out := &ReloadResponse{}
	return out, o.c.write(ctx, http.MethodPut, nil, false, nil, out, "agent", "reload")
}

// Bootstrap makes the first token, which may do everything. It works once.
func (o Operator) Bootstrap(ctx context.Context) (*Token, error) {
	out := &Token{}
	return out, o.c.write(ctx, http.MethodPut, nil, false, nil, out, "acl", "bootstrap")
}

// Tokens lists tokens, without their secrets.
func (o Operator) Tokens(ctx context.Context, q *QueryOptions) (list []*Token, meta *QueryMeta, err error) {
	meta, err = o.c.get(ctx, q, &list, "acl", "tokens")
	return list, meta, err
}

// TokenSelf returns the token of this client.
func (o Operator) TokenSelf(ctx context.Context) (*Token, error) {
	out := &Token{}
	_, err := o.c.get(ctx, nil, out, "acl", "token", "self")
	return out, err
}

// Token returns a token, without its secret. The accessor may be any prefix that
// is unique.
func (o Operator) Token(ctx context.Context, accessor string) (*Token, error) {
	out := &Token{}
	_, err := o.c.get(ctx, nil, out, "acl", "token", accessor)
	return out, err
}

// TokenCreate makes a token; its secret is shown this once.
func (o Operator) TokenCreate(ctx context.Context, req *TokenCreateRequest) (*Token, error) {
	out := &Token{}
	return out, o.c.write(ctx, http.MethodPut, nil, false, req, out, "acl", "token")
}

// TokenDelete forgets a token; whoever holds it is refused from then on.
func (o Operator) TokenDelete(ctx context.Context, accessor string) error {
	return o.c.write(ctx, http.MethodDelete, nil, false, nil, nil, "acl", "token", accessor)
}

// Decisions lists what policies decided on the server that answers, the newest
// first.
func (o Operator) Decisions(ctx context.Context, q *QueryOptions) (list []*PolicyDecision, meta *QueryMeta, err error) {
	meta, err = o.c.get(ctx, q, &list, "decisions")
	return list, meta, err
}

// Status is how a server does; Client.Status makes one.
type Status struct{ c *Client }

// Leader is the address of the leader; "" while there is none.
func (s Status) Leader(ctx context.Context) (string, error) {
	var out string
	_, err := s.c.get(ctx, nil, &out, "status", "leader")
	return out, err
}

// Peers lists the addresses of the servers.
func (s Status) Peers(ctx context.Context) ([]string, error) {
	var out []string
	_, err := s.c.get(ctx, nil, &out, "status", "peers")
	return out, err
}

// Members lists the servers of the pool.
func (s Status) Members(ctx context.Context) (*Members, error) {
	out := &Members{}
	_, err := s.c.get(ctx, nil, out, "agent", "members")
	return out, err
}

// Self is what the process that answers says of itself.
func (s Status) Self(ctx context.Context) (*AgentSelf, error) {
	out := &AgentSelf{}
	_, err := s.c.get(ctx, nil, out, "agent", "self")
	return out, err
}

// Health asks whether the server can do its work. A server that cannot is no
// error: OK is false, and Checks say why.
func (s Status) Health(ctx context.Context) (*Health, error) {
	r := s.c.call(http.MethodGet)
	r.path, r.query = "/readyz", url.Values{"verbose": {"true"}}
	r.repeatable = false
	out := &Health{}
	_, err := r.do(ctx, out)
	if e := asError(err); e != nil && e.Code == CodeUnavailable && e.Details["Checks"] != nil {
		return out, remarshal(e.Details, out)
	}
	return out, err
}

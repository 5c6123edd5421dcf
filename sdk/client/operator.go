package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Operator holds the calls for operators; see Client.Operator.
type Operator struct{ c *Client }

// BrokerPause stops the delivery of evaluations; they remain queued.
func (o Operator) BrokerPause(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodPut, "pause")
}

// BrokerResume resumes the delivery of evaluations.
func (o Operator) BrokerResume(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodPut, "resume")
}

// BrokerStatus returns the counts of queued evaluations.
func (o Operator) BrokerStatus(ctx context.Context) (*BrokerStatus, error) {
	return o.broker(ctx, http.MethodGet, "status")
}

func (o Operator) broker(ctx context.Context, method, verb string) (*BrokerStatus, error) {
	out := &BrokerStatus{}
	return out, o.c.write(ctx, method, nil, true, nil, out, "operator", "broker", verb)
}

// RaftStatus returns the replication status of the responding server.
func (o Operator) RaftStatus(ctx context.Context) (*RaftStatus, error) {
	out := &RaftStatus{}
	_, err := o.c.get(ctx, nil, out, "operator", "raft", "status")
	return out, err
}

// RaftStatusWithHash is RaftStatus with a hash of the server's state. The server
// walks its whole state to compute it.
func (o Operator) RaftStatusWithHash(ctx context.Context) (*RaftStatus, error) {
	r := o.c.call(http.MethodGet, "operator", "raft", "status")
	r.query.Set("hash", "true")
	out := &RaftStatus{}
	_, err := r.do(ctx, out)
	return out, err
}

// RaftConfiguration returns the servers of the cluster.
func (o Operator) RaftConfiguration(ctx context.Context) (*RaftConfiguration, error) {
	out := &RaftConfiguration{}
	_, err := o.c.get(ctx, nil, out, "operator", "raft", "configuration")
	return out, err
}

// TransferLeadership transfers leadership to another server.
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
		err = &Error{Code: CodeUnavailable, Message: "the snapshot was truncated after " + strconv.FormatInt(n, 10) + " bytes", Hint: "save it again; the incomplete file cannot be restored"}
	}
	return err
}

// headerComplete is the trailer that marks a complete snapshot.
const headerComplete = "X-Cede-Complete"

// SnapshotRestore replaces the whole state by a snapshot.
func (o Operator) SnapshotRestore(ctx context.Context, from io.Reader) error {
	r := o.c.call(http.MethodPut, "operator", "snapshot")
	r.stream, r.contentType = from, "application/octet-stream"
	_, err := r.do(ctx, nil)
	return err
}

// GC collects garbage now. With force, it removes every finished object, regardless of age.
func (o Operator) GC(ctx context.Context, force bool) (*GCResponse, error) {
	r := o.c.call(http.MethodPut, "system", "gc")
	r.query.Set("force", strconv.FormatBool(force))
	out := &GCResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// Reload makes the server reload its configuration.
func (o Operator) Reload(ctx context.Context) (*ReloadResponse, error) {
	out := &ReloadResponse{}
	return out, o.c.write(ctx, http.MethodPut, nil, false, nil, out, "agent", "reload")
}

// Bootstrap creates the first token, which has all permissions. It succeeds once.
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

// Token returns a token, without its secret. The accessor may be any unique prefix.
func (o Operator) Token(ctx context.Context, accessor string) (*Token, error) {
	out := &Token{}
	_, err := o.c.get(ctx, nil, out, "acl", "token", accessor)
	return out, err
}

// TokenCreate creates a token. Only this response holds its secret.
func (o Operator) TokenCreate(ctx context.Context, req *TokenCreateRequest) (*Token, error) {
	out := &Token{}
	return out, o.c.write(ctx, http.MethodPut, nil, false, req, out, "acl", "token")
}

// TokenDelete deletes a token. Requests with it are rejected from then on.
func (o Operator) TokenDelete(ctx context.Context, accessor string) error {
	return o.c.write(ctx, http.MethodDelete, nil, true, nil, nil, "acl", "token", accessor)
}

// An AuditFilter selects audit records. Fields that are empty select all.
type AuditFilter struct {
	Action string // an action, or its part before the dot, such as policy
	Actor  string // accessor, prefix of an accessor, or name of a token; trial; or server
	Object string
	Since  string // RFC 3339, or a duration before now such as 24h
	Until  string // as Since
}

// Audit lists the changes by operators that match a filter, newest first.
func (o Operator) Audit(ctx context.Context, f AuditFilter, q *QueryOptions) (list []*AuditRecord, meta *QueryMeta, err error) {
	r := o.c.call(http.MethodGet, "operator", "audit")
	q.apply(r)
	for name, value := range map[string]string{"action": f.Action, "actor": f.Actor, "object": f.Object, "since": f.Since, "until": f.Until} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	meta, err = r.do(ctx, &list)
	return list, meta, err
}

// Decisions lists the recorded decisions of policies on the responding server, newest
// first.
func (o Operator) Decisions(ctx context.Context, q *QueryOptions) (list []*PolicyDecision, meta *QueryMeta, err error) {
	meta, err = o.c.get(ctx, q, &list, "decisions")
	return list, meta, err
}

// Status holds the calls for the status of servers; see Client.Status.
type Status struct{ c *Client }

// Leader returns the address of the leader, or "" if there is none.
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

// Self returns the description of the responding process.
func (s Status) Self(ctx context.Context) (*AgentSelf, error) {
	out := &AgentSelf{}
	_, err := s.c.get(ctx, nil, out, "agent", "self")
	return out, err
}

// Health returns the health of the server. If it is unhealthy, OK is false, Checks
// give the reasons, and the error is nil.
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

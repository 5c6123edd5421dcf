package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagOperator = "operator"

func operatorRoutes() []route {
	reader, operator, management := []acl.Role{acl.Read}, []acl.Role{acl.Operate}, []acl.Role{acl.Management}
	return []route{
		{
			methods: putMethods, pattern: "/v1/operator/broker/pause", name: "broker_pause", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Pauses the evaluation broker of the leader. Evaluations stay queued.", response: client.BrokerStatus{},
			handle: func(a *API, c *call) (any, error) { return setPaused(a, c, a.cfg.Server.PauseBroker) },
		},
		{
			methods: putMethods, pattern: "/v1/operator/broker/resume", name: "broker_resume", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Resumes the evaluation broker.", response: client.BrokerStatus{},
			handle: func(a *API, c *call) (any, error) { return setPaused(a, c, a.cfg.Server.ResumeBroker) },
		},
		{
			methods: get, pattern: "/v1/operator/broker/status", name: "broker_status", tag: tagOperator, roles: reader, leaderOnly: true,
			doc: "Returns the counters of the leader's evaluation broker.", response: client.BrokerStatus{}, handle: brokerStatus,
		},
		{
			methods: get, pattern: "/v1/operator/raft/status", name: "raft_status", tag: tagOperator, roles: reader,
			doc: "Returns the replication status of the server that handles the request.", params: []param{{"hash", "boolean", "include a hash of the state"}},
			response: client.RaftStatus{}, handle: raftStatus,
		},
		{
			methods: get, pattern: "/v1/operator/raft/configuration", name: "raft_configuration", tag: tagOperator, roles: reader,
			doc: "Returns the Raft configuration: the servers of the cluster.", response: client.RaftConfiguration{}, handle: raftConfiguration,
		},
		{
			methods: putMethods, pattern: "/v1/operator/raft/transfer-leadership", name: "raft_transfer", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Transfers leadership to another server.", response: client.IndexResponse{}, handle: transferLeadership,
		},
		{
			methods: get, pattern: "/v1/operator/snapshot", name: "snapshot_save", tag: tagOperator, roles: management, isBinary: true,
			doc: "Streams a snapshot of the state. It is complete if the trailer X-Cede-Complete is true.", handle: saveSnapshot,
		},
		{
			methods: putMethods, pattern: "/v1/operator/snapshot", name: "snapshot_restore", tag: tagOperator, roles: management, leaderOnly: true, isBinary: true,
			accepts: []string{"application/octet-stream"},
			doc:     "Replaces the state with a snapshot.", response: client.IndexResponse{}, handle: restoreSnapshot,
		},
		{
			methods: get, pattern: "/v1/operator/audit", name: "audit_list", tag: tagOperator, roles: operator,
			doc: "Lists changes of policies, settings, tokens, namespaces, priority classes and budgets, and restores, newest first: " +
				"with their actor, address and time. The newest 4,096 are stored.",
			isQuery: true, isPaged: true,
			params: []param{
				{"action", "string", "only this action, such as policy.activate, or those of a kind, such as policy"},
				{"actor", "string", "only changes with the token with this accessor, prefix of an accessor, or name; trial and server select those without a request"},
				{"object", "string", "only changes of the object with this name"},
				{"since", "string", "only changes at or after this time: RFC 3339, or a duration before now such as 24h"},
				{"until", "string", "only changes before this time, in the same form"},
			},
			response: []*client.AuditRecord{}, handle: listAudit,
		},
		{
			methods: putMethods, pattern: "/v1/system/gc", name: "system_gc", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Garbage-collects finished objects that are old enough. With force, it collects all finished objects.", params: []param{{"force", "boolean", "collect finished objects of any age"}},
			response: client.GCResponse{}, handle: collectGarbage,
		},
		{
			methods: putMethods, pattern: "/v1/agent/reload", name: "agent_reload", tag: tagOperator, roles: operator,
			doc: "Reloads the configuration of the server that handles the request.", response: client.ReloadResponse{}, handle: reload,
		},
	}
}

func setPaused(a *API, c *call, set func(context.Context) (uint64, error)) (any, error) {
	index, err := set(c.writeContext())
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(max(index, 1))
	return brokerOf(a.cfg.Server), nil
}

func brokerStatus(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return brokerOf(a.cfg.Server), nil
}

func brokerOf(s Server) *client.BrokerStatus {
	stats, blocked := s.BrokerStats()
	// The state holds the requested setting, which the broker applies shortly after.
	out := &client.BrokerStatus{
		Enabled: stats.Enabled, Paused: s.Snapshot().Config().BrokerPaused, Workers: workersOf(s), ByType: map[string]client.BrokerCounts{},
	}
	total := stats.Total()
	total.Blocked = blocked.Total
	out.BrokerCounts = countsOf(total)
	for t, counts := range stats.Types {
		out.ByType[model.JobType(t).String()] = countsOf(counts)
	}
	return out
}

// workersOf returns the status of the workers of this server.
func workersOf(s Server) *client.Workers {
	w := s.Workers()
	return &client.Workers{Wanted: w.Wanted, Running: w.Running}
}

func countsOf(c broker.Counts) client.BrokerCounts {
	return client.BrokerCounts{
		Ready: c.Ready, Unacked: c.Unacked, Pending: c.Pending, Delayed: c.Delayed, Backoff: c.Backoff,
		Cancelable: c.Cancelable, Failed: c.Failed, Blocked: c.Blocked,
	}
}

// replicated returns the replicated log, or an error if the server has none.
func (a *API) replicated() (Replication, error) {
	if a.cfg.Replication == nil {
		return nil, rest.Unavailable("this server has no replicated log")
	}
	return a.cfg.Replication, nil
}

func (a *API) servers() []*client.RaftServer {
	list := []*client.RaftServer{}
	if a.cfg.Replication == nil {
		return list
	}
	leader, _ := a.cfg.Replication.Leader()
	names := a.names()
	for _, s := range a.cfg.Replication.Stats().Servers {
		list = append(list, &client.RaftServer{
			ID: string(s.ID), Node: cmp.Or(names[string(s.ID)], string(s.ID)), Address: string(s.Address),
			Leader: string(s.ID) == leader, Voter: s.Suffrage == 0, RaftProtocol: "3",
		})
	}
	return list
}

// names returns the names of the servers of the pool, by ID.
func (a *API) names() map[string]string {
	names := map[string]string{a.cfg.ID: a.cfg.Process.Name}
	if a.cfg.Process.Members != nil {
		for _, m := range a.cfg.Process.Members() {
			names[m.Name] = m.Tags[tagName]
		}
	}
	return names
}

func raftStatus(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	withHash, err := queryFlag(c, "hash")
	if err != nil {
		return nil, err
	}
	stats := r.Stats()
	out := &client.RaftStatus{
		ServerID: a.cfg.ID, State: stats.State, Term: stats.Term, LastIndex: stats.LastIndex, CommitIndex: stats.CommitIndex,
		AppliedIndex: stats.AppliedIndex, LastSnapshot: stats.SnapshotAt, Servers: a.servers(),
		Oldest: uint64(replication.Oldest), Newest: uint64(replication.Newest),
	}
	out.LeaderID, out.Leader = r.Leader()
	_, out.LastContact = a.leadership()
	out.Workers = workersOf(a.cfg.Server)
	snap := a.cfg.Server.Snapshot()
	out.Version = uint64(snap.Meta().Version)
	if withHash {
		out.StateHash, out.StateIndex = hashOf(snap), snap.Index()
	}
	c.setStateHeaders(snap)
	return out, nil
}

func raftConfiguration(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	c.setStateHeaders(snap)
	return &client.RaftConfiguration{Servers: a.servers(), Index: snap.Index()}, nil
}

// indexBefore returns the index of the state before a change of Raft's configuration, which
// has no index in the state. A caller that waits for changes after it misses none, as it
// could with the index of a later state.
func indexBefore(a *API) uint64 { return max(a.cfg.Server.Snapshot().Index(), 1) }

func transferLeadership(a *API, c *call) (any, error) {
	if q := c.r.URL.Query(); q.Has("id") || q.Has("address") {
		return nil, rest.Unsupported("choosing the next leader is not supported").WithHint("omit id and address: an up-to-date server is chosen")
	}
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	before := indexBefore(a)
	if err := r.Transfer(c.writeContext()); err != nil {
		return nil, rest.Unavailable("leadership was not transferred: %v", err).WithHint("another server must be up to date: check GET /v1/operator/raft/status on each server")
	}
	return c.indexResponse(before, nil)
}

// saveSnapshot sends the state. The end of the response does not prove that it is
// complete: an interrupted one lacks the trailer, and does not match the digest in the
// header, which Nomad's clients require. The digest is known only after the whole
// snapshot is written, so it is written to a temporary file first.
func saveSnapshot(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	file, digest, err := spoolSnapshot(c.r.Context(), r, a.cfg.Process.TempDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is read only, and removed already
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Digest", "sha-256="+digest)
	h.Set("Trailer", headerComplete)
	c.setStateHeaders(a.cfg.Server.Snapshot())
	c.w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(c.w, file); err != nil {
		return nil, err
	}
	h.Set(headerComplete, "true")
	return responded, nil
}

// spoolSnapshot writes a snapshot to a temporary file in dir, and returns the file at its
// start with the base64 of its SHA-256 digest. The file has no name: it disappears
// when it is closed, or when the process ends.
func spoolSnapshot(ctx context.Context, r Replication, dir string) (file *os.File, digest string, err error) {
	file, err = os.CreateTemp(dir, "snapshot-*")
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return nil, "", err
	}
	hash := sha256.New()
	if err := r.SaveSnapshot(ctx, io.MultiWriter(file, hash)); err != nil {
		return nil, "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, "", err
	}
	return file, base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}

func restoreSnapshot(a *API, c *call) (any, error) {
	ctx := c.writeWithin(a.cfg.Limits.Upload)
	body := c.limitedBody(replication.MaxRestore+1, a.cfg.Limits.Upload)
	index, err := a.cfg.Server.RestoreSnapshot(ctx, body)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return nil, bodyError(err)
	}
	c.endBody()
	return c.indexResponse(index, nil)
}

func collectGarbage(a *API, c *call) (any, error) {
	force, err := queryFlag(c, "force")
	if err != nil {
		return nil, err
	}
	ctx := c.writeWithin(4 * a.cfg.Limits.Call) // garbage collection writes several entries
	n, err := a.cfg.Server.CollectGarbage(ctx, force)
	if err != nil {
		return nil, err
	}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return &client.GCResponse{Evaluations: n.Evals, Allocations: n.Allocs, Jobs: n.Jobs, Nodes: n.Nodes, Bindings: n.Bindings, Policies: n.Policies}, nil
}

func reload(a *API, c *call) (any, error) {
	if a.cfg.Process.Reload == nil {
		return nil, rest.Unavailable("this process has no configuration to reload")
	}
	changed, err := a.cfg.Process.Reload(c.writeContext())
	if err != nil {
		return nil, rest.Invalid("the configuration was not reloaded: %v", err).WithHint("the previous configuration stays active; check the file with cede config validate")
	}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return &client.ReloadResponse{Changed: changed}, nil
}

func poolRoutes() []route {
	management := []acl.Role{acl.Management}
	key := func(verb, doc string, do rpc.KeyVerb) route {
		return route{
			methods: putMethods, pattern: "/v1/operator/keyring/" + verb, name: "keyring_" + verb, tag: tagOperator, roles: management,
			doc: doc, request: client.KeyringRequest{}, response: client.KeyringResponse{},
			handle: withBody(func(a *API, c *call, r *client.KeyringRequest) (any, error) { return changeKeys(a, c, do, r) }),
		}
	}
	return []route{
		{
			methods: putMethods, pattern: "/v1/agent/join", name: "agent_join", tag: tagOperator, roles: management,
			doc: "Joins the server that handles the request to a pool.", params: []param{{"address", "string", "HOST:PORT of a member's gossip; repeatable"}},
			response: client.JoinResponse{}, handle: joinPool,
		},
		{
			methods: putMethods, pattern: "/v1/agent/leave", name: "agent_leave", tag: tagOperator, roles: management,
			doc: "Removes the server that handles the request from its pool permanently, and stops it.", handle: leavePool,
		},
		{
			methods: remove, pattern: "/v1/operator/raft/peer", name: "raft_remove_peer", tag: tagOperator, roles: management, leaderOnly: true,
			doc: "Removes a failed server from the Raft configuration.", params: []param{{"id", "string", "of the server"}, {"address", "string", "of its Raft transport, instead of id"}},
			response: client.IndexResponse{}, handle: removePeer,
		},
		{
			methods: get, pattern: "/v1/operator/keyring", name: "keyring_list", tag: tagOperator, roles: management,
			doc: "Lists the digests of the gossip encryption keys of every server.", response: client.KeyringResponse{},
			handle: func(a *API, c *call) (any, error) { return keyring(a, c, rpc.KeyList, nil) },
		},
		key("install", "Installs a gossip encryption key on every server, for decryption.", rpc.KeyInstall),
		key("use", "Makes an installed key the primary key of every server, used for encryption.", rpc.KeyUse),
		key("remove", "Removes a key that is not the primary key from every server.", rpc.KeyRemove),
	}
}

func joinPool(a *API, c *call) (any, error) {
	n, err := a.cfg.Server.JoinPool(c.writeContext(), c.r.URL.Query()["address"]...)
	if err != nil {
		return nil, err
	}
	return &client.JoinResponse{Joined: n}, nil
}

func leavePool(a *API, c *call) (any, error) {
	if err := a.cfg.Server.LeavePool(c.writeContext()); err != nil {
		return nil, err
	}
	if a.cfg.Process.Left != nil {
		// The process stops its listeners after pending responses.
		a.cfg.Process.Left()
	}
	return nil, nil
}

func removePeer(a *API, c *call) (any, error) {
	ctx := c.writeContext()
	q := c.r.URL.Query()
	id := q.Get("id")
	for _, s := range a.servers() {
		if id == "" && s.Address == q.Get("address") {
			id = s.ID
		}
	}
	before := indexBefore(a)
	if err := a.cfg.Server.RemovePeer(ctx, id); err != nil {
		return nil, err
	}
	return c.indexResponse(before, nil)
}

func changeKeys(a *API, c *call, verb rpc.KeyVerb, r *client.KeyringRequest) (any, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Key))
	if err != nil {
		return nil, rest.Invalid("Key is not valid base64").WithHint("generate a key with `openssl rand -base64 32`")
	}
	return keyring(a, c, verb, key)
}

func keyring(a *API, c *call, verb rpc.KeyVerb, key []byte) (any, error) {
	responses, err := a.cfg.Server.Keyring(c.writeContext(), verb, key)
	if err != nil {
		return nil, err
	}
	out := &client.KeyringResponse{Servers: []*client.ServerKeys{}}
	for _, s := range responses {
		keys := &client.ServerKeys{Server: s.Server, Keys: s.Keys}
		if s.Err != nil {
			keys.Error = s.Err.Error()
		}
		out.Servers = append(out.Servers, keys)
	}
	return out, nil
}

// An auditFilter selects audit records.
type auditFilter struct {
	action, actor, object string
	since, until          int64 // Unix nanoseconds; 0: unbounded
}

// newAuditFilter returns the filter of a request, or an error that lists all problems.
func newAuditFilter(c *call) (f auditFilter, err error) {
	q := c.r.URL.Query()
	f.action, f.actor, f.object = q.Get("action"), q.Get("actor"), q.Get("object")
	var problems []string
	if f.action != "" && !slices.ContainsFunc(audit.Actions(), f.hasAction) {
		problems = append(problems, "unknown action "+rest.Quote(f.action)+": it must be one of "+strings.Join(audit.Actions(), ", ")+", or the part before the dot")
	}
	now := c.api.cfg.Clock.Now()
	for _, bound := range []struct {
		name string
		to   *int64
	}{{"since", &f.since}, {"until", &f.until}} {
		text := q.Get(bound.name)
		if text == "" {
			continue
		}
		at, parseErr := time.Parse(time.RFC3339, text)
		if ago, durationErr := time.ParseDuration(text); durationErr == nil && ago >= 0 {
			at, parseErr = now.Add(-ago), nil
		}
		if parseErr != nil {
			problems = append(problems, "invalid "+bound.name+" "+rest.Quote(text)+": it must be a time such as 2026-05-01T12:00:00Z, or a duration before now such as 24h")
			continue
		}
		*bound.to = at.UnixNano()
	}
	if f.since != 0 && f.until != 0 && f.since >= f.until {
		problems = append(problems, "since must be before until")
	}
	if len(problems) > 0 {
		return f, rest.Invalid("invalid filter: %s", strings.Join(problems, "; ")).With("Problems", problems)
	}
	return f, nil
}

// hasAction reports whether the filter selects an action.
func (f *auditFilter) hasAction(action string) bool {
	return f.action == "" || action == f.action || strings.HasPrefix(action, f.action+".")
}

// selects reports whether a record matches the filter.
func (f *auditFilter) selects(r *model.AuditRecord) bool {
	isActor := f.actor == "" || r.Actor == f.actor || r.ActorName == f.actor || len(f.actor) >= minPrefix && strings.HasPrefix(r.Actor, f.actor)
	return f.hasAction(r.Action) && isActor && (f.object == "" || r.Object == f.object) &&
		r.Time >= f.since && (f.until == 0 || r.Time < f.until)
}

func listAudit(_ *API, c *call) (any, error) {
	part, pageErr := c.page()
	filter, err := newAuditFilter(c)
	if err := cmp.Or(pageErr, err); err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableAudit.All()},
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := pager[*client.AuditRecord]{page: part}
			changed := uint64(0)
			for _, r := range slices.Backward(s.AuditRecords()) {
				changed = max(changed, r.Index)
				if filter.selects(r) && !p.add(pageKey(fmt.Sprintf("%020d", math.MaxUint64-r.Index)), func() *client.AuditRecord { return view.AuditRecord(r) }) {
					break
				}
			}
			return p.result(c), changed, nil
		},
	})
}

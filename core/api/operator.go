package api

import (
	"encoding/base64"
	"strings"

	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/sdk/client"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

const tagOperator = "operator"

func operatorRoutes() []route {
	reader, operator, management := []acl.Role{acl.Read}, []acl.Role{acl.Operate}, []acl.Role{acl.Management}
	return []route{
		{
			methods: putMethods, pattern: "/v1/operator/broker/pause", name: "broker_pause", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Stops handing out evaluations, on whichever server leads; they are kept.", response: client.BrokerStatus{},
			handle: func(a *API, c *call) (any, error) { return setPaused(a, c, a.cfg.Server.PauseBroker) },
		},
		{
			methods: putMethods, pattern: "/v1/operator/broker/resume", name: "broker_resume", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Hands evaluations out again.", response: client.BrokerStatus{},
			handle: func(a *API, c *call) (any, error) { return setPaused(a, c, a.cfg.Server.ResumeBroker) },
		},
		{
			methods: get, pattern: "/v1/operator/broker/status", name: "broker_status", tag: tagOperator, roles: reader, leaderOnly: true,
			doc: "Counts what the evaluation broker of the leader holds.", response: client.BrokerStatus{}, handle: brokerStatus,
		},
		{
			methods: get, pattern: "/v1/operator/raft/status", name: "raft_status", tag: tagOperator, roles: reader,
			doc: "Says how replication stands on the server that answers.", params: []param{{"hash", "boolean", "with a hash over the state"}},
			response: client.RaftStatus{}, handle: raftStatus,
		},
		{
			methods: get, pattern: "/v1/operator/raft/configuration", name: "raft_configuration", tag: tagOperator, roles: reader,
			doc: "Says who the cluster's servers are.", response: client.RaftConfiguration{}, handle: raftConfiguration,
		},
		{
			methods: putMethods, pattern: "/v1/operator/raft/transfer-leadership", name: "raft_transfer", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Has another server lead.", handle: transferLeadership,
		},
		{
			methods: get, pattern: "/v1/operator/snapshot", name: "snapshot_save", tag: tagOperator, roles: management, binary: true,
			doc: "Streams the whole state. It is whole when the trailer X-Cede-Complete is true.", handle: saveSnapshot,
		},
		{
			methods: putMethods, pattern: "/v1/operator/snapshot", name: "snapshot_restore", tag: tagOperator, roles: management, leaderOnly: true, binary: true,
			doc: "Replaces the whole state by a snapshot.", handle: restoreSnapshot,
		},
		{
			methods: putMethods, pattern: "/v1/system/gc", name: "system_gc", tag: tagOperator, roles: operator, leaderOnly: true,
			doc: "Forgets what has been over for long enough; with force, all that is over.", params: []param{{"force", "boolean", "however new it is"}},
			response: client.GCResponse{}, handle: collectGarbage,
		},
		{
			methods: putMethods, pattern: "/v1/agent/reload", name: "agent_reload", tag: tagOperator, roles: operator,
			doc: "Has the server that answers read its configuration again.", response: client.ReloadResponse{}, handle: reload,
		},
	}
}

func setPaused(a *API, c *call, set func(context.Context) (uint64, error)) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	index, err := set(ctx)
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
	// What operators want is in the state; the broker follows in a moment.
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

// workersOf is how the workers of the server that answers do.
func workersOf(s Server) *client.Workers {
	w := s.Workers()
	return &client.Workers{Wanted: w.Wanted, Running: w.Running, Held: w.Holds}
}

func countsOf(c broker.Counts) client.BrokerCounts {
	return client.BrokerCounts{
		Ready: c.Ready, Unacked: c.Unacked, Pending: c.Pending, Delayed: c.Delayed, Backoff: c.Backoff,
		Cancelable: c.Cancelable, Failed: c.Failed, Blocked: c.Blocked,
	}
}

// replicated is the log, where there is one to ask.
func (a *API) replicated() (Replication, error) {
	if a.cfg.Replication == nil {
		return nil, rest.Unavailable("this server keeps no log of its own")
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

// names is what people call the servers of the pool, by id.
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

func transferLeadership(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.writeContext()
	defer cancel()
	if err := r.Transfer(ctx); err != nil {
		return nil, rest.Unavailable("the leadership stays where it is: %v", err).WithHint("another server must be up to date: GET /v1/operator/raft/status on each")
	}
	return nil, nil
}

// saveSnapshot streams the state. That an answer ends says nothing: what broke
// off has no trailer.
func saveSnapshot(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Trailer", headerComplete)
	c.setStateHeaders(a.cfg.Server.Snapshot())
	if err := r.SaveSnapshot(c.r.Context(), c.w); err != nil {
		if c.w.Status == 0 {
			h.Del("Trailer")
		}
		return nil, err
	}
	if c.w.Status == 0 {
		c.w.WriteHeader(http.StatusOK)
	}
	h.Set(headerComplete, "true")
	return responded, nil
}

// maxSnapshot is the largest snapshot that is taken, in bytes: far above what
// a state that fits into memory comes to.
const maxSnapshot = 64 << 30

func restoreSnapshot(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), a.cfg.Limits.Upload)
	defer cancel()
	body := c.limitedBody(maxSnapshot, a.cfg.Limits.Upload)
	if err := r.RestoreSnapshot(ctx, body); err != nil {
		return nil, snapshotError(err)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return nil, bodyError(err)
	}
	c.endBody()
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return nil, nil
}

// snapshotError tells what is the file's fault from what is the server's.
func snapshotError(err error) error {
	for _, servers := range []error{replication.ErrNotLeader, replication.ErrUnknownOutcome, replication.ErrClosed, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, servers) {
			return rest.Unavailable("the snapshot was not restored: %v", err).WithHint("ask the leader, and look at GET /v1/operator/raft/status")
		}
	}
	return rest.Invalid("the snapshot was not restored: %v", err).WithHint("check the file: cede operator snapshot inspect FILE")
}

func collectGarbage(a *API, c *call) (any, error) {
	force, err := queryFlag(c, "force")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 4*a.cfg.Limits.Call) // of several entries
	defer cancel()
	n, err := a.cfg.Server.CollectGarbage(ctx, force)
	if err != nil {
		return nil, err
	}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return &client.GCResponse{Evaluations: n.Evals, Allocations: n.Allocs, Jobs: n.Jobs, Nodes: n.Nodes, Bindings: n.Bindings, Policies: n.Policies}, nil
}

func reload(a *API, c *call) (any, error) {
	if a.cfg.Process.Reload == nil {
		return nil, rest.Unavailable("this process has no configuration to read again")
	}
	ctx, cancel := c.writeContext()
	defer cancel()
	changed, err := a.cfg.Process.Reload(ctx)
	if err != nil {
		return nil, rest.Invalid("the configuration was not taken: %v", err).WithHint("what was in force before still is; cede config validate says the same")
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
			handle: func(a *API, c *call) (any, error) { return changeKeys(a, c, do) },
		}
	}
	return []route{
		{
			methods: putMethods, pattern: "/v1/agent/join", name: "agent_join", tag: tagOperator, roles: management,
			doc: "Has the server that answers join a pool.", params: []param{{"address", "string", "HOST:PORT of a member's gossip; may be given several times"}},
			response: client.JoinResponse{}, handle: joinPool,
		},
		{
			methods: putMethods, pattern: "/v1/agent/leave", name: "agent_leave", tag: tagOperator, roles: management,
			doc: "Has the server that answers leave its pool for good, and stop.", handle: leavePool,
		},
		{
			methods: remove, pattern: "/v1/operator/raft/peer", name: "raft_remove_peer", tag: tagOperator, roles: management, leaderOnly: true,
			doc: "Removes a server from replication that will not come back.", params: []param{{"id", "string", "of the server"}}, handle: removePeer,
		},
		{
			methods: get, pattern: "/v1/operator/keyring", name: "keyring_list", tag: tagOperator, roles: management,
			doc: "Lists digests of the keys that gossip is sealed with, of every server.", response: client.KeyringResponse{},
			handle: func(a *API, c *call) (any, error) { return keyring(a, c, rpc.KeyList, nil) },
		},
		key("install", "Has every server open what a key seals.", rpc.KeyInstall),
		key("use", "Has every server seal with a key that is installed.", rpc.KeyUse),
		key("remove", "Has every server forget a key that seals no more.", rpc.KeyRemove),
	}
}

func joinPool(a *API, c *call) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	n, err := a.cfg.Server.JoinPool(ctx, c.r.URL.Query()["address"]...)
	if err != nil {
		return nil, err
	}
	return &client.JoinResponse{Joined: n}, nil
}

func leavePool(a *API, c *call) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	if err := a.cfg.Server.LeavePool(ctx); err != nil {
		return nil, err
	}
	if a.cfg.Process.Left != nil {
		// The process stops its listeners after their answers.
		a.cfg.Process.Left()
	}
	return nil, nil
}

func removePeer(a *API, c *call) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	return nil, a.cfg.Server.RemovePeer(ctx, c.r.URL.Query().Get("id"))
}

func changeKeys(a *API, c *call, verb rpc.KeyVerb) (any, error) {
	var r client.KeyringRequest
	if err := c.decodeBody(&r); err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Key))
	if err != nil {
		return nil, rest.Invalid("Key is no base64").WithHint("`openssl rand -base64 32` makes one")
	}
	return keyring(a, c, verb, key)
}

func keyring(a *API, c *call, verb rpc.KeyVerb, key []byte) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	answers, err := a.cfg.Server.Keyring(ctx, verb, key)
	if err != nil {
		return nil, err
	}
	out := &client.KeyringResponse{Servers: []*client.ServerKeys{}}
	for _, s := range answers {
		keys := &client.ServerKeys{Server: s.Server, Keys: s.Keys}
		if s.Err != nil {
			keys.Error = s.Err.Error()
		}
		out.Servers = append(out.Servers, keys)
	}
	return out, nil
}

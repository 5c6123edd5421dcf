package api

import (
	"encoding/base64"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/sdk/client"
)

func poolRoutes() []route {
	management := []acl.Role{acl.Management}
	key := func(verb, doc string, do rpc.KeyVerb) route {
		return route{
			methods: put, pattern: "/v1/operator/keyring/" + verb, name: "keyring_" + verb, tag: tagOperator, roles: management,
			doc: doc, request: client.KeyringRequest{}, response: client.KeyringResponse{},
			handle: func(a *API, c *call) (any, error) { return changeKeys(a, c, do) },
		}
	}
	return []route{
		{
			methods: put, pattern: "/v1/agent/join", name: "agent_join", tag: tagOperator, roles: management,
			doc: "Has the server that answers join a pool.", params: []param{{"address", "string", "HOST:PORT of a member's gossip; may be given several times"}},
			response: client.JoinResponse{}, handle: joinPool,
		},
		{
			methods: put, pattern: "/v1/agent/leave", name: "agent_leave", tag: tagOperator, roles: management,
			doc: "Has the server that answers leave its pool for good, and stop.", handle: leavePool,
		},
		{
			methods: remove, pattern: "/v1/operator/raft/peer", name: "raft_remove_peer", tag: tagOperator, roles: management, leads: true,
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
	ctx, cancel := c.within()
	defer cancel()
	n, err := a.cfg.Server.JoinPool(ctx, c.r.URL.Query()["address"]...)
	if err != nil {
		return nil, err
	}
	return &client.JoinResponse{Joined: n}, nil
}

func leavePool(a *API, c *call) (any, error) {
	ctx, cancel := c.within()
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
	ctx, cancel := c.within()
	defer cancel()
	return nil, a.cfg.Server.RemovePeer(ctx, c.r.URL.Query().Get("id"))
}

func changeKeys(a *API, c *call, verb rpc.KeyVerb) (any, error) {
	var r client.KeyringRequest
	if err := c.body(&r); err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Key))
	if err != nil {
		return nil, invalid("Key is no base64").hint("`openssl rand -base64 32` makes one")
	}
	return keyring(a, c, verb, key)
}

func keyring(a *API, c *call, verb rpc.KeyVerb, key []byte) (any, error) {
	ctx, cancel := c.within()
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

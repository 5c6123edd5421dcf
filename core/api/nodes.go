package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	tagNodes = "nodes"
	tagAgent = "node agents"
)

func nodeRoutes() []route {
	reader, operator := []acl.Role{acl.Read}, []acl.Role{acl.Operate}
	return []route{
		{
			methods: get, pattern: "/v1/nodes", name: "nodes_list", tag: tagNodes, roles: reader,
			doc: "Lists nodes, ascending by id.", reads: true, paged: true,
			params:   []param{{"os", "boolean", "with attributes"}},
			response: []*client.NodeStub{}, handle: listNodes,
		},
		{
			methods: get, pattern: "/v1/node/{id}", name: "node_get", tag: tagNodes, roles: reader,
			doc: "Returns a node. The id may be any prefix that is unique.", reads: true,
			response: client.Node{}, handle: getNode,
		},
		{
			methods: post, pattern: "/v1/node/{id}/drain", name: "node_drain", tag: tagNodes, roles: operator, leads: true,
			doc:     "Moves what runs on a node away, or ends that.",
			request: client.NodeUpdateDrainRequest{}, response: client.NodeUpdateResponse{}, handle: drainNode,
		},
		{
			methods: post, pattern: "/v1/node/{id}/eligibility", name: "node_eligibility", tag: tagNodes, roles: operator, leads: true,
			doc:     "Says whether a node takes new work.",
			request: client.NodeUpdateEligibilityRequest{}, response: client.NodeUpdateResponse{}, handle: setEligibility,
		},
		{
			methods: post, pattern: "/v1/node/{id}/taints", name: "node_taints", tag: tagNodes, roles: operator, leads: true,
			doc:     "Sets taints on a node, or takes such away that operators set.",
			request: client.NodeUpdateTaintsRequest{}, response: client.NodeUpdateResponse{}, handle: setTaints,
		},
		{
			methods: remove, pattern: "/v1/node/{id}", name: "node_delete", tag: tagNodes, roles: operator, leads: true,
			doc: "Forgets a node on which nothing runs.", response: client.NodeUpdateResponse{}, handle: deleteNode,
		},
		{
			methods: post, pattern: "/v1/node/{id}/purge", name: "node_purge", tag: tagNodes, roles: operator, leads: true,
			doc: "Forgets a node, as Nomad's clients ask for it.", response: client.NodeUpdateResponse{}, handle: deleteNode,
		},
	}
}

func agentRoutes() []route {
	agent := []acl.Role{acl.Node}
	return []route{
		{
			methods: put, pattern: "/v1/node/register", name: "node_register", tag: tagAgent, roles: agent, leads: true,
			doc:     "Tells of a node: who it is, what it has, and the secret that later words of it must carry.",
			request: client.NodeRegisterRequest{}, response: client.NodeLease{}, handle: registerNode,
		},
		{
			methods: put, pattern: "/v1/node/{id}/heartbeat", name: "node_heartbeat", tag: tagAgent, roles: agent, leads: true,
			doc: "Says that a node lives. The header X-Cede-Node-Secret carries its secret.", response: client.NodeLease{}, handle: heartbeat,
		},
		{
			methods: get, pattern: "/v1/node/{id}/allocations", name: "node_allocations", tag: tagAgent, roles: []acl.Role{acl.Read, acl.Node},
			doc: "Lists everything that a node shall run or stop, with jobs and tasks, ascending by id.", reads: true,
			response: []*client.Allocation{}, handle: nodeAllocs,
		},
		{
			methods: put, pattern: "/v1/node/{id}/allocations", name: "node_update_allocations", tag: tagAgent, roles: agent, leads: true,
			doc:     "Says what became of a node's allocations. The header X-Cede-Node-Secret carries its secret.",
			request: client.AllocUpdateRequest{}, response: client.IndexResponse{}, handle: updateAllocs,
		},
	}
}

var nodeKind = kind[model.Node]{
	name: "node", table: state.TableNodes, get: (*state.Snapshot).Node, all: (*state.Snapshot).Nodes,
	of: func(n *model.Node) (string, string) { return n.ID, "" },
}

func listNodes(_ *API, c *call) (any, error) {
	attributes, err := c.flag("os")
	if err != nil {
		return nil, err
	}
	return listed(c, nodeKind, nil, func(_ *state.Snapshot, n *model.Node) *client.NodeStub {
		stub := nodeStub(n)
		if attributes {
			stub.Attributes = n.Attributes
		}
		return stub
	})
}

func getNode(_ *API, c *call) (any, error) {
	return one(c, nodeKind, func(_ *state.Snapshot, n *model.Node) (any, uint64) { return nodeOf(n), n.ModifyIndex })
}

// nodeChanged answers a change of a node, with the evaluations that came of it.
func (c *call) nodeChanged(index uint64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.index(index)
	return &client.NodeUpdateResponse{NodeModifyIndex: index, EvalCreateIndex: index, Index: index}, nil
}

// named is the node that the path names, which a body may name as well.
func (c *call) named(body string) (string, error) {
	path := c.r.PathValue("id")
	if err := samePath("node", path, body); err != nil {
		return "", err
	}
	n, err := nodeKind.find(c.api.cfg.Server.Snapshot(), c, path)
	if err != nil {
		return "", err
	}
	return n.ID, nil
}

func drainNode(a *API, c *call) (any, error) {
	var req client.NodeUpdateDrainRequest
	if _, err := c.jobBody(&req); err != nil { // Meta and the like of Nomad's clients are let pass
		return nil, err
	}
	id, err := c.named(req.NodeID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	index, err := a.cfg.Server.Drain(ctx, id, req.DrainSpec != nil)
	if err == nil && (req.DrainSpec != nil || req.MarkEligible) {
		// As Nomad has it: a node that is drained takes no work when that is over,
		// unless whoever ends it says so.
		index, err = a.cfg.Server.SetEligible(ctx, id, req.DrainSpec == nil)
	}
	return c.nodeChanged(index, err)
}

func setEligibility(a *API, c *call) (any, error) {
	var req client.NodeUpdateEligibilityRequest
	if _, err := c.jobBody(&req); err != nil {
		return nil, err
	}
	id, err := c.named(req.NodeID)
	if err != nil {
		return nil, err
	}
	if req.Eligibility != client.NodeEligible && req.Eligibility != client.NodeIneligible {
		return nil, invalid("Eligibility is %s: want eligible or ineligible", quote(req.Eligibility)).with("Field", "Eligibility")
	}
	ctx, cancel := c.within()
	defer cancel()
	return c.nodeChanged(a.cfg.Server.SetEligible(ctx, id, req.Eligibility == client.NodeEligible))
}

func deleteNode(a *API, c *call) (any, error) {
	id, err := c.named("")
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	return c.nodeChanged(a.cfg.Server.DeleteNode(ctx, id))
}

func registerNode(a *API, c *call) (any, error) {
	var req client.NodeRegisterRequest
	if err := c.body(&req); err != nil {
		return nil, err
	}
	if req.Node == nil {
		return nil, invalid("the body has no Node").hint(`want {"Node": {"ID": ..., "Capacity": {...}}, "Secret": ...}`)
	}
	node, err := nodeFrom(req.Node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	return c.leased(a.cfg.Server.RegisterNode(ctx, node, req.Secret))
}

// leased answers an agent with how long it is believed to be there.
func (c *call) leased(lease *endpoint.NodeLease, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.index(lease.Index)
	return &client.NodeLease{Index: lease.Index, HeartbeatTTL: lease.TTL}, nil
}

// secret is the one that an agent shows, of its node or member cluster.
func (c *call) secret() string { return c.r.Header.Get(headerNodeSecret) }

// The most that is taken of a node, so that one cannot fill everybody's state.
const (
	maxNodeAttributes = 1024
	maxNodeDevices    = 256
)

// nodeFrom makes a node of what an agent says of it; every problem is told.
func nodeFrom(n *client.Node) (*model.Node, error) {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	out := &model.Node{
		ID: n.ID, Name: n.Name, Address: n.HTTPAddr, Datacenter: n.Datacenter, Class: n.NodeClass,
		Capacity: model.Resources{}, Reserved: model.Resources{}, Ports: slices.Clone(n.ReservedPorts), Attributes: n.Attributes, Meta: n.Meta,
	}
	if out.Datacenter == "" {
		out.Datacenter = "dc1"
	}
	if len(n.Attributes)+len(n.Meta) > maxNodeAttributes {
		add("Attributes and Meta have %d entries together: at most %d are taken", len(n.Attributes)+len(n.Meta), maxNodeAttributes)
	}
	amounts := func(field string, from map[string]int64, to model.Resources) {
		for name, amount := range from {
			if name == "" || amount < 0 || amount > model.MaxAmount {
				add("%s[%q] is %d: want 0 to %d", field, join("", name), amount, int64(model.MaxAmount))
				continue
			}
			to[name] = amount
		}
		if len(from) > model.MaxDimensions {
			add("%s names %d resources: a cluster has at most %d", field, len(from), model.MaxDimensions)
		}
	}
	amounts("Capacity", n.Capacity, out.Capacity)
	amounts("ReservedCapacity", n.ReservedCapacity, out.Reserved)
	out.Taints = taintsFrom(n.Taints, add)
	if len(n.Devices) > maxNodeDevices {
		add("Devices has %d groups: at most %d are taken", len(n.Devices), maxNodeDevices)
	}
	for i, d := range n.Devices[:min(len(n.Devices), maxNodeDevices)] {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 || d.Count > 1<<16 {
			add("Devices[%d]: %s with %d instances: want VENDOR/TYPE/MODEL with 1 to 65536", i, quote(d.ID), d.Count)
		}
		if slices.ContainsFunc(out.Devices, func(o model.Device) bool { return o.ID == d.ID }) {
			add("Devices[%d]: %s is there already: want one group of each", i, quote(d.ID))
		}
		out.Devices = append(out.Devices, model.Device{ID: d.ID, Count: int32(min(d.Count, 1<<16)), Attributes: d.Attributes})
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, invalid("the node: %s", strings.Join(problems, "; ")).with("Problems", problems)
	}
	return out, nil
}

func heartbeat(a *API, c *call) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	return c.leased(a.cfg.Server.Heartbeat(ctx, c.r.PathValue("id"), c.secret()))
}

func nodeAllocs(_ *API, c *call) (any, error) {
	id := nodeKind.named(c)
	if err := c.ownNode(id); err != nil {
		return nil, err
	}
	return c.read(view{
		keys: []state.Key{state.TableNodeAllocs.Of(id), state.TableNodes.Of(id)},
		made: func(s *state.Snapshot) (any, uint64, error) {
			if s.Node(id) == nil {
				return nil, 0, notFound("there is no node %s", quote(id)).hint("an agent registers its node when it starts")
			}
			list, changed := []*client.Allocation{}, uint64(0)
			jobs := map[*model.Job]*client.Job{}
			for _, a := range s.AppendNodeAllocs(nil, id) {
				changed = max(changed, changedAt(s, a))
				list = append(list, allocOf(s, a, jobs))
			}
			return list, changed, nil
		},
	})
}

// ownNode is whether a token that is an agent's asks about its own node: it must
// show the node's secret. Whoever may read everything need not.
func (c *call) ownNode(id string) error {
	n := c.api.cfg.Server.Snapshot().Node(id)
	if n == nil {
		return nil // there is nothing to see
	}
	return c.owns("node", id, n.SecretHash)
}

// owns is ownNode for whatever has a secret.
func (c *call) owns(what, id string, hash [32]byte) error {
	if c.token == nil || acl.Allows(c.token.Roles, acl.Read) || acl.Matches(c.secret(), hash) {
		return nil
	}
	return forbidden(c, "the secret of %s %s", what, quote(id))
}

func updateAllocs(a *API, c *call) (any, error) {
	var req client.AllocUpdateRequest
	if err := c.body(&req); err != nil {
		return nil, err
	}
	updates, err := reported(req.Updates, func(u *client.AllocUpdate) (apply.ClientUpdate, string) {
		status, ok := clientStatuses[u.ClientStatus]
		if u.AllocID == "" || !ok {
			return apply.ClientUpdate{}, fmt.Sprintf("allocation %s is %s: want an id, and pending, running, complete or failed", quote(u.AllocID), quote(u.ClientStatus))
		}
		return apply.ClientUpdate{
			AllocID: u.AllocID, Status: status, Started: u.StartTime != 0, StartTime: u.StartTime,
			Text: clip(u.Description), EvictedBy: clip(u.EvictedBy),
		}, ""
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	return c.written(a.cfg.Server.UpdateAllocs(ctx, c.r.PathValue("id"), c.secret(), updates))
}

// What one report of an agent may be about, and how many of its problems are told.
const (
	maxUpdates  = 10_000
	maxProblems = 20
)

// reported reads what an agent says became of what it runs; read says what is wrong
// with one update.
func reported[T, R any](list []T, read func(*T) (R, string)) ([]R, error) {
	if len(list) > maxUpdates {
		return nil, invalid("Updates has %d entries: at most %d are taken at a time", len(list), maxUpdates)
	}
	updates := make([]R, 0, len(list))
	var problems []string
	for i := range list {
		u, wrong := read(&list[i])
		if wrong != "" {
			problems = append(problems, fmt.Sprintf("Updates[%d]: %s", i, wrong))
			continue
		}
		updates = append(updates, u)
	}
	if len(problems) > 0 {
		problems = problems[:min(len(problems), maxProblems)]
		return nil, invalid("%s", strings.Join(problems, "; ")).with("Problems", problems)
	}
	return updates, nil
}

// clientStatuses are what a node may say; that an allocation is lost is for the
// servers to say.
var clientStatuses = map[string]model.ClientStatus{
	model.ClientPending.String():  model.ClientPending,
	model.ClientRunning.String():  model.ClientRunning,
	model.ClientComplete.String(): model.ClientComplete,
	model.ClientFailed.String():   model.ClientFailed,
}

// clip bounds a text that a node made and that everybody keeps.
func clip(text string) string {
	const most = 1024
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "?")
}

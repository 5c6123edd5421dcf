package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
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
			doc: "Lists nodes, ordered by ID.", isQuery: true, isPaged: true,
			params:   []param{{"os", "boolean", "include attributes"}},
			response: []*client.NodeStub{}, handle: listNodes,
		},
		{
			methods: get, pattern: "/v1/map", name: "map_get", tag: tagNodes, roles: reader,
			doc: "Returns all nodes and the allocations that hold capacity on them, in columns.", isQuery: true,
			response: client.Map{}, handle: getMap,
		},
		{
			methods: get, pattern: "/v1/node/{id}", name: "node_get", tag: tagNodes, roles: reader,
			doc: "Returns a node. The ID may be any unique prefix.", isQuery: true,
			response: client.Node{}, handle: getNode,
		},
		{
			methods: get, pattern: "/v1/node/{id}/risk", name: "node_risk", tag: tagNodes, roles: reader,
			doc: "Returns the allocations that would be evicted next on a node, for jobs of rising priority. The server makes the decision about a hypothetical job that runs only there and needs one unit more than is free, at most 64 times. " +
				"It answers one such request at a time.",
			response: client.NodeRisk{}, handle: nodeRisk,
		},
		{
			methods: post, pattern: "/v1/node/{id}/drain", name: "node_drain", tag: tagNodes, roles: operator, leaderOnly: true,
			doc:     "Starts or cancels the drain of a node, which moves its allocations to other nodes.",
			request: client.NodeUpdateDrainRequest{}, response: client.NodeUpdateResponse{}, handle: drainNode,
		},
		{
			methods: post, pattern: "/v1/node/{id}/eligibility", name: "node_eligibility", tag: tagNodes, roles: operator, leaderOnly: true,
			doc:     "Sets whether a node is eligible for new allocations.",
			request: client.NodeUpdateEligibilityRequest{}, response: client.NodeUpdateResponse{}, handle: setEligibility,
		},
		{
			methods: post, pattern: "/v1/node/{id}/taints", name: "node_taints", tag: tagNodes, roles: operator, leaderOnly: true,
			doc:     "Sets taints on a node, or removes taints that operators set.",
			request: client.NodeUpdateTaintsRequest{}, response: client.NodeUpdateResponse{}, handle: withBody(setTaints),
		},
		{
			methods: remove, pattern: "/v1/node/{id}", name: "node_delete", tag: tagNodes, roles: operator, leaderOnly: true,
			doc: "Deletes a node without running allocations.", response: client.NodeUpdateResponse{}, handle: deleteNode,
		},
		{
			methods: post, pattern: "/v1/node/{id}/purge", name: "node_purge", tag: tagNodes, roles: operator, leaderOnly: true,
			doc: "Deletes a node, on the path that Nomad's clients use.", response: client.NodeUpdateResponse{}, handle: deleteNode,
		},
	}
}

func agentRoutes() []route {
	agent := []acl.Role{acl.Node}
	return []route{
		{
			methods: putMethods, pattern: "/v1/node/register", name: "node_register", tag: tagAgent, roles: agent, leaderOnly: true,
			doc:     "Registers a node: its identity, its capacity, and the secret that its later requests must carry.",
			request: client.NodeRegisterRequest{}, response: client.NodeLease{}, handle: withBody(registerNode),
		},
		{
			methods: putMethods, pattern: "/v1/node/{id}/heartbeat", name: "node_heartbeat", tag: tagAgent, roles: agent, leaderOnly: true,
			doc: "Renews the lease of a node. The header X-Cede-Node-Secret carries its secret.", response: client.NodeLease{}, handle: heartbeat,
		},
		{
			methods: get, pattern: "/v1/node/{id}/allocations", name: "node_allocations", tag: tagAgent, roles: []acl.Role{acl.Read, acl.Node},
			doc: "Lists the allocations that a node must run or stop, with their jobs and tasks, ordered by ID.", isQuery: true,
			response: []*client.Allocation{}, handle: nodeAllocs,
		},
		{
			methods: putMethods, pattern: "/v1/node/{id}/allocations", name: "node_update_allocations", tag: tagAgent, roles: agent, leaderOnly: true,
			doc:     "Reports the status of a node's allocations. The header X-Cede-Node-Secret carries its secret.",
			request: client.AllocUpdateRequest{}, response: client.IndexResponse{}, handle: withBody(updateAllocs),
		},
	}
}

var nodeKind = resource[model.Node]{
	name: "node", table: state.TableNodes, get: (*state.Snapshot).Node, all: (*state.Snapshot).Nodes,
	keyOf: func(n *model.Node) (string, string) { return n.ID, "" },
}

func getMap(_ *API, c *call) (any, error) {
	return c.read(query{
		keys: []state.Key{state.TableNodes.All(), state.TableAllocs.All()}, table: state.TableAllocs, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) { return view.Map(s), s.Index(), nil },
	})
}

func nodeRisk(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	n, err := nodeKind.find(snap, c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	f, err := a.cfg.Server.NodeRisk(c.r.Context(), a.cfg.Server.Snapshot, n.ID)
	if err != nil {
		return nil, err
	}
	return view.NodeRisk(n.ID, f.Redact(c.canSee)), nil
}

func listNodes(_ *API, c *call) (any, error) {
	attributes, err := queryFlag(c, "os")
	if err != nil {
		return nil, err
	}
	return readList(c, nodeKind, nil, func(_ *state.Snapshot, n *model.Node) *client.NodeStub {
		stub := view.NodeStub(n)
		if attributes {
			stub.Attributes = n.Attributes
		}
		return stub
	})
}

func getNode(_ *API, c *call) (any, error) {
	return readOne(c, nodeKind, func(_ *state.Snapshot, n *model.Node) (any, uint64) { return view.Node(n), n.ModifyIndex })
}

// nodeResponse returns the response to a change of a node, with the evaluations that
// the change created.
func (c *call) nodeResponse(index uint64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.NodeUpdateResponse{NodeModifyIndex: index, EvalCreateIndex: index, Index: index}, nil
}

// requestedNode returns the ID of the node that the path names. It returns an error
// if the body names another one.
func requestedNode(c *call, body string) (string, error) {
	path := c.r.PathValue("id")
	if err := checkPathID("node", path, body); err != nil {
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
	if _, err := c.decodeJobBody(&req); err != nil { // unknown fields such as Meta of Nomad's clients are ignored
		return nil, err
	}
	id, err := requestedNode(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	ctx := c.writeContext()
	var index uint64
	if s := req.DrainSpec; s != nil {
		index, err = a.cfg.Server.Drain(ctx, id, endpoint.DrainOptions{Deadline: s.Deadline, KeepSystemJobs: s.IgnoreSystemJobs})
	} else {
		index, err = a.cfg.Server.CancelDrain(ctx, id)
	}
	if err == nil && (req.DrainSpec != nil || req.MarkEligible) {
		// As in Nomad, a node stays ineligible after a canceled drain unless the
		// request sets MarkEligible.
		index, err = a.cfg.Server.SetEligible(ctx, id, req.DrainSpec == nil)
	}
	return c.nodeResponse(index, err)
}

func setEligibility(a *API, c *call) (any, error) {
	var req client.NodeUpdateEligibilityRequest
	if _, err := c.decodeJobBody(&req); err != nil {
		return nil, err
	}
	id, err := requestedNode(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	if req.Eligibility != client.NodeEligible && req.Eligibility != client.NodeIneligible {
		return nil, rest.Invalid("invalid Eligibility %s: it must be eligible or ineligible", rest.Quote(req.Eligibility)).With("Field", "Eligibility")
	}
	return c.nodeResponse(a.cfg.Server.SetEligible(c.writeContext(), id, req.Eligibility == client.NodeEligible))
}

func deleteNode(a *API, c *call) (any, error) {
	id, err := requestedNode(c, "")
	if err != nil {
		return nil, err
	}
	return c.nodeResponse(a.cfg.Server.DeleteNode(c.writeContext(), id))
}

func registerNode(a *API, c *call, req *client.NodeRegisterRequest) (any, error) {
	if req.Node == nil {
		return nil, rest.Invalid("Node is required").WithHint(`the body must be {"Node": {"ID": ..., "Capacity": {...}}, "Secret": ...}`)
	}
	node, err := nodeFrom(req.Node)
	if err != nil {
		return nil, err
	}
	return c.leaseResponse(a.cfg.Server.RegisterNode(c.writeContext(), node, req.Secret))
}

// leaseResponse returns the lease of an agent.
func (c *call) leaseResponse(lease *endpoint.NodeLease, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(lease.Index)
	return &client.NodeLease{Index: lease.Index, HeartbeatTTL: lease.TTL}, nil
}

// nodeSecret returns the secret of the node or member cluster in the request.
func nodeSecret(c *call) string { return c.r.Header.Get(headerNodeSecret) }

// Limits of a node, so that a single node cannot fill the replicated state.
const (
	maxNodeAttributes = 1024
	maxNodeDevices    = 256
)

// nodeFrom converts a node that an agent registers. It returns an error that lists
// every problem.
func nodeFrom(n *client.Node) (*model.Node, error) {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	out := &model.Node{
		ID: n.ID, Name: n.Name, Address: n.HTTPAddr, Datacenter: n.Datacenter, Class: n.NodeClass,
		Capacity: model.Resources{}, Reserved: model.Resources{}, Ports: slices.Clone(n.ReservedPorts), Attributes: n.Attributes, Meta: n.Meta,
	}
	out.Datacenter = cmp.Or(out.Datacenter, "dc1")
	if len(n.Attributes)+len(n.Meta) > maxNodeAttributes {
		add("too many Attributes and Meta: %d entries in total, at most %d are allowed", len(n.Attributes)+len(n.Meta), maxNodeAttributes)
	}
	amounts := func(field string, from map[string]int64, to model.Resources) {
		for name, amount := range from {
			if name == "" || amount < 0 || amount > model.MaxAmount {
				add("invalid %s[%q] %d: it must be between 0 and %d", field, rest.JoinPath("", name), amount, int64(model.MaxAmount))
				continue
			}
			to[name] = amount
		}
		if len(from) > model.MaxDimensions {
			add("too many resources in %s: %d, at most %d are allowed in a cluster", field, len(from), model.MaxDimensions)
		}
	}
	amounts("Capacity", n.Capacity, out.Capacity)
	amounts("ReservedCapacity", n.ReservedCapacity, out.Reserved)
	out.Taints = taintsFrom(n.Taints, add)
	if len(n.Devices) > maxNodeDevices {
		add("too many Devices: %d groups, at most %d are allowed", len(n.Devices), maxNodeDevices)
	}
	for i, d := range n.Devices[:min(len(n.Devices), maxNodeDevices)] {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 || d.Count > 1<<16 {
			add("invalid Devices[%d] %s with %d instances: it must be VENDOR/TYPE/MODEL with 1 to 65536 instances", i, rest.Quote(d.ID), d.Count)
		}
		if slices.ContainsFunc(out.Devices, func(o model.Device) bool { return o.ID == d.ID }) {
			add("duplicate Devices[%d] %s: each device must be in one group", i, rest.Quote(d.ID))
		}
		out.Devices = append(out.Devices, model.Device{ID: d.ID, Count: int32(min(d.Count, 1<<16)), Attributes: d.Attributes})
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, rest.Invalid("invalid node: %s", strings.Join(problems, "; ")).With("Problems", problems)
	}
	return out, nil
}

func heartbeat(a *API, c *call) (any, error) {
	return c.leaseResponse(a.cfg.Server.Heartbeat(c.writeContext(), c.r.PathValue("id"), nodeSecret(c)))
}

func nodeAllocs(_ *API, c *call) (any, error) {
	id := nodeKind.resolveID(c)
	if err := requireOwnNode(c, id); err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableNodeAllocs.Of(id), state.TableNodes.Of(id)},
		render: func(s *state.Snapshot) (any, uint64, error) {
			node := s.Node(id)
			if node == nil {
				return nil, 0, rest.NotFound("node %s not found", rest.Quote(id)).WithHint("an agent registers its node when it starts")
			}
			// Ended allocations are not listed. Clients that monitor a drain learn about
			// the last of them from the change of the node.
			list, changed := []*client.Allocation{}, node.ModifyIndex
			jobs := map[*model.Job]*client.Job{}
			for _, a := range s.AppendNodeAllocs(nil, id) {
				changed = max(changed, view.AllocChanged(s, a))
				list = append(list, view.Alloc(s, a, jobs))
			}
			return list, changed, nil
		},
	})
}

// requireOwnNode returns an error if an agent's token requests a node without that
// node's secret. Tokens with the role read need no secret.
func requireOwnNode(c *call, id string) error {
	n := c.api.cfg.Server.Snapshot().Node(id)
	if n == nil {
		return nil // a missing node reveals nothing
	}
	return requireSecret(c, "node", id, n.SecretHash)
}

// requireSecret returns an error if an agent's request lacks the secret that hash
// belongs to.
func requireSecret(c *call, what, id string, hash [32]byte) error {
	if c.token == nil || acl.Allows(c.token.Roles, acl.Read) || acl.Matches(nodeSecret(c), hash) {
		return nil
	}
	return forbidden(c, "the secret of %s %s", what, rest.Quote(id))
}

func updateAllocs(a *API, c *call, req *client.AllocUpdateRequest) (any, error) {
	updates, err := decodeReport(req.Updates, func(u *client.AllocUpdate) (apply.ClientUpdate, string) {
		status, ok := clientStatuses[u.ClientStatus]
		if u.AllocID == "" || !ok {
			return apply.ClientUpdate{}, fmt.Sprintf("invalid allocation %s with status %s: it must have an ID and a status of pending, running, complete or failed", rest.Quote(u.AllocID), rest.Quote(u.ClientStatus))
		}
		return apply.ClientUpdate{
			AllocID: u.AllocID, Status: status, Started: u.StartTime != 0, StartTime: u.StartTime,
			Text: truncate(u.Description), EvictedBy: truncate(u.EvictedBy),
		}, ""
	})
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.UpdateAllocs(c.writeContext(), c.r.PathValue("id"), nodeSecret(c), updates))
}

// The maximum number of updates in a report of an agent, and of problems in the error.
const (
	maxUpdates  = 10_000
	maxProblems = 20
)

// decodeReport converts the updates of an agent. read returns the converted update,
// or its problem. If any update has a problem, decodeReport returns an error that
// lists them.
func decodeReport[T, R any](list []T, read func(*T) (R, string)) ([]R, error) {
	if len(list) > maxUpdates {
		return nil, rest.Invalid("too many Updates: %d entries, at most %d are allowed in a request", len(list), maxUpdates)
	}
	updates := make([]R, 0, len(list))
	var problems []string
	for i := range list {
		u, problem := read(&list[i])
		if problem != "" {
			problems = append(problems, fmt.Sprintf("Updates[%d]: %s", i, problem))
			continue
		}
		updates = append(updates, u)
	}
	if len(problems) > 0 {
		problems = problems[:min(len(problems), maxProblems)]
		return nil, rest.Invalid("%s", strings.Join(problems, "; ")).With("Problems", problems)
	}
	return updates, nil
}

// clientStatuses are the statuses that a node may report. Only servers set "lost".
var clientStatuses = map[string]model.ClientStatus{
	model.ClientPending.String():  model.ClientPending,
	model.ClientRunning.String():  model.ClientRunning,
	model.ClientComplete.String(): model.ClientComplete,
	model.ClientFailed.String():   model.ClientFailed,
}

// truncate shortens a text of a node, because it is stored in the replicated state.
func truncate(text string) string {
	const maxBytes = 1024
	if len(text) > maxBytes {
		text = text[:maxBytes]
	}
	return strings.ToValidUTF8(text, "?")
}

// Limits of the taints of a node.
const (
	maxTaints    = 64
	maxTaintText = 256 // bytes of a key, and of a value
)

// taintsFrom converts the taints of a request, and passes each problem to add.
func taintsFrom(list []client.Taint, add func(format string, args ...any)) []model.Taint {
	if len(list) > maxTaints {
		add("too many Taints: %d, at most %d are allowed", len(list), maxTaints)
		return nil
	}
	var all []model.Taint
	for i, t := range list {
		m := model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)}
		switch {
		case t.Key == "" || len(t.Key) > maxTaintText || len(t.Value) > maxTaintText || strings.ContainsAny(t.Key, " \t\n=:\x00"):
			add("invalid Taints[%d] %s with value %s: the key must be a word, and key and value at most %d bytes", i, rest.Quote(t.Key), rest.Quote(t.Value), maxTaintText)
		case !slices.Contains(model.TaintEffects, m.Effect):
			add("invalid effect of Taints[%d] %s: it must be NoSchedule, PreferNoSchedule or NoExecute", i, rest.Quote(t.Effect))
		case slices.ContainsFunc(all, m.Matches):
			add("duplicate Taints[%d] %s:%s: each pair of key and effect must be unique", i, t.Key, t.Effect)
		}
		all = append(all, m)
	}
	return model.MergeTaints(all, nil)
}

func setTaints(a *API, c *call, req *client.NodeUpdateTaintsRequest) (any, error) {
	id, err := requestedNode(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	taint, untaint := taintsFrom(req.Taint, add), untaintFrom(req.Untaint, add)
	if len(req.Taint)+len(req.Untaint) == 0 {
		add("Taint or Untaint is required")
	}
	if len(problems) > 0 {
		return nil, rest.Invalid("%s", strings.Join(problems, "; ")).With("Problems", problems)
	}
	n, err := nodeKind.find(a.cfg.Server.Snapshot(), c, id)
	if err != nil {
		return nil, err
	}
	for _, t := range untaint {
		if at := slices.IndexFunc(n.Taints, t.Matches); at >= 0 && !n.Taints[at].Set {
			return nil, rest.Invalid("cannot remove taint: node %s declares %s in its configuration", rest.Quote(n.ID), n.Taints[at]).
				WithHint("remove it from client.taints in the configuration of the node, and restart its agent")
		}
	}
	return c.nodeResponse(a.cfg.Server.SetTaints(c.writeContext(), n.ID, untaint, taint))
}

// untaintFrom returns the taints to remove. If a request names no effect, the taints
// of the key with every effect are removed.
func untaintFrom(list []client.Taint, add func(format string, args ...any)) (all []model.Taint) {
	for i, t := range list {
		effects := model.TaintEffects
		if t.Effect != "" {
			effects = []model.TaintEffect{model.TaintEffect(t.Effect)}
		}
		if t.Key == "" || !slices.Contains(model.TaintEffects, effects[0]) || i == maxTaints {
			add("invalid Untaint[%d] %s with effect %s: it must be the key of a taint, with its effect or none", i, rest.Quote(t.Key), rest.Quote(t.Effect))
			return nil
		}
		for _, e := range effects {
			all = append(all, model.Taint{Key: t.Key, Effect: e})
		}
	}
	return all
}

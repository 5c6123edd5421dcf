package client

import (
	"context"
	"net/http"
)

// The eligibility of nodes.
const (
	NodeEligible   = "eligible"
	NodeIneligible = "ineligible"
)

// Nodes holds the calls for nodes; see Client.Nodes.
type Nodes struct{ c *Client }

// List lists nodes, ascending by id.
func (n Nodes) List(ctx context.Context, q *QueryOptions) (list []*NodeStub, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "nodes")
	return list, meta, err
}

// Get returns a node. The ID may be any unique prefix.
func (n Nodes) Get(ctx context.Context, id string, q *QueryOptions) (*Node, *QueryMeta, error) {
	out := &Node{}
	meta, err := n.c.get(ctx, q, out, "node", id)
	return out, meta, err
}

// Allocations lists the allocations of a node.
func (n Nodes) Allocations(ctx context.Context, id string, q *QueryOptions) (list []*Allocation, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "node", id, "allocations")
	return list, meta, err
}

// Drain starts or ends a node's drain. A node whose drain ends remains ineligible,
// unless eligible is set.
func (n Nodes) Drain(ctx context.Context, id string, on, eligible bool) (*NodeUpdateResponse, error) {
	req := &NodeUpdateDrainRequest{NodeID: id, MarkEligible: !on && eligible}
	if on {
		req.DrainSpec = &DrainSpec{}
	}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "drain")
}

// Eligibility sets whether a node accepts new allocations.
func (n Nodes) Eligibility(ctx context.Context, id string, eligible bool) (*NodeUpdateResponse, error) {
	req := &NodeUpdateEligibilityRequest{NodeID: id, Eligibility: NodeIneligible}
	if eligible {
		req.Eligibility = NodeEligible
	}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "eligibility")
}

// Taint changes the taints that operators set on a node. It first removes those of
// untaint, by key and effect, or by key if they have no effect, and then sets those
// of taint.
func (n Nodes) Taint(ctx context.Context, id string, untaint, taint []Taint) (*NodeUpdateResponse, error) {
	req := &NodeUpdateTaintsRequest{NodeID: id, Untaint: untaint, Taint: taint}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "taints")
}

// Delete deletes a node. Its allocations are lost.
func (n Nodes) Delete(ctx context.Context, id string) (*NodeUpdateResponse, error) {
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodDelete, nil, true, nil, out, "node", id)
}

// NodeAgent holds the calls of a node's agent; see Client.NodeAgent. Every request
// carries the node's secret.
type NodeAgent struct{ c *Client }

// Register registers the node with its capacity and with the secret that later
// requests must carry.
func (a NodeAgent) Register(ctx context.Context, node *Node, secret string) (*NodeLease, error) {
	out := &NodeLease{}
	return out, a.c.agent(http.MethodPut, secret, "node", "register").exchange(ctx, &NodeRegisterRequest{Node: node, Secret: secret}, out)
}

// Heartbeat renews the lease of the node.
func (a NodeAgent) Heartbeat(ctx context.Context, id, secret string) (*NodeLease, error) {
	out := &NodeLease{}
	_, err := a.c.agent(http.MethodPut, secret, "node", id, "heartbeat").do(ctx, out)
	return out, err
}

// Allocations lists every allocation that the node must run or stop, with jobs and
// tasks. With Index and Wait in q it returns once the list has changed.
func (a NodeAgent) Allocations(ctx context.Context, id, secret string, q *QueryOptions) (list []*Allocation, meta *QueryMeta, err error) {
	r := a.c.agent(http.MethodGet, secret, "node", id, "allocations")
	q.apply(r)
	meta, err = r.do(ctx, &list)
	return list, meta, err
}

// Update reports the status of the node's allocations. It returns the index at which
// the reports are visible.
func (a NodeAgent) Update(ctx context.Context, id, secret string, updates []AllocUpdate) (uint64, error) {
	var out IndexResponse
	err := a.c.agent(http.MethodPut, secret, "node", id, "allocations").exchange(ctx, &AllocUpdateRequest{Updates: updates}, &out)
	return out.Index, err
}

// agent returns a request of the agent of a node or member cluster. It may be
// repeated, because a report replaces the one before.
func (c *Client) agent(method, secret string, parts ...string) *request {
	r := c.call(method, parts...)
	r.header.Set(headerNodeSecret, secret)
	r.repeatable = true
	return r
}

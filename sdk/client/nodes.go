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

// Nodes is what can be done with nodes; Client.Nodes makes one.
type Nodes struct{ c *Client }

// List lists nodes, ascending by id.
func (n Nodes) List(ctx context.Context, q *QueryOptions) (list []*NodeStub, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "nodes")
	return list, meta, err
}

// Get returns a node. The id may be any prefix that is unique.
func (n Nodes) Get(ctx context.Context, id string, q *QueryOptions) (*Node, *QueryMeta, error) {
	out := &Node{}
	meta, err := n.c.get(ctx, q, out, "node", id)
	return out, meta, err
}

// Allocations lists what was placed on a node.
func (n Nodes) Allocations(ctx context.Context, id string, q *QueryOptions) (list []*Allocation, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "node", id, "allocations")
	return list, meta, err
}

// Drain moves what runs on a node away, or ends that. A node whose drain ends
// takes no new work until Eligibility says so, unless eligible is set.
func (n Nodes) Drain(ctx context.Context, id string, on, eligible bool) (*NodeUpdateResponse, error) {
	req := &NodeUpdateDrainRequest{NodeID: id, MarkEligible: !on && eligible}
	if on {
		req.DrainSpec = &DrainSpec{}
	}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "drain")
}

// Eligibility says whether a node takes new work.
func (n Nodes) Eligibility(ctx context.Context, id string, eligible bool) (*NodeUpdateResponse, error) {
	req := &NodeUpdateEligibilityRequest{NodeID: id, Eligibility: NodeIneligible}
	if eligible {
		req.Eligibility = NodeEligible
	}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "eligibility")
}

// Taint changes the taints that operators set on a node: first those of untaint
// are taken away, by key and effect, or by key where they have none, then those
// of taint set.
func (n Nodes) Taint(ctx context.Context, id string, untaint, taint []Taint) (*NodeUpdateResponse, error) {
	req := &NodeUpdateTaintsRequest{NodeID: id, Untaint: untaint, Taint: taint}
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodPost, nil, true, req, out, "node", id, "taints")
}

// Delete forgets a node; what ran there is lost.
func (n Nodes) Delete(ctx context.Context, id string) (*NodeUpdateResponse, error) {
	out := &NodeUpdateResponse{}
	return out, n.c.write(ctx, http.MethodDelete, nil, false, nil, out, "node", id)
}

// NodeAgent is what the agent of a node does; Client.NodeAgent makes one. Every
// request carries the node's secret.
type NodeAgent struct{ c *Client }

// Register tells the servers of a node: who it is, what it has, and the secret
// that later words of it must carry.
func (a NodeAgent) Register(ctx context.Context, node *Node, secret string) (*NodeLease, error) {
	out := &NodeLease{}
	return out, a.c.agent(http.MethodPut, secret, "node", "register").exchange(ctx, &NodeRegisterRequest{Node: node, Secret: secret}, out)
}

// Heartbeat says that the node lives.
func (a NodeAgent) Heartbeat(ctx context.Context, id, secret string) (*NodeLease, error) {
	out := &NodeLease{}
	_, err := a.c.agent(http.MethodPut, secret, "node", id, "heartbeat").do(ctx, out)
	return out, err
}

// Allocations lists everything that the node shall run or stop, with jobs and
// tasks. With Index and Wait in q it answers once something has changed.
func (a NodeAgent) Allocations(ctx context.Context, id, secret string, q *QueryOptions) (list []*Allocation, meta *QueryMeta, err error) {
	r := a.c.agent(http.MethodGet, secret, "node", id, "allocations")
	q.apply(r)
	meta, err = r.do(ctx, &list)
	return list, meta, err
}

// Update says what became of the node's allocations; it returns the index at
// which that is visible.
func (a NodeAgent) Update(ctx context.Context, id, secret string, updates []AllocUpdate) (uint64, error) {
	var out IndexResponse
	err := a.c.agent(http.MethodPut, secret, "node", id, "allocations").exchange(ctx, &AllocUpdateRequest{Updates: updates}, &out)
	return out.Index, err
}

// agent makes a request of the agent of a node or member cluster, which may be
// repeated: what an agent says is what is so.
func (c *Client) agent(method, secret string, parts ...string) *request {
	r := c.call(method, parts...)
	r.header.Set(headerNodeSecret, secret)
	r.repeatable = true
	return r
}

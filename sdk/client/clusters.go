package client

import (
	"context"
	"net/http"
)

// Cluster is a member cluster: a pool of capacity for bindings. Its own scheduler
// places replicas inside it.
type Cluster struct {
	ID         string
	Capacity   map[string]int64  // cpu in millicores, memory and disk in MiB, network in Mbit/s, any other name in whole units
	Attributes map[string]string `json:",omitempty"` // attributes that constraints of bindings match

	// Set by the server.

	Status      string           `json:",omitempty"` // ready, or down; a cluster that is down gets no new assignments
	Agent       bool             `json:",omitempty"` // an agent reports the status of its assignments
	Reported    map[string]int64 `json:",omitempty"` // the part of Capacity that bindings may use, including their present use, as reported by the agent
	Free        map[string]int64 `json:",omitempty"` // capacity that is neither assigned nor claimed
	Assignments int              `json:",omitempty"` // assignments that hold capacity, including those that are stopping
	Stopping    int              `json:",omitempty"` // assignments that are stopping
	Claims      []*ClusterClaim  `json:",omitempty"` // capacity that is reserved for bindings until their victims have stopped
	CreateIndex uint64
	ModifyIndex uint64
}

// ClusterClaim is capacity of a member cluster that is reserved for a binding until
// its victims have stopped, or for another pool of servers.
type ClusterClaim struct {
	ID        string
	ClusterID string
	Pool      string `json:",omitempty"` // the other pool of servers that owns the binding; absent: this pool
	Namespace string // of the binding
	BindingID string
	Resources map[string]int64
	Priority  int
	Expiry    int64 // Unix nanoseconds; 0: until the other pool releases it
}

// ClusterRegisterRequest registers a member cluster. Its agent sends it.
type ClusterRegisterRequest struct {
	Capacity   map[string]int64
	Attributes map[string]string `json:",omitempty"`
	Reported   map[string]int64  `json:",omitempty"` // the part of Capacity that bindings may use; absent: all
	Secret     string            // the cluster's secret; later requests of the agent must carry it
}

// ClusterHeartbeatRequest renews the lease of a member cluster.
type ClusterHeartbeatRequest struct {
	Reported map[string]int64 `json:",omitempty"` // the part of its capacity that bindings may use; absent: unchanged
	Leases   []ClusterLease   `json:",omitempty"` // capacity that it reserves for other pools of servers; absent: none
}

// ClusterLease is capacity that a shared member cluster reserves for another pool of
// servers.
type ClusterLease struct {
	Pool      string // name of the pool in the configuration of the cluster's agent
	ID        string // of the other pool's assignment or claim
	Resources map[string]int64
	Priority  int
}

// AssignmentUpdate is a member cluster's report on one assignment.
type AssignmentUpdate struct {
	AssignmentID string
	ClientStatus string // pending, running, complete or failed; if it was stopped, the last two report that it has ended
	Ready        int    `json:",omitempty"` // ready replicas
	Description  string `json:",omitempty"`
	StartTime    int64  `json:",omitempty"` // Unix nanoseconds at which it started
}

// AssignmentUpdateRequest holds a member cluster's reports on its assignments.
type AssignmentUpdateRequest struct {
	Updates []AssignmentUpdate
}

// Clusters holds the calls for member clusters; see Client.Clusters.
type Clusters struct{ c *Client }

// List lists member clusters, ascending by id.
func (m Clusters) List(ctx context.Context, q *QueryOptions) (list []*Cluster, meta *QueryMeta, err error) {
	meta, err = m.c.get(ctx, q, &list, "clusters")
	return list, meta, err
}

// Get returns a member cluster. The ID may be any unique prefix.
func (m Clusters) Get(ctx context.Context, id string, q *QueryOptions) (*Cluster, *QueryMeta, error) {
	out := &Cluster{}
	meta, err := m.c.get(ctx, q, out, "cluster", id)
	return out, meta, err
}

// Assignments lists the assignments that hold capacity of a member cluster, ascending by ID.
func (m Clusters) Assignments(ctx context.Context, id string, q *QueryOptions) (list []*Assignment, meta *QueryMeta, err error) {
	meta, err = m.c.get(ctx, q, &list, "cluster", id, "assignments")
	return list, meta, err
}

// Put creates or changes a member cluster without an agent. Its assignments start and
// end by the clock.
func (m Clusters) Put(ctx context.Context, cluster *Cluster) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, m.c.write(ctx, http.MethodPut, nil, true, cluster, out, "cluster", cluster.ID)
}

// Delete deletes a member cluster. If it has assignments, the server returns a
// conflict, unless force is set: they are then placed on other clusters.
func (m Clusters) Delete(ctx context.Context, id string, force bool) (*IndexResponse, error) {
	r := m.c.call(http.MethodDelete, "cluster", id)
	if force {
		r.query.Set("force", "true")
	}
	out := &IndexResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// MemberAgent holds the calls of a member cluster's agent; see Client.MemberAgent.
// Every request carries the cluster's secret.
type MemberAgent struct{ c *Client }

// Register registers the cluster with its capacity and with the secret that later
// requests must carry.
func (m MemberAgent) Register(ctx context.Context, id string, req *ClusterRegisterRequest) (*NodeLease, error) {
	out := &NodeLease{}
	return out, m.c.agent(http.MethodPut, req.Secret, "cluster", id, "agent").exchange(ctx, req, out)
}

// Heartbeat renews the lease of the cluster.
func (m MemberAgent) Heartbeat(ctx context.Context, id, secret string, req *ClusterHeartbeatRequest) (*NodeLease, error) {
	out := &NodeLease{}
	return out, m.c.agent(http.MethodPut, secret, "cluster", id, "heartbeat").exchange(ctx, req, out)
}

// Assignments lists every assignment that the cluster must run or stop, with its
// binding, and every claim (DesiredClaim) that it must reserve capacity for. With
// Index and Wait in q it returns once the list has changed.
func (m MemberAgent) Assignments(ctx context.Context, id, secret string, q *QueryOptions) (list []*Assignment, meta *QueryMeta, err error) {
	r := m.c.agent(http.MethodGet, secret, "cluster", id, "assignments")
	r.query.Set("claims", "true")
	q.apply(r)
	meta, err = r.do(ctx, &list)
	return list, meta, err
}

// Update reports the status of the cluster's assignments. It returns the index at
// which the reports are visible.
func (m MemberAgent) Update(ctx context.Context, id, secret string, updates []AssignmentUpdate) (uint64, error) {
	var out IndexResponse
	err := m.c.agent(http.MethodPut, secret, "cluster", id, "assignments").exchange(ctx, &AssignmentUpdateRequest{Updates: updates}, &out)
	return out.Index, err
}

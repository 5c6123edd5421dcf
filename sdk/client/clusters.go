package client

import (
	"context"
	"net/http"
)

// Cluster is a member cluster: one pool of capacity that bindings are spread
// over. What runs where inside it is its own scheduler's business.
type Cluster struct {
	ID         string
	Capacity   map[string]int64  // cpu in millicores, memory and disk in MiB, network in Mbit/s, any other name in whole units
	Attributes map[string]string `json:",omitempty"` // what constraints of bindings read

	// Set by the server.

	Status      string           `json:",omitempty"` // ready, or down: it takes nothing new
	Agent       bool             `json:",omitempty"` // an agent on it says what becomes of what is assigned there
	Reported    map[string]int64 `json:",omitempty"` // how much of Capacity its agent says that bindings may use, theirs included
	Free        map[string]int64 `json:",omitempty"` // that no binding holds or has claimed
	Assignments int              `json:",omitempty"` // that hold room, those that stop included
	Stopping    int              `json:",omitempty"` // of them
	Claims      []*ClusterClaim  `json:",omitempty"` // room that is kept for bindings while others leave it
	CreateIndex uint64
	ModifyIndex uint64
}

// ClusterClaim is room on a member cluster that is kept for a binding until those
// that it displaces are gone, or for another pool.
type ClusterClaim struct {
	ID        string
	ClusterID string
	Pool      string `json:",omitempty"` // another pool of servers, which has the binding; absent: it is here
	Namespace string // of the binding
	BindingID string
	Resources map[string]int64
	Priority  int
	Expiry    int64 // Unix nanoseconds; 0: until the other pool needs it no more
}

// ClusterRegisterRequest is an agent's first word of its cluster.
type ClusterRegisterRequest struct {
	Capacity   map[string]int64
	Attributes map[string]string `json:",omitempty"`
	Reported   map[string]int64  `json:",omitempty"` // how much of Capacity bindings may use; absent: all
	Secret     string            // the cluster's own; what is said of it later must carry it
}

// ClusterHeartbeatRequest says that a cluster is there.
type ClusterHeartbeatRequest struct {
	Reported map[string]int64 `json:",omitempty"` // how much of its capacity bindings may use; absent: as before
	Leases   []ClusterLease   `json:",omitempty"` // room that it keeps for other pools of servers; absent: none
}

// ClusterLease is room that a member cluster keeps for another pool of servers, with
// which it is shared.
type ClusterLease struct {
	Pool      string // as the cluster's agent calls it
	ID        string // of the other pool's assignment or claim
	Resources map[string]int64
	Priority  int
}

// AssignmentUpdate is what a member cluster says of one assignment.
type AssignmentUpdate struct {
	AssignmentID string
	ClientStatus string // pending, running, complete or failed; of one that was told to stop the last two say that it is gone
	Ready        int    `json:",omitempty"` // replicas that work
	Description  string `json:",omitempty"`
	StartTime    int64  `json:",omitempty"` // Unix nanoseconds at which it started to work
}

// AssignmentUpdateRequest is what a member cluster says of its assignments.
type AssignmentUpdateRequest struct {
	Updates []AssignmentUpdate
}

// Clusters is what can be done with member clusters; Client.Clusters makes one.
type Clusters struct{ c *Client }

// List lists member clusters, ascending by id.
func (m Clusters) List(ctx context.Context, q *QueryOptions) (list []*Cluster, meta *QueryMeta, err error) {
	meta, err = m.c.get(ctx, q, &list, "clusters")
	return list, meta, err
}

// Get returns a member cluster. The id may be any prefix that is unique.
func (m Clusters) Get(ctx context.Context, id string, q *QueryOptions) (*Cluster, *QueryMeta, error) {
	out := &Cluster{}
	meta, err := m.c.get(ctx, q, out, "cluster", id)
	return out, meta, err
}

// Assignments lists what holds room on a member cluster, ascending by id.
func (m Clusters) Assignments(ctx context.Context, id string, q *QueryOptions) (list []*Assignment, meta *QueryMeta, err error) {
	meta, err = m.c.get(ctx, q, &list, "cluster", id, "assignments")
	return list, meta, err
}

// Put makes or changes a member cluster that has no agent: what is assigned there
// starts and ends by the clock.
func (m Clusters) Put(ctx context.Context, cluster *Cluster) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, m.c.write(ctx, http.MethodPut, nil, true, cluster, out, "cluster", cluster.ID)
}

// Delete forgets a member cluster. While something is assigned there it is a
// conflict, unless it is forced: that is placed elsewhere then.
func (m Clusters) Delete(ctx context.Context, id string, force bool) (*IndexResponse, error) {
	r := m.c.call(http.MethodDelete, "cluster", id)
	if force {
		r.query.Set("force", "true")
	}
	out := &IndexResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// MemberAgent is what the agent of a member cluster does; Client.MemberAgent makes
// one. Every request carries the cluster's secret.
type MemberAgent struct{ c *Client }

// Register tells the servers of the cluster: what it has, and the secret that
// later words of it must carry.
func (m MemberAgent) Register(ctx context.Context, id string, req *ClusterRegisterRequest) (*NodeLease, error) {
	out := &NodeLease{}
	return out, m.c.agent(http.MethodPut, req.Secret, "cluster", id, "agent").exchange(ctx, req, out)
}

// Heartbeat says that the cluster is there.
func (m MemberAgent) Heartbeat(ctx context.Context, id, secret string, req *ClusterHeartbeatRequest) (*NodeLease, error) {
	out := &NodeLease{}
	return out, m.c.agent(http.MethodPut, secret, "cluster", id, "heartbeat").exchange(ctx, req, out)
}

// Assignments lists everything that the cluster shall run or stop, with the
// bindings, and what it shall keep room for: DesiredClaim. With Index and Wait in q
// it answers once something has changed.
func (m MemberAgent) Assignments(ctx context.Context, id, secret string, q *QueryOptions) (list []*Assignment, meta *QueryMeta, err error) {
	r := m.c.agent(http.MethodGet, secret, "cluster", id, "assignments")
	r.query.Set("claims", "true")
	q.apply(r)
	meta, err = r.do(ctx, &list)
	return list, meta, err
}

// Update says what became of the cluster's assignments; it returns the index at
// which that is visible.
func (m MemberAgent) Update(ctx context.Context, id, secret string, updates []AssignmentUpdate) (uint64, error) {
	var out IndexResponse
	err := m.c.agent(http.MethodPut, secret, "cluster", id, "assignments").exchange(ctx, &AssignmentUpdateRequest{Updates: updates}, &out)
	return out.Index, err
}

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// The scopes of bindings, and the values of Binding.ReplicaScheduling.
const (
	ScopeNamespace     = "namespace"
	ScopeCluster       = "cluster"
	ReplicasDivided    = "divided"
	ReplicasDuplicated = "duplicated"
)

// Binding is a workload whose replicas are spread over member clusters.
type Binding struct {
	ID                  string
	Namespace           string `json:",omitempty"` // default: the namespace of the query
	Scope               string `json:",omitempty"` // namespace (default) or cluster; a binding of scope cluster neither evicts nor is evicted
	Priority            *int   `json:",omitempty"` // default: the priority of the class, or 0
	PriorityClass       string `json:",omitempty"`
	PriorityClassSource string `json:",omitempty"` // KubePriorityClass (default) or PodPriorityClass
	PreemptionPolicy    string `json:",omitempty"` // PreemptLowerPriority or Never; default: the class's, else Never
	Replicas            *int   `json:",omitempty"` // default: 1
	MinReplicas         int    `json:",omitempty"` // replicas to which it may be shrunk instead of evicted; 0: it is evicted whole

	Resources         map[string]int64 `json:",omitempty"` // of one replica, in the units of Cluster.Capacity
	Clusters          []string         `json:",omitempty"` // allowed member clusters; absent: all
	Weights           map[string]int   `json:",omitempty"` // weights by which replicas are divided over clusters; absent: by free capacity
	Constraints       []*Constraint    `json:",omitempty"` // over attributes of clusters
	ReplicaScheduling string           `json:",omitempty"` // divided (default: replicas over clusters) or duplicated (all replicas on each)
	MinClusters       int              `json:",omitempty"` // 0: one
	MaxClusters       int              `json:",omitempty"` // 0: any number
	SpreadBy          string           `json:",omitempty"` // attribute of clusters, such as region, whose values MinGroups and MaxGroups count
	MinGroups         int              `json:",omitempty"` // 0: one
	MaxGroups         int              `json:",omitempty"` // 0: any number

	KillTimeout *time.Duration `json:",omitempty"` // ns that an evicted assignment takes to stop; default: 30s
	Duration    time.Duration  `json:",omitempty"` // ns that an assignment runs; 0: without end
	Checkpoint  time.Duration  `json:",omitempty"` // ns between checkpoints; 0: an eviction loses all work
	// Template describes a replica to the agents of member clusters: a job with one
	// group. The binding sets its count and resources.
	Template json.RawMessage `json:",omitempty"`

	// Set by the server.

	Stop        bool   `json:",omitempty"`
	Version     uint64 `json:",omitempty"`
	SubmitTime  int64  `json:",omitempty"` // Unix nanoseconds
	CreateIndex uint64
	ModifyIndex uint64
}

// BindingStub is a binding in a list.
type BindingStub struct {
	ID                string
	Namespace         string
	Priority          int
	PriorityClass     string         `json:",omitempty"`
	PreemptionPolicy  string         // PreemptLowerPriority or Never
	Status            string         // bound, partial, pending, complete, stopping or stopped
	StatusDescription string         `json:",omitempty"`
	Replicas          int            // desired replicas
	Placed            int            // replicas assigned to clusters
	Ready             int            // ready replicas, as reported by the agents of clusters
	Clusters          map[string]int `json:",omitempty"` // replicas by cluster
	Stop              bool           `json:",omitempty"`
	Version           uint64
	CreateIndex       uint64
	ModifyIndex       uint64
}

// BindingStatus is a binding with its assignments, claims and history.
type BindingStatus struct {
	BindingStub
	Binding     *Binding
	Assignments []*Assignment      // including those that are stopping, ascending by ID
	Claims      []*ClusterClaim    `json:",omitempty"` // capacity that is reserved for it
	Warnings    []string           `json:",omitempty"` // parts of the specification that are not fulfilled
	Missing     int                `json:",omitempty"` // replicas that are not assigned
	Unbound     []*ClusterRefusal  `json:",omitempty"` // if replicas are missing: the reason, per cluster
	NoEviction  string             `json:",omitempty"` // reason why no binding is evicted for the missing replicas; absent: eviction is allowed
	Evictions   []*BindingEviction `json:",omitempty"` // caused or suffered, newest first, from the last 20 recorded decisions of RecordedBy
	RecordedBy  string             // the responding server; it records the entries that it applies, so that evictions from before its last snapshot are missing
}

// ClusterRefusal explains why a cluster does not accept a binding's missing replicas.
type ClusterRefusal struct {
	ClusterID string
	Fits      int    // replicas that fit
	Reason    string // empty: all missing replicas fit
}

// BindingEviction is the eviction of a binding's replicas from a member cluster.
type BindingEviction struct {
	Time        int64  // Unix nanoseconds
	ClusterID   string // cluster of the victim
	Namespace   string // of the victim
	BindingID   string // of the victim
	Replicas    int
	Priority    int    // of the victim
	ByNamespace string // of the preemptor
	ByBindingID string // of the preemptor
	ByPriority  int
	Policy      string // version of the policy that chose the victim
}

// Assignment is a number of replicas of a binding on a member cluster.
type Assignment struct {
	ID                 string
	Namespace          string
	BindingID          string
	ClusterID          string
	Replicas           int
	Priority           int // of the binding
	EvalID             string
	DesiredStatus      string // run, stop or evict; DesiredClaim if it is a claim
	DesiredDescription string `json:",omitempty"`
	ClientStatus       string // pending, running or complete, as last reported by the cluster's agent
	ClientDescription  string `json:",omitempty"`
	Ready              int    // ready replicas, as last reported by the cluster's agent
	Done               bool   `json:",omitempty"` // it has finished and holds no capacity
	PreemptedBy        string `json:",omitempty"` // the claim that it is evicted for
	PreemptedByBinding string `json:",omitempty"` // the binding of that claim, as NAMESPACE/ID
	Policy             string `json:",omitempty"` // version of the policy that chose it as a victim
	CreateTime         int64  // Unix nanoseconds
	StartTime          int64  // Unix nanoseconds
	StopTime           int64  `json:",omitempty"` // Unix nanoseconds at which it was withdrawn or evicted; absent if it was not
	KillDeadline       int64  `json:",omitempty"` // Unix nanoseconds at which its workload is stopped at the latest, if the cluster is reachable; only while it is stopping
	EndTime            int64  `json:",omitempty"` // Unix nanoseconds at which it finished; absent while it holds capacity
	CreateIndex        uint64
	ModifyIndex        uint64

	Binding  *Binding `json:",omitempty"` // for agents; absent if the binding was deleted
	Preempts bool     `json:",omitempty"` // for agents: workloads of lower priority may be evicted for it
}

// DesiredClaim is the DesiredStatus of a claim in a list of assignments: its replicas
// do not run, but their capacity is reserved.
const DesiredClaim = "claim"

// BindingResponse is the result of changing a binding.
type BindingResponse struct {
	EvalID             string `json:",omitempty"`
	BindingModifyIndex uint64
	Index              uint64
	Warnings           []string `json:",omitempty"`
	Replayed           bool     `json:",omitempty"` // a request with the same idempotency key was processed before
}

// Bindings holds the calls for bindings; see Client.Bindings.
type Bindings struct{ c *Client }

// List lists bindings, ascending by namespace and id.
func (b Bindings) List(ctx context.Context, q *QueryOptions) (list []*BindingStub, meta *QueryMeta, err error) {
	meta, err = b.c.get(ctx, q, &list, "bindings")
	return list, meta, err
}

// Get returns a binding with its status. The ID may be any unique prefix.
func (b Bindings) Get(ctx context.Context, id string, q *QueryOptions) (*BindingStatus, *QueryMeta, error) {
	out := &BindingStatus{}
	meta, err := b.c.get(ctx, q, out, "binding", id)
	return out, meta, err
}

// Assignments lists a binding's assignments, ascending by id.
func (b Bindings) Assignments(ctx context.Context, id string, q *QueryOptions) (list []*Assignment, meta *QueryMeta, err error) {
	meta, err = b.c.get(ctx, q, &list, "binding", id, "assignments")
	return list, meta, err
}

// Put registers a binding or a new version of it. If the binding has no namespace,
// that of w is used.
func (b Bindings) Put(ctx context.Context, binding *Binding, w *WriteOptions) (*BindingResponse, error) {
	out := &BindingResponse{}
	return out, b.c.write(ctx, http.MethodPut, w.of(binding.Namespace), true, binding, out, "binding", binding.ID)
}

// Stop stops a binding and its assignments. With purge, the binding is deleted as
// soon as none of its assignments is left.
func (b Bindings) Stop(ctx context.Context, id string, purge bool, w *WriteOptions) (*BindingResponse, error) {
	r := b.c.call(http.MethodDelete, "binding", id)
	w.apply(r)
	if purge {
		r.query.Set("purge", "true")
	}
	out := &BindingResponse{}
	_, err := r.once().do(ctx, out)
	return out, err
}

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// The scopes of bindings, and how their replicas are scheduled.
const (
	ScopeNamespace     = "namespace"
	ScopeCluster       = "cluster"
	ReplicasDivided    = "divided"
	ReplicasDuplicated = "duplicated"
)

// Binding is a workload whose replicas are spread over member clusters.
type Binding struct {
	ID                  string
	Namespace           string `json:",omitempty"` // default: that of the query
	Scope               string `json:",omitempty"` // namespace (default), or cluster: it neither evicts nor is evicted
	Priority            *int   `json:",omitempty"` // default: that of the class, else 0
	PriorityClass       string `json:",omitempty"`
	PriorityClassSource string `json:",omitempty"` // KubePriorityClass (default) or PodPriorityClass
	PreemptionPolicy    string `json:",omitempty"` // PreemptLowerPriority or Never; default: the class's, else Never
	Replicas            *int   `json:",omitempty"` // default: 1
	MinReplicas         int    `json:",omitempty"` // down to which it may be shrunk rather than evicted; 0: whole or not at all

	Resources         map[string]int64 `json:",omitempty"` // of one replica, in the units of Cluster.Capacity
	Clusters          []string         `json:",omitempty"` // allowed member clusters; absent: all
	Weights           map[string]int   `json:",omitempty"` // how replicas divide over clusters; absent: by the room there is
	Constraints       []*Constraint    `json:",omitempty"` // over attributes of clusters
	ReplicaScheduling string           `json:",omitempty"` // divided (default: replicas over clusters) or duplicated (all replicas on each)
	MinClusters       int              `json:",omitempty"` // 0: one
	MaxClusters       int              `json:",omitempty"` // 0: any number
	SpreadBy          string           `json:",omitempty"` // attribute of clusters, such as region, whose values MinGroups and MaxGroups count
	MinGroups         int              `json:",omitempty"` // 0: one
	MaxGroups         int              `json:",omitempty"` // 0: any number

	KillTimeout *time.Duration `json:",omitempty"` // ns that an evicted assignment takes to stop; default: 30s
	Duration    time.Duration  `json:",omitempty"` // ns that an assignment runs; 0: for ever
	Checkpoint  time.Duration  `json:",omitempty"` // ns between savings of work; 0: an eviction loses all of it
	// Template is what a replica is, for the agents of member clusters: a job with
	// one group, whose count and resources the binding says.
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
	Replicas          int            // wanted
	Placed            int            // on clusters
	Ready             int            // that work, as the agents of clusters say
	Clusters          map[string]int `json:",omitempty"` // replicas by cluster
	Stop              bool           `json:",omitempty"`
	Version           uint64
	CreateIndex       uint64
	ModifyIndex       uint64
}

// BindingStatus is a binding with how it stands.
type BindingStatus struct {
	BindingStub
	Binding     *Binding
	Assignments []*Assignment      // those that stop included, ascending by id
	Claims      []*ClusterClaim    `json:",omitempty"` // room that is kept for it
	Warnings    []string           `json:",omitempty"` // what is not as it was asked for
	Missing     int                `json:",omitempty"` // replicas without a place
	Unbound     []*ClusterRefusal  `json:",omitempty"` // of a binding that lacks replicas: why, cluster by cluster
	NoEviction  string             `json:",omitempty"` // why nobody is evicted for what is missing; absent: somebody may be
	Evictions   []*BindingEviction `json:",omitempty"` // that it caused or suffered, the newest first, by the last 20 decisions that RecordedBy knows of
	RecordedBy  string             // the server that answers: it records what it applies, so what came to it in a snapshot is not among Evictions
}

// ClusterRefusal is why a cluster does not take what a binding lacks.
type ClusterRefusal struct {
	ClusterID string
	Fits      int    // replicas that find room
	Reason    string // empty: all that is missing would fit
}

// BindingEviction is replicas of a binding that left a member cluster for another
// binding.
type BindingEviction struct {
	Time        int64  // Unix nanoseconds
	ClusterID   string // that it left
	Namespace   string // of the victim
	BindingID   string // of the victim
	Replicas    int
	Priority    int    // of the victim
	ByNamespace string // of the preemptor
	ByBindingID string // of the preemptor
	ByPriority  int
	Policy      string // version of the policy that chose it
}

// Assignment is replicas of a binding on a member cluster.
type Assignment struct {
	ID                 string
	Namespace          string
	BindingID          string
	ClusterID          string
	Replicas           int
	Priority           int // of the binding
	EvalID             string
	DesiredStatus      string // run, stop or evict; of a claim DesiredClaim
	DesiredDescription string `json:",omitempty"`
	ClientStatus       string // pending, running or complete, as the cluster's agent last said
	ClientDescription  string `json:",omitempty"`
	Ready              int    // replicas that work, as the cluster's agent last said
	Done               bool   `json:",omitempty"` // its work is done; it holds no room any more
	PreemptedBy        string `json:",omitempty"` // the claim that it makes room for
	PreemptedByBinding string `json:",omitempty"` // whose claim that is, as NAMESPACE/ID
	Policy             string `json:",omitempty"` // version of the policy that chose it as a victim
	CreateTime         int64  // Unix nanoseconds
	StartTime          int64  // Unix nanoseconds
	EndTime            int64  `json:",omitempty"` // Unix nanoseconds at which it was no longer wanted, or ended
	CreateIndex        uint64
	ModifyIndex        uint64

	Binding  *Binding `json:",omitempty"` // for agents; absent where it was deleted
	Preempts bool     `json:",omitempty"` // for agents: what is of lower priority may be evicted for it
}

// DesiredClaim is the DesiredStatus of a claim where it is listed among assignments:
// nothing runs, and room is kept for as many replicas.
const DesiredClaim = "claim"

// BindingResponse says what a change of a binding came to.
type BindingResponse struct {
	EvalID             string `json:",omitempty"`
	BindingModifyIndex uint64
	Index              uint64
	Warnings           []string `json:",omitempty"`
	Replayed           bool     `json:",omitempty"` // the idempotency key had done this before
}

// Bindings is what can be done with bindings; Client.Bindings makes one.
type Bindings struct{ c *Client }

// List lists bindings, ascending by namespace and id.
func (b Bindings) List(ctx context.Context, q *QueryOptions) (list []*BindingStub, meta *QueryMeta, err error) {
	meta, err = b.c.get(ctx, q, &list, "bindings")
	return list, meta, err
}

// Get returns a binding with how it stands. The id may be any prefix that is
// unique.
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

// Put registers a binding, or another version of it. The namespace is the
// binding's, else that of w.
func (b Bindings) Put(ctx context.Context, binding *Binding, w *WriteOptions) (*BindingResponse, error) {
	out := &BindingResponse{}
	return out, b.c.write(ctx, http.MethodPut, w.of(binding.Namespace), true, binding, out, "binding", binding.ID)
}

// Stop ends a binding: what is assigned of it stops. With purge it is forgotten at
// once where nothing of it is left.
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

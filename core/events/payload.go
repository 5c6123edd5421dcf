package events

// JobPayload is the payload of events about a job.
type JobPayload struct {
	JobID, Type, PriorityClass string
	Priority                   int32
	Version, JobModifyIndex    uint64
	Stopped, Purged            bool
}

// EvaluationPayload is the payload of events about an evaluation.
type EvaluationPayload struct {
	EvalID, JobID, Type, TriggeredBy, Status, StatusText string
	SupersededBy, Blocked, Previous                      string
	Priority                                             int32
	Queued                                               map[string]int
}

// AllocationPayload is the payload of events about an allocation.
type AllocationPayload struct {
	AllocID, Name, JobID, Group, NodeID, EvalID string
	Desired, DesiredReason, Client, ClientText  string
	PreemptedBy                                 string
}

// NodePayload is the payload of events about a node.
type NodePayload struct {
	NodeID, Name, Datacenter, Status string
	Eligible, Drain                  bool
}

// PolicyPayload is the payload of events about a policy.
type PolicyPayload struct {
	Name, Version, Digest, Server, Reason string
	OK                                    bool
}

// PreemptionPayload is the payload of events about a victim and its preemptor.
type PreemptionPayload struct {
	Victim        Victim
	By            string // allocation or claim that preempts
	ByJobID       string
	ByNamespace   string
	ByPriority    int32
	NodeID        string
	ClusterID     string // instead of NodeID: it is of bindings
	PolicyVersion string
}

// DecisionPayload is the payload of events about a placement that evicts: its cost,
// and the policy that decided.
type DecisionPayload struct {
	EvalID, JobID, Group, AllocID, NodeID string
	ClusterID                             string // instead of NodeID: it is of a binding, AllocID of its claim
	Priority                              int32
	PolicyVersion                         string
	Reason                                string
	Victims                               []Victim
}

// Victim is an allocation that was evicted.
type Victim struct {
	AllocID, JobID, Namespace, Group, NodeID string
	ClusterID                                string // instead of NodeID: AllocID is of a binding's assignment
	Replicas                                 int    // of the assignment
	Priority                                 int32
	LostWork                                 int64 // nanoseconds
	Reason                                   string
}

// OperatorPayload is the payload of events about a change by an operator.
type OperatorPayload struct {
	What, Name, Detail string
}

// ClusterPayload is the payload of events about a member cluster.
type ClusterPayload struct {
	ClusterID   string
	Down, Agent bool
}

// BindingPayload is the payload of events about a binding.
type BindingPayload struct {
	BindingID, PriorityClass string
	Priority                 int32
	Replicas                 int
	Version, ModifyIndex     uint64
	Stopped                  bool
	Warning                  string `json:",omitempty"` // PriorityClass did not exist when the binding was registered
}

// AssignmentPayload is the payload of events about replicas on a member cluster.
type AssignmentPayload struct {
	AssignmentID, BindingID, ClusterID, EvalID string
	Replicas, Ready                            int
	Desired, DesiredReason, Client, ClientText string
	PreemptedBy                                string
	Gone                                       bool // it holds no capacity any more
}

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
	// Actor is the accessor of the token that requested a change, "trial" if a condition of
	// a trial did or its time was over, or "" if it is unknown.
	Actor string `json:",omitempty"`
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
	// PlannedOn is the index of the state that was planned on, and PlannedAt the time of the
	// plan, in Unix nanoseconds: the decision can be made again with them. 0: the record is
	// of an older release.
	PlannedOn uint64 `json:",omitempty"`
	PlannedAt int64  `json:",omitempty"`
	// Observed marks a decision that was recorded and not carried out. AllocID is empty.
	Observed bool `json:",omitempty"`
	Reason   string
	Victims  []Victim
	Why      *Why `json:",omitempty"` // nil: the plan is of a release without explanations
}

// Why explains a decision: the options that were compared, and the verdicts about the
// candidates of the chosen one.
type Why struct {
	Text     []string // in words: the choice of the node, and that of the victims
	Search   string   // best-node, each-node, gang, strict-budgets or clusters
	Options  int      // feasible options that were compared
	Ceiling  int64    // highest priority that could be evicted
	Selector PolicyCall
	Chooser  PolicyCall
	Ranked   []RankedOption // the chosen option, and the best of other nodes
	// Candidates are the victims in picking order, then the others in the order of the
	// policy. Omitted counts those that are not listed.
	Candidates []Candidate
	Omitted    int `json:",omitempty"`
}

// PolicyCall is a hook of a policy version, with the optional columns that it reads.
type PolicyCall struct {
	Version string
	Hook    string
	Columns []string
	Part    string `json:",omitempty"` // of a composition: the part that answered
}

// RankedOption is an option with the policy's answer. NodeID is a cluster's ID if the
// preemptor is a binding.
type RankedOption struct {
	NodeID          string
	Tiers           [4]int64 // lower ranks first
	Score           float64  // higher ranks first, if the tiers are equal
	Victims         int
	HighestPriority int32
	Outlook         *Outlook `json:",omitempty"` // nil: the option was not played
}

// Outlook predicts the consequences of an option, if no other work arrives.
type Outlook struct {
	LostWork     int64 // nanoseconds, of all evictions, those of the option included
	CascadeDepth int32 // length of the longest chain of evictions
	Delay        int64 // nanoseconds for which evicted instances do not run, summed over them
}

// Candidate is an allocation that could have been evicted. Tier and Score are nil if the
// policy did not score it.
type Candidate struct {
	AllocID, Name, JobID, Namespace, NodeID string
	Priority                                int32
	Verdict                                 string   // evicted, unneeded, reprieved, spared or shielded
	Tier                                    *int64   `json:",omitempty"` // lower is evicted first
	Score                                   *float64 `json:",omitempty"` // lower is evicted first, if the tiers are equal
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

// AuditPayload is the payload of the event AuditRecorded. The record in the state has the
// address of the client as well, which readers of events may not see.
type AuditPayload struct {
	Action, Object, Detail string
	Actor, ActorName       string // accessor and name of the token; see model.AuditOrigin
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

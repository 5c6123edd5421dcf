package client

import "context"

// Decision is a placement that evicted others, or would have: the victims, the beneficiary,
// and why the scheduler decided so. Every server has the same record of it.
type Decision struct {
	Index         uint64 // of the entry that committed it
	Time          int64  // Unix nanoseconds
	Namespace     string // of the job that was placed
	EvalID        string
	JobID         string
	Group         string `json:",omitempty"`
	AllocID       string // of the placement, or of the claim of a binding; empty if Observed
	NodeID        string `json:",omitempty"`
	ClusterID     string `json:",omitempty"` // instead of NodeID, for a binding
	Priority      int
	PolicyVersion string // that selected the victims
	Observed      bool   `json:",omitempty"` // it was recorded, and nothing was evicted
	Reason        string // why others had to leave
	Victims       []DecisionVictim
	Why           *DecisionWhy `json:",omitempty"` // absent if the server that decided ran an older release
}

// DecisionVictim is an allocation that was evicted. If the caller may not read its
// namespace, only its priority and its lost work are set.
type DecisionVictim struct {
	AllocID   string
	JobID     string
	Namespace string
	Group     string `json:",omitempty"`
	NodeID    string `json:",omitempty"`
	ClusterID string `json:",omitempty"`
	Replicas  int    `json:",omitempty"` // of a binding
	Priority  int
	LostWork  int64  // ns
	Reason    string `json:",omitempty"`
}

// DecisionWhy explains a decision: the options that were compared, and the verdicts about
// the candidates of the chosen one.
type DecisionWhy struct {
	Text     []string // in words
	Search   string   // best-node, each-node, gang, strict-budgets or clusters
	Options  int      // feasible options that were compared
	Ceiling  int64    // highest priority that could be evicted
	Selector DecisionCall
	Chooser  DecisionCall
	Ranked   []DecisionOption // the chosen option, and the best of other nodes
	// Candidates are the victims in picking order, then the others in the order of the
	// policy. Omitted counts those that are not listed.
	Candidates []DecisionCandidate
	Omitted    int `json:",omitempty"`
}

// DecisionCall is a hook of a policy version, with the optional columns that it reads.
type DecisionCall struct {
	Version string
	Hook    string
	Columns []string
	Part    string `json:",omitempty"` // of a composition: the part that answered
}

// DecisionOption is an option with the policy's answer: lower tiers rank first, then
// higher scores. NodeID is the ID of a cluster if a binding was placed.
type DecisionOption struct {
	NodeID          string
	Tiers           []int64
	Score           float64
	Victims         int
	HighestPriority int
	Outlook         *DecisionOutlook `json:",omitempty"` // absent if the option was not played
}

// DecisionOutlook predicts the consequences of an option, if no other work arrives.
type DecisionOutlook struct {
	LostWork     int64 // ns, of all evictions, those of the option included
	CascadeDepth int   // length of the longest chain of evictions
	Delay        int64 // ns for which evicted instances do not run, summed over them
}

// DecisionCandidate is an allocation that could have been evicted. If the caller may not
// read its namespace, it is not identified.
type DecisionCandidate struct {
	AllocID   string
	Name      string
	JobID     string
	Namespace string
	NodeID    string
	Priority  int
	Verdict   string   // evicted, would be evicted, unneeded, reprieved, spared or shielded
	Tier      *int64   `json:",omitempty"` // lower is evicted first; absent if the policy did not score it
	Score     *float64 `json:",omitempty"` // lower is evicted first, if the tiers are equal
}

// Decisions lists the decisions in which an allocation was placed or evicted, newest first.
// The ID may be any unique prefix while the allocation exists.
func (a Allocations) Decisions(ctx context.Context, id string, q *QueryOptions) (list []*Decision, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &list, "allocation", id, "decisions")
	return list, meta, err
}

// Decisions lists the decisions to evict of an evaluation, newest first.
func (e Evaluations) Decisions(ctx context.Context, id string, q *QueryOptions) (list []*Decision, meta *QueryMeta, err error) {
	meta, err = e.c.get(ctx, q, &list, "evaluation", id, "decisions")
	return list, meta, err
}

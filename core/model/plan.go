package model

// A Plan is the proposal of a scheduler for one evaluation against one snapshot.
type Plan struct {
	EvalID        string
	EvalToken     string
	Job           JobKey
	Priority      int32
	SnapshotIndex uint64
	Now           int64 // Unix nanoseconds at which the decisions were made
	// Moves limits the moves of a plan that an operator confirmed; nil: the configuration
	// does. It is for the planner and is not written into the log.
	Moves  *Rate
	Groups []CommitGroup
}

// Empty reports whether the plan changes nothing.
func (p *Plan) Empty() bool { return len(p.Groups) == 0 }

// A CommitGroup is a part of a plan that is committed all-or-none, unless it is
// divisible: usually the changes of one node. The members of a gang, victims on
// several nodes, placements bound by topology rules, and both halves of a move share
// a group.
type CommitGroup struct {
	// Divisible allows each placement to be committed individually, with the
	// evictions that serve it; the others are rejected. Only groups without
	// updates, stops and claims may be divisible, and not those of a gang or with
	// topology rules.
	Divisible bool

	Placements []*Allocation
	Updates    []*Allocation // in place: same node, newer job version
	Stops      []Stop
	Evictions  []Eviction
	Claims     []*Claim
	// Choices explain evictions and withdrawals, at most one for each placement or claim
	// that they serve. No decision depends on them, and a plan may lack them.
	Choices []*Choice

	// Changes of bindings. A plan of a binding has one group, with claims and these
	// fields only, which is committed all-or-none.
	Assignments    []*Assignment // new, or existing with another number of replicas
	Withdrawals    []Withdrawal
	ReleasedClaims []string // claims of the plan's own binding that are released
}

// HasBindingChanges reports whether the group changes bindings.
func (g *CommitGroup) HasBindingChanges() bool {
	return len(g.Assignments)+len(g.Withdrawals)+len(g.ReleasedClaims) > 0
}

// A Stop ends an allocation that is no longer desired.
type Stop struct {
	AllocID string
	Reason  string
	Lost    bool // its node is gone: it ends at once with client status lost
	// MovedTo makes the stop one half of a move: it is the ID of a placement of the same
	// commit group, which is the same instance of the same job on another node. Only
	// the two halves of a move may concern another job than that of the plan.
	MovedTo string
}

// An Eviction makes an allocation the victim of a placement or a claim of the same
// commit group.
type Eviction struct {
	AllocID string
	By      string // allocation id of the placement, or claim id
	Policy  string // version of the policy that chose it
}

// A Claim reserves capacity on a node, or on a member cluster, for a claimant until
// it is placed or the claim expires. It counts against every other requester of lower
// or equal priority.
type Claim struct {
	ID        string
	Claimant  JobKey
	NodeID    string
	ClusterID string // set instead of NodeID for the claim of a binding
	Vec       Vector
	Ports     []uint16
	Devices   []DeviceUse
	Priority  int32
	Expiry    int64 // Unix nanoseconds

	CreateIndex uint64
}

// CountsAgainst reports whether the claim reduces the capacity for this requester at
// now.
func (c *Claim) CountsAgainst(requester JobKey, priority int32, now int64) bool {
	return c.Claimant != requester && c.Priority >= priority && now < c.Expiry
}

// A PlanResult is the result of a plan.
type PlanResult struct {
	Committed    []int       // positions in Plan.Groups, ascending, including partially committed groups
	Rejected     []Rejection // in the order of Plan.Groups
	Index        uint64      // at which the committed groups are visible; 0 if none is
	RefreshIndex uint64      // the state to plan against next; 0 if nothing was rejected
}

// FullyCommitted reports whether every group was committed.
func (r *PlanResult) FullyCommitted() bool { return len(r.Rejected) == 0 }

// A Rejection is a commit group that no longer holds, or the part of it that does
// not.
type Rejection struct {
	Group  int   // position in Plan.Groups
	Places []int // positions in CommitGroup.Placements of that part, ascending; nil for the whole group
	NodeID string
	Reason string
}

func (r Rejection) String() string { return "node " + r.NodeID + ": " + r.Reason }

package model

// Plan is what a scheduler proposes for one evaluation against one snapshot.
type Plan struct {
	EvalID        string
	EvalToken     string
	Job           JobKey
	Priority      int32
	SnapshotIndex uint64
	Now           int64 // Unix nanoseconds that the decisions were made with
	Groups        []CommitGroup
}

// Empty is whether the plan changes nothing.
func (p *Plan) Empty() bool { return len(p.Groups) == 0 }

// CommitGroup is a part of a plan that is committed whole or not at all, unless it
// says that it is divisible:
// usually what happens on one node; a gang, victims on several nodes and
// placements bound by topology rules share one.
type CommitGroup struct {
	// Divisible is whether the placements hold each by itself, with the evictions that
	// are for it: those that do are committed, and the others come back. Groups that
	// only place may be; those of a gang, or bound by rules, are not.
	Divisible bool

	Placements []*Allocation
	Updates    []*Allocation // in place: same node, newer job version
	Stops      []Stop
	Evictions  []Eviction
	Claims     []*Claim

	// What happens to bindings. A plan of a binding has one group and nothing of
	// the above but claims: it is placed whole or not at all.
	Assignments    []*Assignment // new, or the same with another number of replicas
	Withdrawals    []Withdrawal
	ReleasedClaims []string // claims of the plan's own binding that are given up
}

// HasBindingChanges is whether the group is about bindings.
func (g *CommitGroup) HasBindingChanges() bool {
	return len(g.Assignments)+len(g.Withdrawals)+len(g.ReleasedClaims) > 0
}

// Stop ends an allocation that is no longer wanted.
type Stop struct {
	AllocID string
	Reason  string
	Lost    bool // its node is gone: it ends at once, as lost
}

// Eviction makes an allocation the victim of a placement or a claim of the
// same commit group.
type Eviction struct {
	AllocID string
	By      string // allocation id of the placement, or claim id
	Policy  string // version of the policy that chose it
}

// Claim is room reserved on a node, or on a member cluster, for a claimant until
// it is placed or the claim expires. It counts against everybody of lower or
// equal priority but the claimant.
type Claim struct {
	ID        string
	Claimant  JobKey
	NodeID    string
	ClusterID string // instead of NodeID: it is a binding's
	Vec       Vector
	Ports     []uint16
	Devices   []DeviceUse
	Priority  int32
	Expiry    int64 // Unix nanoseconds

	CreateIndex uint64
}

// CountsAgainst is whether the claim takes room from this asker at now.
func (c *Claim) CountsAgainst(asker JobKey, priority int32, now int64) bool {
	return c.Claimant != asker && c.Priority >= priority && now < c.Expiry
}

// PlanResult is what became of a plan.
type PlanResult struct {
	Committed    []int       // positions in Plan.Groups, ascending; also of groups of which a part is
	Rejected     []Rejection // in the order of Plan.Groups
	Index        uint64      // at which the committed groups are visible; 0 when none is
	RefreshIndex uint64      // the state to plan against next; 0 when nothing was rejected
}

// FullyCommitted is whether every group was committed.
func (r *PlanResult) FullyCommitted() bool { return len(r.Rejected) == 0 }

// Rejection is a commit group that no longer holds, or the part of it that does not.
type Rejection struct {
	Group  int   // position in Plan.Groups
	Places []int // positions in CommitGroup.Place of that part, ascending; nil: all of the group
	NodeID string
	Reason string
}

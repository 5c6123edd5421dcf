package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Request is a search for capacity for one group.
type Request struct {
	Group     *model.Group
	Now       int64 // Unix nanoseconds
	Algorithm model.Algorithm
	Delta     *int32 // the operator's base gap; nil: the policy's own
	Waiting   int64  // nanoseconds that the group's oldest pending instance has been waiting
	Attempts  int32

	Policy  *policy.Version
	Default *policy.Version // serves the hooks that Policy lacks

	// Nodes are the positions of nodes that the group may run on but that lack capacity,
	// in tie order.
	Nodes []int32
	// Rules are the scheduler's checks besides amounts; nil: none.
	Rules Rules
	// Elsewhere are the scheduler's checks of nodes for the candidates of any job, for
	// policies that read where candidates could run instead; nil: capacity alone decides.
	Elsewhere relocate.Places
	// ByRank holds the positions of all nodes in tie order; nil: by position.
	ByRank []int32
	// RemoteEvictions allows evictions on other nodes that make a node feasible.
	RemoteEvictions bool
	// Excluded are never candidates; nil: none are excluded.
	Excluded map[*model.Allocation]bool
	// Evictions counts the plan's victims by group; nil: none yet.
	Evictions *protect.EvictionCounts

	TieOrder tiebreak.Order
	Workers  int // goroutines to search with; 0 or 1: the caller's alone

	// LookAhead plays options, for choosers that read their outlooks; nil: none is played.
	LookAhead LookAhead

	// OnCall is called for every call of a hook, from several goroutines if Workers is
	// more than 1; nil: not called.
	OnCall func(policy.Call)
	// Explain requests Choice.Why.
	Explain bool
}

// Rules are the scheduler's checks of a group besides its request. Workers call the
// methods concurrently. For a node they must answer the same until Update is called
// with its position.
type Rules interface {
	protect.AffinityRules

	// Components returns the components of the rank of the node at pos besides its fit.
	// Bit k of present reports whether values[k] takes part.
	Components(pos int32) (values [sdk.NumComponents]float64, present uint8)
	// Allows reports whether the node at pos may run one more instance of the group,
	// apart from its capacity.
	Allows(pos int32) bool
	// RemoteConflicts returns the allocations on other nodes that have to leave before
	// the node at pos may run one more instance, ascending by priority and ID. It returns
	// false if that would not suffice.
	RemoteConflicts(pos int32) ([]*model.Allocation, bool)
	// Separated reports whether a live row of the node at pos and the group exclude each
	// other, so that the row must leave.
	Separated(pos int32, row *state.Row) bool
	// HasSeparation reports whether Separated can return true at all, and
	// HasSeparatedRows whether it can for some row of the node at pos.
	HasSeparation() bool
	HasSeparatedRows(pos int32) bool
}

// AnyNode is a position that no node has. Rules.IsAffinityTarget accepts it.
const AnyNode = protect.AnyNode

// BaseGap returns by how much the priority of a victim must be lower: as configured by
// the operator, else as declared by the policy.
func BaseGap(v *policy.Version, configured *int32) int32 {
	if configured != nil {
		return *configured
	}
	return v.Info().Delta
}

// Ceiling returns the highest priority that may be evicted for a given one: strictly
// lower, and lower by the base gap unless the policy has a PriorityDelta hook, which may
// reduce the gap.
func Ceiling(priority int32, v *policy.Version, configured *int32) int64 {
	ceiling := int64(priority) - 1
	if v.Hooks().Has(policy.HookDelta) {
		return ceiling
	}
	return min(ceiling, int64(priority)-int64(BaseGap(v, configured)))
}

// describe fills p with the description of the group that policies read. It reuses the
// memory of p.
func (r *Request) describe(p *sdk.Preemptor, dims int) {
	g := r.Group
	ask, devices := slices.Grow(p.Ask[:0], dims)[:dims], p.Devices[:0]
	for d := range ask {
		ask[d] = float64(g.Ask.Vec[d])
	}
	for _, d := range g.Ask.Devices {
		devices = append(devices, sdk.DeviceAsk{ID: d.ID, Count: d.Count})
	}
	*p = sdk.Preemptor{
		Namespace: g.Job.Namespace, Job: g.Job.ID, Group: g.Name, JobType: g.Job.Type.String(),
		Priority: g.Job.Priority, Delta: BaseGap(r.Policy, r.Delta), Ask: ask, Devices: devices,
		Ports: len(g.Ask.Ports), Labels: g.Labels, Annotations: g.Annotations,
		Waiting: r.Waiting, Attempts: r.Attempts,
	}
}

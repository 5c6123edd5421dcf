package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Request is a search for room for one group.
type Request struct {
	Group     *model.Group
	Now       int64
	Algorithm model.Algorithm
	Delta     *int32 // the operator's base gap; nil: the policy's own
	Waiting   int64  // nanoseconds that the group's instance waits that has waited longest
	Attempts  int32

	Policy  *policy.Version
	Default *policy.Version // decides what Policy leaves open

	// Nodes are the positions of nodes that may take the group but lack room,
	// in tie order.
	Nodes []int32
	// Rules adds what the scheduler knows beyond vectors; nil: nothing.
	Rules Rules
	// RemoteEvictions is whether Rules may be asked for evictions on other nodes that make
	// a node possible.
	RemoteEvictions bool
	// Excluded are no candidates, whatever else they are; nil: all are.
	Excluded map[*model.Allocation]bool
	// Evictions counts the plan's victims by group; nil: none yet.
	Evictions *protect.EvictionCounts

	Weights map[string]float64 // of namespaces; 1 where absent

	TieOrder tiebreak.Order
	Workers  int // goroutines to search with; 0 or 1: the caller alone

	// OnCall is told of every call of a hook, by several goroutines where Workers is
	// more than 1; nil: nobody is.
	OnCall func(policy.Call)
}

// Rules is what the scheduler knows of a group beyond its ask.
type Rules interface {
	// Components ranks the node at pos beside its fit; bit k of present says
	// whether values[k] takes part.
	Components(pos int32) (values [sdk.NumComponents]float64, present uint8)
	// Separated is whether a live row of the node at pos and the group exclude
	// one another, so that the row must leave.
	Separated(pos int32, row *state.Row) bool
	// Allows is whether the node at pos may take one more instance of the group,
	// eviction aside. It is asked again when the node changes.
	Allows(pos int32) bool
	// RemoteConflicts lists the allocations on other nodes that have to leave before the
	// node at pos may take one more instance of the group, ascending by priority and
	// id; false where their leaving would not help. Workers ask side by side.
	RemoteConflicts(pos int32) ([]*model.Allocation, bool)
	// IsAffinityTarget is whether a row on the node at pos is, or may be once others there are
	// gone, what lets the group go there: it is no candidate for it. With Everywhere for a
	// position it is whether the row may be that for any node. Workers ask side by side.
	IsAffinityTarget(pos int32, row *state.Row) bool
	// HasSeparation is whether Separated can be true at all, and Apart whether it can of
	// some row of the node at pos.
	HasSeparation() bool
	HasSeparatedRows(pos int32) bool
}

// AnyNode is no node's position.
const AnyNode = -1

// delta is the base gap of a request.
func (r *Request) delta() int32 { return BaseGap(r.Policy, r.Delta) }

func BaseGap(v *policy.Version, configured *int32) int32 {
	if configured != nil {
		return *configured
	}
	return v.Info().Delta
}

// Ceiling is the highest priority that may be evicted for work of the given
// one: strictly lower, and lower by the base gap unless the policy has a
// PriorityDelta of its own, which may ask for less.
func Ceiling(priority int32, v *policy.Version, configured *int32) int64 {
	ceiling := int64(priority) - 1
	if v.Hooks().Has(policy.HookDelta) {
		return ceiling
	}
	return min(ceiling, int64(priority)-int64(BaseGap(v, configured)))
}

// describe describes the group to policies, into memory of an earlier request.
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
		Priority: g.Job.Priority, Delta: r.delta(), Ask: ask, Devices: devices,
		Ports: len(g.Ask.Ports), Labels: g.Labels, Annotations: g.Annotations,
		Waiting: r.Waiting, Attempts: r.Attempts,
	}
}

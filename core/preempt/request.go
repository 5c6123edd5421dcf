package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
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
	// Elsewhere is whether Rules may be asked for evictions on other nodes that make
	// a node possible.
	Elsewhere bool
	// Spared are no candidates, whatever else they are; nil: all are.
	Spared map[*model.Allocation]bool
	// Evicted counts the plan's victims by group; nil: none yet.
	Evicted *Evicted

	Weights map[string]float64 // of namespaces; 1 where absent

	Ties    Ties
	Workers int // goroutines to search with; 0 or 1: the caller alone

	// Tell is told of every call of a hook, by several goroutines where Workers is
	// more than 1; nil: nobody is.
	Tell func(policy.Call)
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
	// Elsewhere lists the allocations on other nodes that have to leave before the
	// node at pos may take one more instance of the group, ascending by priority and
	// id; false where their leaving would not help. Workers ask side by side.
	Elsewhere(pos int32) ([]*model.Allocation, bool)
	// Anchors is whether a row on the node at pos is, or may be once others there are
	// gone, what lets the group go there: it is no candidate for it. With Everywhere for a
	// position it is whether the row may be that for any node. Workers ask side by side.
	Anchors(pos int32, row *state.Row) bool
	// Separates is whether Separated can be true at all, and Apart whether it can of
	// some row of the node at pos.
	Separates() bool
	Apart(pos int32) bool
}

// Everywhere is no node's position.
const Everywhere = -1

// delta is the base gap of a request.
func (r *Request) delta() int32 { return baseGap(r.Policy, r.Delta) }

func baseGap(v *policy.Version, configured *int32) int32 {
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
	return min(ceiling, int64(priority)-int64(baseGap(v, configured)))
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

// Evicted counts the victims of one plan by group, on all nodes.
type Evicted struct {
	byKey   map[evictedKey]*int32
	byGroup map[*model.Group]*int32
	// marks has a bit for every group counted. Most groups that are asked for are
	// not, and are known by it without a search.
	marks [marks / 64]uint64
}

// marks is how many bits Evicted tells groups apart by.
const marks = 1 << 12

type evictedKey struct {
	job   model.JobKey
	group string
}

// mark is where the bit of a group is, the same for every version of it.
func mark(g *model.Group) (word int, bit uint64) {
	sum := g.NameHash() % marks
	return int(sum / 64), 1 << (sum % 64)
}

// Add counts one more victim of g.
func (e *Evicted) Add(g *model.Group) {
	key := evictedKey{g.Job.Key(), g.Name}
	if e.byKey == nil {
		e.byKey, e.byGroup = map[evictedKey]*int32{}, map[*model.Group]*int32{}
	}
	c := e.byKey[key]
	if c == nil {
		c = new(int32)
		e.byKey[key] = c
	}
	*c++
	e.byGroup[g] = c
	word, bit := mark(g)
	e.marks[word] |= bit
}

// Of is the number of victims of g so far. It only reads, so that workers may
// share the counts. The pointer is tried first: the groups of one job version
// are shared by its allocations.
func (e *Evicted) Of(g *model.Group) int32 {
	if e == nil {
		return 0
	}
	if word, bit := mark(g); e.marks[word]&bit == 0 {
		return 0
	}
	if c := e.byGroup[g]; c != nil {
		return *c
	}
	if c := e.byKey[evictedKey{g.Job.Key(), g.Name}]; c != nil {
		return *c
	}
	return 0
}

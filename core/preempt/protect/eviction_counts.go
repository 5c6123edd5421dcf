package protect

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// EvictionCounts count the victims of one plan by group, on all nodes and across job
// versions. The zero value is empty.
type EvictionCounts struct {
	// Committed is the state without the plan, if the plan evicts all of its victims or none; nil:
	// the state of the search. A plan that fails leaves no evictions behind, so that a budget with a
	// window would never have more slack later, however often the search is repeated.
	Committed *state.Snapshot

	byKey map[GroupKey]*int32
	// byGroup finds the same counters by pointer: allocations share the groups of their
	// job version, and comparing pointers is cheaper than hashing two strings.
	byGroup map[*model.Group]*int32
	// filter has a bit for every counted group. Most lookups are for groups without
	// victims, and the filter answers them without a map access.
	filter [filterBits / 64]uint64
}

// filterBits is the number of bits of the filter.
const filterBits = 1 << 12

// A GroupKey identifies a group across the versions of its job.
type GroupKey struct {
	Job   model.JobKey
	Group string
}

// KeyOf returns the key of a group.
func KeyOf(g *model.Group) GroupKey { return GroupKey{g.Job.Key(), g.Name} }

// filterBit returns where the bit of a group is. All versions of a group share it.
func filterBit(g *model.Group) (word int, bit uint64) {
	sum := g.NameHash() % filterBits
	return int(sum / 64), 1 << (sum % 64)
}

// Add counts one more victim of g.
func (e *EvictionCounts) Add(g *model.Group) {
	key := KeyOf(g)
	if e.byKey == nil {
		e.byKey, e.byGroup = map[GroupKey]*int32{}, map[*model.Group]*int32{}
	}
	c := e.byKey[key]
	if c == nil {
		c = new(int32)
		e.byKey[key] = c
	}
	*c++
	e.byGroup[g] = c
	word, bit := filterBit(g)
	e.filter[word] |= bit
}

// Of returns the number of victims of g so far; 0 if e is nil. It only reads, so that
// workers may share the counts.
func (e *EvictionCounts) Of(g *model.Group) int32 {
	if e == nil {
		return 0
	}
	if word, bit := filterBit(g); e.filter[word]&bit == 0 {
		return 0
	}
	if c := e.byGroup[g]; c != nil {
		return *c
	}
	if c := e.byKey[KeyOf(g)]; c != nil {
		return *c
	}
	return 0
}

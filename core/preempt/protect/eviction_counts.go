package protect

import "github.com/cede-scheduler/cede/core/model"

// EvictionCounts counts the victims of one plan by group, on all nodes.
type EvictionCounts struct {
	byKey   map[GroupKey]*int32
	byGroup map[*model.Group]*int32
	// marks has a bit for every group counted. Most groups that are asked for are
	// not, and are known by it without a search.
	marks [marks / 64]uint64
}

// marks is how many bits Evicted tells groups apart by.
const marks = 1 << 12

type GroupKey struct {
	Job   model.JobKey
	Group string
}

// mark is where the bit of a group is, the same for every version of it.
func mark(g *model.Group) (word int, bit uint64) {
	sum := g.NameHash() % marks
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
	word, bit := mark(g)
	e.marks[word] |= bit
}

// Of is the number of victims of g so far. It only reads, so that workers may
// share the counts. The pointer is tried first: the groups of one job version
// are shared by its allocations.
func (e *EvictionCounts) Of(g *model.Group) int32 {
	if e == nil {
		return 0
	}
	if word, bit := mark(g); e.marks[word]&bit == 0 {
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

// KeyOf returns the key of a group.
func KeyOf(g *model.Group) GroupKey { return GroupKey{g.Job.Key(), g.Name} }

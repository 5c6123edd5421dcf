package relocate

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An Answer states where an allocation could run if it were evicted alone.
type Answer struct {
	Where uint8 // the SDK's Relocation*
	// Priority is the highest priority, and LostWork the lost work in nanoseconds, that
	// the allocation would evict in its turn; math.MinInt32 and 0 unless Where is
	// RelocationEvicts.
	Priority int32
	LostWork int64
}

var (
	free     = Answer{Where: sdk.RelocationFree, Priority: math.MinInt32}
	stranded = Answer{Where: sdk.RelocationNone, Priority: math.MinInt32}
)

// A target is a node that could run an allocation once others have left.
type target struct {
	pos      int32 // -1: none
	priority int32
	lostWork int64
}

// less reports whether a target costs less than another one. Any target costs less than
// none.
func (t *target) less(other *target) bool {
	switch {
	case t.pos < 0 || other.pos < 0:
		return t.pos >= 0 && other.pos < 0
	case t.priority != other.priority:
		return t.priority < other.priority
	}
	return t.lostWork < other.lostWork
}

func (t *target) answer() Answer {
	if t.pos < 0 {
		return stranded
	}
	return Answer{sdk.RelocationEvicts, t.priority, t.lostWork}
}

// places are the nodes that could run the allocations of one shape. Two nodes of each kind
// are enough to answer for any home: a home is only one of them.
type places struct {
	free    [2]int32 // nodes with enough free capacity, in order of position; -1: none
	targets [2]target
	// lastFree and lastTarget are the ranks of the last nodes that were examined for each, if
	// the limit was reached; math.MaxInt32: it was not.
	lastFree, lastTarget int32
}

var noPlaces = places{
	free: [2]int32{-1, -1}, targets: [2]target{{pos: -1}, {pos: -1}},
	lastFree: math.MaxInt32, lastTarget: math.MaxInt32,
}

// at returns the answer for an allocation on the node at home.
func (p *places) at(home int32) Answer {
	for _, pos := range p.free {
		if pos >= 0 && pos != home {
			return free
		}
	}
	if p.targets[0].pos == home {
		return p.targets[1].answer()
	}
	return p.targets[0].answer()
}

// addTarget adds a target if it is one of the two that cost least. Of equals the first
// stays.
func (p *places) addTarget(t target) {
	switch {
	case t.less(&p.targets[0]):
		p.targets[1], p.targets[0] = p.targets[0], t
	case t.less(&p.targets[1]):
		p.targets[1] = t
	}
}

// exception returns the node with another answer for its allocations than all other nodes,
// or -1.
func (p *places) exception() int32 {
	pos := p.targets[0].pos
	if p.free[0] >= 0 {
		pos = p.free[0]
	}
	if pos >= 0 && p.at(pos) != p.at(-1) {
		return pos
	}
	return -1
}

// DependsOnItself reports whether the rules of a group count its own instances beyond one
// node. Its instances then have an answer each: an instance that leaves may permit a domain
// that it excluded.
func DependsOnItself(g *model.Group) bool {
	if len(g.Colocate) > 0 {
		return true
	}
	for i := range g.Separate {
		if g.Separate[i].TopologyKey != model.TopologyNode {
			return true
		}
	}
	for i := range g.Spread {
		if g.Spread[i].MaxSkew > 0 {
			return true
		}
	}
	for i := range g.Constraints {
		if g.Constraints[i].Operator == model.OpDistinctProperty {
			return true
		}
	}
	return false
}

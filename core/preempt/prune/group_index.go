package prune

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
)

// A GroupIndex finds the nodes of a search that run candidates of a group. A list is
// made when the group's first victim enters the plan, from the allocations of its job,
// which are few compared with those of the cluster. It holds for the whole search:
// candidates only become fewer.
type GroupIndex struct {
	lists map[protect.GroupKey][]Holder
	seen  []uint32 // by slot: round in which the node was last visited
	round uint32
}

// A Holder is a node with a candidate of a group.
type Holder struct {
	Slot     int32
	Priority int32 // of the candidate
}

// Reset starts a new search over a number of nodes.
func (x *GroupIndex) Reset(nodes int) {
	clear(x.lists)
	x.seen, x.round = scratch.Zeroed(x.seen, nodes), 0
}

// Holders returns the nodes with candidates of any version of a group, one entry for
// each candidate.
func (x *GroupIndex) Holders(s *protect.Scope, index *NodeIndex, g *model.Group) []Holder {
	key := protect.KeyOf(g)
	if list, known := x.lists[key]; known {
		return list
	}
	var list []Holder
	for _, a := range index.JobAllocs(s.Snap, key.Job) {
		if !a.Live() || a.Group.Name != g.Name || int64(a.Job.Priority) > s.Ceiling {
			continue
		}
		if slot, ok := index.Slot(s.Snap, a.NodePos); ok {
			list = append(list, Holder{slot, a.Job.Priority})
		}
	}
	if x.lists == nil {
		x.lists = map[protect.GroupKey][]Holder{}
	}
	x.lists[key] = list
	return list
}

// StartRound makes every node unvisited.
func (x *GroupIndex) StartRound() { x.round++ }

// IsVisited reports whether the node at slot was visited in this round.
func (x *GroupIndex) IsVisited(slot int32) bool { return x.seen[slot] == x.round }

// Visit marks the node at slot as visited.
func (x *GroupIndex) Visit(slot int32) { x.seen[slot] = x.round }

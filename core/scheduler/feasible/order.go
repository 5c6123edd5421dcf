package feasible

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// PlacementOrder returns the order in which the groups of a job are placed: the given one,
// except that a group that must run near another one follows that one, even if it could be
// near its own instances alone. Otherwise its first instance would be near nothing. Groups
// of a cycle keep their order: those that lacked a placement of a later group are placed by
// the next evaluation, which the placements of this one unblock. It does not modify groups.
func PlacementOrder(groups []*model.Group) []*model.Group {
	if !slices.ContainsFunc(groups, func(g *model.Group) bool { return len(g.Colocate) > 0 }) {
		return groups
	}
	waiting, order := slices.Clone(groups), make([]*model.Group, 0, len(groups))
	for len(waiting) > 0 {
		next := max(0, slices.IndexFunc(waiting, func(g *model.Group) bool { // 0: a cycle
			return !slices.ContainsFunc(waiting, func(other *model.Group) bool { return isNear(g, other) && !isNear(other, g) })
		}))
		order = append(order, waiting[next])
		waiting = slices.Delete(waiting, next, next+1)
	}
	return order
}

// isNear reports whether a co-location term of a group matches another group.
func isNear(g, other *model.Group) bool {
	return slices.ContainsFunc(g.Colocate, func(t model.LabelTerm) bool { return t.Matches(other.Labels) })
}

package topology

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// A Level is a set of groups that must share one domain of a topology key. A group with
// terms of several keys, such as zone and rack, is in several levels.
type Level struct {
	Key    string
	Groups []*model.Group
	// Value is the only domain that is possible, because instances run there already; "": any.
	Value string
}

// Levels returns the levels of groups of a job, in their order. Groups without co-location
// with each other, directly or by way of others, are in different levels, so that
// each set can use a domain of its own. Terms whose domains are nodes have no level: the
// first instance decides about its node alone. snap is the state in which they are placed.
//
// Only groups that are bound to one domain count. With loose, other groups with terms count
// as well: a shared domain then is one possibility among others.
func Levels(snap *state.Snapshot, groups []*model.Group, loose bool) (levels []Level) {
	for _, g := range groups {
		levels = appendLevels(levels, snap, g, groups, loose)
	}
	return levels
}

// appendLevels adds the levels of one group.
func appendLevels(levels []Level, snap *state.Snapshot, g *model.Group, groups []*model.Group, loose bool) []Level {
	for i := range g.Colocate {
		t := &g.Colocate[i]
		if feasible.IsNodeLocal(t) {
			continue
		}
		list := matching(groups, t)
		value, bound := boundTo(snap, g, t, groups, list)
		if !bound && !loose {
			continue
		}
		if !slices.Contains(list, g) {
			list = append(list, g)
		}
		levels = join(levels, Level{t.TopologyKey, list, value})
	}
	return levels
}

// BoundTogether returns the first of some groups and those that must share a domain with it,
// directly or by way of others, in their order; nil: it is not bound to any domain. The terms of
// other groups are not examined.
func BoundTogether(snap *state.Snapshot, groups []*model.Group) (list []*model.Group) {
	bound, queue := map[*model.Group]bool{}, []*model.Group{groups[0]}
	for i := 0; i < len(queue); i++ {
		for _, l := range appendLevels(nil, snap, queue[i], groups, false) {
			for _, g := range l.Groups {
				if !bound[g] && g != groups[0] {
					queue = append(queue, g)
				}
				bound[g] = true
			}
		}
	}
	for _, g := range groups {
		if bound[g] {
			list = append(list, g)
		}
	}
	return list
}

// boundTo reports whether all instances of a group must be in one domain of a term, and the
// value of that domain if instances run already. That holds if everything that the term
// matches is in one domain: the groups of list, of which each has a term that matches exactly
// those, and allocations of the job in that domain alone.
func boundTo(snap *state.Snapshot, g *model.Group, t *model.LabelTerm, groups, list []*model.Group) (value string, ok bool) {
	for _, other := range list {
		if !slices.ContainsFunc(other.Colocate, func(x model.LabelTerm) bool {
			return x.TopologyKey == t.TopologyKey && slices.Equal(matching(groups, &x), list)
		}) {
			return "", false
		}
	}
	own, ok := g.Job.Key(), true
	var allocs []*model.Allocation
	for key := range snap.JobsMatching(t.Labels) {
		if key.Namespace != own.Namespace {
			continue
		}
		allocs = snap.AppendJobAllocs(allocs[:0], key)
		for _, a := range allocs {
			if !a.Live() || !t.Matches(a.Group.Labels) {
				continue
			}
			at := ""
			if node := snap.NodeAt(a.NodePos); node != nil {
				at, _ = node.Domain(t.TopologyKey)
			}
			ok = ok && key == own && at != "" && (value == "" || value == at)
			value = at
		}
	}
	return value, ok && len(list)+len(value) > 0
}

// matching returns the groups that a co-location term matches.
func matching(groups []*model.Group, t *model.LabelTerm) (list []*model.Group) {
	for _, g := range groups {
		if t.Matches(g.Labels) {
			list = append(list, g)
		}
	}
	return list
}

// join adds a level, merged with all levels of its key that share a group with it.
func join(levels []Level, added Level) []Level {
	at := len(levels)
	for i := len(levels) - 1; i >= 0; i-- {
		l := &levels[i]
		if l.Key != added.Key || !slices.ContainsFunc(l.Groups, func(g *model.Group) bool { return slices.Contains(added.Groups, g) }) {
			continue
		}
		merged := Level{l.Key, slices.Clone(l.Groups), max(l.Value, added.Value)}
		for _, g := range added.Groups {
			if !slices.Contains(merged.Groups, g) {
				merged.Groups = append(merged.Groups, g)
			}
		}
		added, at = merged, i
		levels = slices.Delete(levels, i, i+1)
	}
	return slices.Insert(levels, at, added)
}

package gang

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// maxDomains is the number of domains that are tried for co-located groups. Domains
// with too little capacity do not count.
const maxDomains = 64

// tryDomains tries one topology domain, such as a rack, after another for groups
// that must be co-located. The best node for the first instance does not indicate
// which domain has capacity for all of them, and backtracking node by node would
// try each domain once per node.
func (g *gang) tryDomains() (placed bool, err error) {
	e := g.e
	defer e.Restrict(nil)
	key, groups := colocatedGroups(e.Job)
	tried := 0
	for _, value := range domainValues(e.State.Base, key, e.NodesInOrder()) {
		domains := map[*model.Group]*feasible.Domain{}
		for _, group := range groups {
			domains[group] = &feasible.Domain{Key: key, Value: value}
		}
		if e.Restrict(domains); !g.mayFit() {
			continue
		}
		if tried == maxDomains {
			break // the search continues without restrictions
		}
		tried++
		if err := g.placeGroups(e.Job.Groups); err != nil {
			return false, err
		}
		if e.Unplaced.IsEmpty() {
			return true, nil
		}
		g.rollback()
		if placed, err := g.tryLargestFirst(); placed || err != nil {
			return placed, err
		}
	}
	return false, nil
}

// colocatedGroups returns the topology key by which groups of a job are co-located,
// and those groups. The key is "" if there is none or if it is the node.
func colocatedGroups(job *model.Job) (key string, groups []*model.Group) {
	for _, group := range job.Groups {
		for i := range group.Colocate {
			t := &group.Colocate[i]
			if feasible.IsNodeLocal(t) || key != "" && t.TopologyKey != key {
				continue
			}
			// The first key wins. Groups with another one are not restricted.
			key = t.TopologyKey
			for _, other := range job.Groups {
				if (other == group || t.Matches(other.Labels)) && !slices.Contains(groups, other) {
					groups = append(groups, other)
				}
			}
		}
	}
	return key, groups
}

// domainValues returns the values of a topology key in the order of the nodes.
func domainValues(snap *state.Snapshot, key string, nodes []int32) (values []string) {
	if key == "" {
		return nil
	}
	seen := map[string]bool{}
	for _, pos := range nodes {
		if value, ok := snap.NodeAt(pos).Domain(key); ok && !seen[value] {
			seen[value] = true
			values = append(values, value)
		}
	}
	return values
}

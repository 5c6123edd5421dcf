package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// maxDomains is how many domains are tried for groups that stay together. Those with
// too little room do not count.
const maxDomains = 64

// placeTogether tries one domain after another for groups that stay together, such
// as in one rack: which of them has room for all of a gang the best node for the
// first instance does not tell, and going back on one node after another would try
// a rack as often as it has nodes.
func (g *gang) placeTogether() (placed bool, err error) {
	r := g.run
	defer func() { r.within = nil }()
	key, groups := g.together()
	tried := 0
	for _, value := range r.domains(key) {
		r.within = map[*model.Group]*domain{}
		for _, group := range groups {
			r.within[group] = &domain{key, value}
		}
		if !g.mayFit() {
			continue
		}
		if tried == maxDomains {
			break // the search goes on where it would have without
		}
		tried++
		if err := g.oneByOne(g.inOrder()); err != nil {
			return false, err
		}
		if r.out.Placed() {
			return true, nil
		}
		g.rollback()
		if placed, err := g.tryOrders(); placed || err != nil {
			return placed, err
		}
	}
	return false, nil
}

// together is the topology key by which groups of the gang stay together, and which
// groups those are; "" where there is none, or where it is the node.
func (g *gang) together() (key string, groups []*model.Group) {
	r := g.run
	for _, group := range r.job.Groups {
		for i := range group.Colocate {
			if t := &group.Colocate[i]; !local(t) && (key == "" || t.TopologyKey == key) {
				key = t.TopologyKey
				for _, other := range r.job.Groups {
					if (other == group || t.Matches(other.Labels)) && !slices.Contains(groups, other) {
						groups = append(groups, other)
					}
				}
			}
		}
	}
	return key, groups
}

// domains lists the values of a topology key, in the order of the nodes.
func (r *run) domains(key string) (values []string) {
	if key == "" {
		return nil
	}
	seen := map[string]bool{}
	for _, pos := range r.s.order.byRank {
		n := r.base.NodeAt(pos)
		if value, ok := n.Domain(key); ok && !seen[value] {
			seen[value] = true
			values = append(values, value)
		}
	}
	return values
}

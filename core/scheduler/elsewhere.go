package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
)

// maxElsewhere is how many allocations on other nodes an eviction may take along to
// make one node possible. Each keeps the group out by itself, so all of them have
// to go: there is nothing to search for, and more than these would be a high price.
const maxElsewhere = 64

// away is who keeps a group out of domains of several nodes by separation, from
// either side. It is made when it is first asked for, by whichever worker asks, and
// is good as long as nothing is placed or evicted.
type away struct {
	once     sync.Once
	byDomain map[domain][]*model.Allocation
	keys     []string // topology keys
}

// domain is a value of a topology key.
type domain struct{ key, value string }

// holds is whether a node is in the domain.
func (d *domain) holds(n *model.Node) bool {
	value, ok := n.Domain(d.key)
	return ok && value == d.value
}

// RemoteConflicts is the allocations on other nodes that have to leave before the group
// may go to a node, ascending by priority and id; false where their leaving would
// not help, or is not possible.
func (u *groupRules) RemoteConflicts(pos int32) ([]*model.Allocation, bool) {
	list, ok := u.keepers(pos)
	if !ok || len(list) > maxElsewhere {
		return nil, false
	}
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), strings.Compare(a.ID, b.ID))
	})
	return list, len(list) > 0
}

// TooMany is whether so many on other nodes keep the group off a node that nobody
// looked whether they may leave.
func (u *groupRules) TooMany(pos int32) bool {
	list, ok := u.keepers(pos)
	return ok && len(list) > maxElsewhere
}

// keepers is who keeps the group off a node from other nodes, at most one more than
// are looked at; false where it is not they alone, or some are of its own job.
func (u *groupRules) keepers(pos int32) (list []*model.Allocation, ok bool) {
	n := u.run.proposed.NodeAt(pos)
	if !u.spans || u.fixedBy(pos, n) != "" {
		return nil, false
	}
	u.away.once.Do(u.findAway)
	for _, key := range u.away.keys {
		value, ok := n.Domain(key)
		if !ok {
			continue
		}
		for _, a := range u.away.byDomain[domain{key, value}] {
			if a.NodePos == pos || slices.Contains(list, a) {
				continue
			}
			if a.Job.ID == u.group.Job.ID {
				return nil, false
			}
			if list = append(list, a); len(list) > maxElsewhere {
				return list, true
			}
		}
	}
	return list, true
}

// findAway looks at everything that the separation of the group is about.
func (u *groupRules) findAway() {
	w := u.away
	w.byDomain = map[domain][]*model.Allocation{}
	r := u.run
	r.eachLive(r.aboutSeparation(u.group, u.others), func(a *model.Allocation) {
		if a.Job.Namespace != u.group.Job.Namespace {
			return
		}
		w.add(r, a, u.group.Separate, a.Group.Labels)
		w.add(r, a, a.Group.Separate, u.group.Labels)
	})
}

// add notes an allocation in the domains that wide terms keep it and the group
// apart in: terms are of one side and labels of the other.
func (w *away) add(r *run, a *model.Allocation, terms []model.LabelTerm, labels map[string]string) {
	for i := range terms {
		t := &terms[i]
		node := r.proposed.NodeAt(a.NodePos)
		if local(t) || node == nil || !t.Matches(labels) {
			continue
		}
		value, ok := node.Domain(t.TopologyKey)
		if !ok {
			continue
		}
		if !slices.Contains(w.keys, t.TopologyKey) {
			w.keys = append(w.keys, t.TopologyKey)
		}
		at := domain{t.TopologyKey, value}
		w.byDomain[at] = append(w.byDomain[at], a)
	}
}

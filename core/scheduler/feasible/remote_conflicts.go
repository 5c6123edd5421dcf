package feasible

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
)

// MaxRemote is the maximum number of allocations on other nodes that are evicted
// to make one node possible. Each of them excludes the group by itself, so all
// have to be evicted: there is no choice to search, and more would cost too much.
const MaxRemote = 64

// remoteConflicts lists the allocations that exclude a group from domains of
// several nodes, from either side of anti-affinity. It is computed on first use,
// by any search worker, and is valid until something is placed or evicted.
type remoteConflicts struct {
	once     sync.Once
	byDomain map[domainKey][]*model.Allocation
	keys     []string // topology keys of byDomain
}

// RemoteConflicts returns the allocations on other nodes that have to be evicted before
// the group may be placed on a node, ascending by priority and ID. It returns
// false if their eviction does not suffice or is not possible. It is part of
// preempt.Rules.
func (r *Rules) RemoteConflicts(pos int32) ([]*model.Allocation, bool) {
	list, ok := r.conflicting(pos)
	if !ok || len(list) > MaxRemote {
		return nil, false
	}
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), strings.Compare(a.ID, b.ID))
	})
	return list, len(list) > 0
}

// ExceedsMaxRemote reports whether more than MaxRemote allocations on other nodes
// exclude the group from a node, so that their eviction was not considered.
func (r *Rules) ExceedsMaxRemote(pos int32) bool {
	list, ok := r.conflicting(pos)
	return ok && len(list) > MaxRemote
}

// conflicting returns the allocations on other nodes that exclude the group from a
// node, at most one more than MaxRemote. It returns false if something else
// excludes the group as well, or if one of them is of the group's own job.
func (r *Rules) conflicting(pos int32) (list []*model.Allocation, ok bool) {
	n := r.ctx.State.Snapshot().NodeAt(pos)
	if !r.spans || r.fixedViolation(pos, n) != "" {
		return nil, false
	}
	r.remote.once.Do(r.findRemoteConflicts)
	for _, key := range r.remote.keys {
		value, ok := n.Domain(key)
		if !ok {
			continue
		}
		for _, a := range r.remote.byDomain[domainKey{key, value}] {
			if a.NodePos == pos || slices.Contains(list, a) {
				continue
			}
			if a.Job.ID == r.group.Job.ID {
				return nil, false
			}
			if list = append(list, a); len(list) > MaxRemote {
				return list, true
			}
		}
	}
	return list, true
}

// findRemoteConflicts fills r.remote from all allocations that the group's
// anti-affinity concerns.
func (r *Rules) findRemoteConflicts() {
	r.remote.byDomain = map[domainKey][]*model.Allocation{}
	snap, g := r.ctx.State.Snapshot(), r.group
	eachLive(snap, r.ctx.concernedJobs(g, r.repellers), func(a *model.Allocation) {
		if a.Job.Namespace != g.Job.Namespace {
			return
		}
		node := snap.NodeAt(a.NodePos)
		r.remote.add(a, node, g.Separate, a.Group.Labels)
		r.remote.add(a, node, a.Group.Separate, g.Labels)
	})
}

// add records an allocation in the domain of each term of one side that matches the
// labels of the other side.
func (w *remoteConflicts) add(a *model.Allocation, node *model.Node, terms []model.LabelTerm, labels map[string]string) {
	for i := range terms {
		t := &terms[i]
		if IsNodeLocal(t) || node == nil || !t.Matches(labels) {
			continue
		}
		value, ok := node.Domain(t.TopologyKey)
		if !ok {
			continue
		}
		if !slices.Contains(w.keys, t.TopologyKey) {
			w.keys = append(w.keys, t.TopologyKey)
		}
		at := domainKey{t.TopologyKey, value}
		w.byDomain[at] = append(w.byDomain[at], a)
	}
}

// A domainKey identifies the nodes that share a value of a topology key.
type domainKey struct{ key, value string }

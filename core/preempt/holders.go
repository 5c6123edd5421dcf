package preempt

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
)

// holders knows on which nodes of a search the candidates of groups are that have
// victims in the plan. A list is made when the first of a group goes, from the
// allocations of its job, which are few beside what is on all nodes. It holds for
// the search: candidates only become fewer.
type holders struct {
	lists map[protect.GroupKey][]holder
	seen  []uint32 // by k: round in which the node was last met
	round uint32
}

// holder is a node with a candidate of a group.
type holder struct {
	k        int32 // position in Finder.req.Nodes
	priority int32 // of the candidate
}

func (h *holders) reset(nodes int) {
	clear(h.lists)
	h.seen, h.round = zeroed(h.seen, nodes), 0
}

// holdersOf lists the nodes with candidates of a group, of whatever version, once
// for each of them.
func (f *Finder) holdersOf(g *model.Group, ceiling int64) []holder {
	key := protect.KeyOf(g)
	if list, known := f.holders.lists[key]; known {
		return list
	}
	var list []holder
	f.allocs = f.snap.AppendJobAllocs(f.allocs[:0], key.Job)
	for _, a := range f.allocs {
		if !a.Live() || a.Group.Name != g.Name || int64(a.Job.Priority) > ceiling {
			continue
		}
		if k, ok := f.slot(a.NodePos); ok {
			list = append(list, holder{k, a.Job.Priority})
		}
	}
	if f.holders.lists == nil {
		f.holders.lists = map[protect.GroupKey][]holder{}
	}
	f.holders.lists[key] = list
	return list
}

// queueHolders queues the nodes where the policy was shown a candidate of these
// groups: its count of evictions has changed.
func (f *Finder) queueHolders(w *searcher, evicted []*model.Group) {
	f.holders.round++
	for _, g := range evicted {
		for _, h := range f.holdersOf(g, w.ceiling) {
			if seen := &f.holders.seen[h.k]; *seen != f.holders.round && f.minds(w, h) {
				*seen = f.holders.round
				w.queue(int(h.k))
			}
		}
	}
}

// minds is whether the count of evictions of somebody at h may change what the
// policy says of the node.
func (f *Finder) minds(w *searcher, h holder) bool {
	return w.delta != nil || f.asked(h.k) && h.priority <= f.reach[h.k]
}

// asked is whether the policy chose victims on the node at k, declined to, or may
// have chosen some that budgets keep. Elsewhere the group does not fit whatever it
// says, as long as it has no say in who is a candidate.
func (f *Finder) asked(k int32) bool {
	return f.why[k] == Possible || f.why[k] == Declined || f.why[k] == Protected
}

package worker

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// maxOffers is how many pairs of a node and a blocked evaluation Restore offers before it is
// cheaper to unblock all evaluations.
const maxOffers = 20_000_000

// Restore fills an empty broker with the pending and blocked evaluations of the state, in
// the order in which they were created.
//
// The state does not hold which changes a blocked evaluation has seen: the leader before may
// have applied a change and stopped before it unblocked anything. So every node is offered
// at its last change that may have freed capacity, to evaluations whose snapshot is older.
// Those that have seen it stay blocked, as on a server that never lost leadership. changed
// is the index of the last change that may unblock any evaluation, such as of a policy.
// Evaluations for which skip returns true are omitted; nil omits none.
func (f *Feed) Restore(snap *state.Snapshot, now int64, changed uint64, skip func(*model.Evaluation) bool) {
	f.colocating, f.deferred, f.slacks = nil, nil, nil
	var pending, blocked []*model.Evaluation
	for e := range snap.Evals() {
		if skip != nil && skip(e) {
			continue
		}
		switch e.Status {
		case model.EvalPending:
			pending = append(pending, e)
		case model.EvalBlocked:
			blocked = append(blocked, e)
		}
	}
	for _, list := range [][]*model.Evaluation{pending, blocked} {
		slices.SortStableFunc(list, func(a, b *model.Evaluation) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
		f.Evals(snap, now, list...)
	}
	f.UnblockAll(changed)
	f.offerAll(snap, now)
	f.Budgets(snap, now)
}

// UnblockAll unblocks evaluations if their snapshot is older than index, at which a change
// was made that may unblock any evaluation. Index 0 means that there was none.
func (f *Feed) UnblockAll(index uint64) {
	if index > 0 {
		f.Blocked.UnblockAll(index)
	}
}

// WeightsChanged is UnblockAll for a change of the weights of namespaces. It unblocks
// nothing if no active policy reads them.
func (f *Feed) WeightsChanged(index uint64) {
	if index == 0 {
		return
	}
	policies := f.Policies.Pin()
	defer policies.Unpin()
	if slices.ContainsFunc(policies.Versions(), (*policy.Version).ReadsWeights) {
		f.UnblockAll(index)
	}
}

// offerAll offers every node and member cluster at its last change.
func (f *Feed) offerAll(snap *state.Snapshot, now int64) {
	blocked := f.Blocked.Len()
	switch {
	case blocked == 0:
	case blocked*snap.NodeCount() > maxOffers:
		f.UnblockAll(snap.Index())
	default:
		nodes := snap.CohortChangeIndexes()
		for n := range snap.Nodes() {
			nodes[n.ID] = max(nodes[n.ID], 0)
		}
		for c := range snap.Clusters() {
			nodes[model.ClusterLocation(c.ID)] = 0
		}
		f.offer(snap, now, nodes)
	}
}

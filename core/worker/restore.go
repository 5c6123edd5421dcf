package worker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// askEach is how many questions (nodes times waiting evaluations) Restore may
// ask before it is cheaper to wake everybody.
const askEach = 20_000_000

// Restore fills an empty broker, and those that wait, with what the state says
// is pending or blocked, in the order in which it came.
//
// What waits may have missed room: the server that led before applied a change
// and went away before it woke anybody. So every node is offered as of the last
// change that may have made room there, to those who looked before it; who has seen it stays asleep, as on a
// server that never lost the lead. changed is the index of the last change that
// may make room for anybody, such as of the policies.
func (f *Feed) Restore(snap *state.Snapshot, now int64, changed uint64) {
	f.beside, f.owed = nil, nil
	f.needs, f.slacks = nil, nil
	var pending, blocked []*model.Evaluation
	for e := range snap.Evals() {
		switch e.Status {
		case model.EvalPending:
			pending = append(pending, e)
		case model.EvalBlocked:
			blocked = append(blocked, e)
		}
	}
	for _, list := range [][]*model.Evaluation{pending, blocked} {
		slices.SortStableFunc(list, byAge)
		f.Evals(snap, now, list...)
	}
	f.UnblockAll(changed)
	f.offerAll(snap, now)
	f.Budgets(snap, now)
}

func byAge(a, b *model.Evaluation) int {
	if a.CreateIndex < b.CreateIndex {
		return -1
	}
	if a.CreateIndex > b.CreateIndex {
		return 1
	}
	return 0
}

// Changed wakes whoever looked before index: at it something changed that may
// make room for anybody.
func (f *Feed) UnblockAll(index uint64) {
	if index > 0 {
		f.Blocked.UnblockAll(index)
	}
}

func (f *Feed) offerAll(snap *state.Snapshot, now int64) {
	waiting := f.Blocked.Len()
	switch {
	case waiting == 0:
	case waiting*snap.NodeCount() > askEach:
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

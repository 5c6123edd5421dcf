package worker

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/state"
)

// A Feed passes the changes of the state on to the broker and the blocked evaluations. It
// is used by one goroutine, in the order of the log.
type Feed struct {
	Broker   *broker.Broker
	Blocked  *broker.Blocked
	Policies scheduler.Policies // the active policies, or a set that never changes

	// colocating holds the jobs with co-location terms and evaluations that are not final.
	colocating map[model.JobKey]struct{}
	// deferred holds nodes with free capacity that was offered to some blocked evaluations
	// before others, with the index of the change that freed it.
	deferred map[string]uint64
	// slacks holds the disruptions that budgets allowed at the last call of Budgets; nil
	// before the first.
	slacks map[model.BudgetKey]slack
}

var _ broker.UnblockFilter = (*unblock.Filter)(nil)

// Evals passes on evaluations as they were applied at snap. It returns blocked evaluations
// that have become needless, because everything of their job is placed. The caller writes
// them.
//
// All of them are one batch of the broker: evaluations of one log entry are delivered by
// priority, so that none is placed where another one of the same entry evicts it at once.
func (f *Feed) Evals(snap *state.Snapshot, now int64, evals ...*model.Evaluation) (needless []*model.Evaluation) {
	if len(evals) == 0 {
		return nil
	}
	broker.Batch(f.Broker, func() {
		for _, e := range evals {
			needless = append(needless, f.eval(snap, now, e)...)
		}
	})
	return needless
}

// eval passes on one evaluation.
func (f *Feed) eval(snap *state.Snapshot, now int64, e *model.Evaluation) (needless []*model.Evaluation) {
	f.trackColocation(snap, e)
	switch {
	case e.Status == model.EvalPending:
		f.Broker.Enqueue(e)
	case e.Status == model.EvalBlocked:
		f.block(snap, now, e)
	case e.Status == model.EvalComplete && len(e.Failed) == 0:
		for _, blocked := range f.Blocked.Untrack(e.JobKey()) {
			if blocked.ID != e.ID {
				needless = append(needless, Cancelled(blocked, e.ID, now))
			}
		}
	case e.Status == model.EvalFailed || e.Status == model.EvalCancelled:
		f.Broker.Remove(e.ID)
		f.Blocked.Remove(e.ID)
	}
	return needless
}

// trackColocation records whether the job of an evaluation may have to be evaluated again
// after placements. An evaluation that is being processed counts as well: it does not see
// placements that are committed after its snapshot, including those of its own plan, which
// groups of the job may have to be near.
func (f *Feed) trackColocation(snap *state.Snapshot, e *model.Evaluation) {
	key := e.JobKey()
	switch _, tracked := f.colocating[key]; {
	case !e.Status.Final() && !tracked && colocates(snap.Job(key)):
		if f.colocating == nil {
			f.colocating = map[model.JobKey]struct{}{}
		}
		f.colocating[key] = struct{}{}
	case e.Status.Final() && tracked && len(snap.PendingEvals(key)) == 0:
		delete(f.colocating, key)
	}
}

func (f *Feed) block(snap *state.Snapshot, now int64, e *model.Evaluation) {
	filter := f.filter(snap, now)
	defer filter.Policies.Unpin()
	f.Blocked.Block(e, filter)
}

// Cancelled returns an evaluation as cancelled because another one, by, covers it. Its text
// is short: a storm writes it fifty thousand times.
func Cancelled(e *model.Evaluation, by string, now int64) *model.Evaluation {
	c := *e
	c.Status, c.SupersededBy, c.ModifyTime = model.EvalCancelled, by, now
	c.StatusText = "a newer evaluation covers it"
	return &c
}

// colocates reports whether a group of the job has co-location terms.
func colocates(j *model.Job) bool {
	return j != nil && j.Colocates()
}

// Placed unblocks evaluations with co-location terms that the placements on nodes at snap
// may satisfy. Placements free no capacity, so no others are unblocked.
func (f *Feed) Placed(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if len(f.colocating) > 0 {
		f.Freed(snap, now, nodeIDs...)
	}
}

// Freed unblocks evaluations that may use capacity which became free at snap on nodes, or on
// the locations of member clusters. Nodes that ceased to be eligible or to exist unblock those
// with rules that concern several nodes.
func (f *Feed) Freed(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if f.Blocked.Len() == 0 {
		// An evaluation that is being processed may become blocked, and must see the change.
		for _, id := range nodeIDs {
			f.unblock(snap, id, snap.Index(), nil)
		}
		return
	}
	filter := f.filter(snap, now)
	defer filter.Policies.Unpin()
	for _, id := range nodeIDs {
		f.unblock(snap, id, snap.Index(), filter)
	}
	f.addDeferred(filter, func(string) uint64 { return snap.Index() })
}

// addDeferred stores the nodes for which a filter deferred evaluations, and the indexes at
// which they were offered.
func (f *Feed) addDeferred(filter *unblock.Filter, offeredAt func(nodeID string) uint64) {
	if f.deferred == nil && len(filter.Deferred) > 0 {
		f.deferred = make(map[string]uint64, len(filter.Deferred))
	}
	for id := range filter.Deferred {
		f.deferred[id] = max(f.deferred[id], offeredAt(id))
	}
}

// RetryDeferred offers nodes again to evaluations that were deferred because the capacity
// was offered to others, and reports whether it unblocked any. It is called when nothing is
// ready any more: those that were unblocked first have been processed, and have used the
// capacity or not.
func (f *Feed) RetryDeferred(snap *state.Snapshot, now int64) (unblocked bool) {
	for len(f.deferred) > 0 && !unblocked {
		deferred := f.deferred
		f.deferred = nil
		unblocked = f.offer(snap, now, deferred)
	}
	return unblocked
}

// HasDeferred reports whether RetryDeferred has anything to offer.
func (f *Feed) HasDeferred() bool { return len(f.deferred) > 0 }

// offer offers nodes to blocked evaluations, at the index of the last change of each node
// or the index given with it, if that is later: capacity may become usable without a change
// of the node.
func (f *Feed) offer(snap *state.Snapshot, now int64, nodes map[string]uint64) (unblocked bool) {
	filter := f.filter(snap, now)
	defer filter.Policies.Unpin()
	offeredAt := func(id string) uint64 { return max(nodes[id], changeIndex(snap, id)) }
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		unblocked = f.unblock(snap, id, offeredAt(id), filter) || unblocked
	}
	if unblocked {
		f.addDeferred(filter, offeredAt)
	}
	return unblocked
}

// changeIndex returns the index of the last change of a node or a member cluster.
func changeIndex(snap *state.Snapshot, id string) uint64 {
	if cluster, ok := model.ParseClusterLocation(id); ok {
		return snap.ClusterChangeIndex(cluster)
	}
	pos, ok := snap.Position(id)
	if !ok {
		return 0
	}
	return snap.Chunk(int(pos) / state.ChunkSize).ModifyIndex(int(pos) % state.ChunkSize)
}

// unblock offers a node or a member cluster, and reports whether that unblocked any
// evaluation.
func (f *Feed) unblock(snap *state.Snapshot, nodeID string, index uint64, filter broker.UnblockFilter) bool {
	if id, ok := model.ParseClusterLocation(nodeID); ok { // bindings do not depend on classes of nodes
		return snap.Cluster(id) != nil && len(f.Blocked.Unblock(0, nodeID, index, filter)) > 0
	}
	class := uint64(0) // of a node that was removed: of no class
	if node := snap.Node(nodeID); node != nil {
		class = node.ClassKey
	}
	return len(f.Blocked.Unblock(class, nodeID, index, filter)) > 0
}

// filter returns a filter with the active policies, which the caller unpins.
func (f *Feed) filter(snap *state.Snapshot, now int64) *unblock.Filter {
	return &unblock.Filter{Snap: snap, Policies: f.Policies.Pin(), Now: now}
}

// Reap returns up to one batch of evaluations that the broker has cancelled. The caller
// writes them.
func (f *Feed) Reap(now int64) []*model.Evaluation {
	var cancelled []*model.Evaluation
	for _, list := range [][]*broker.Cancellation{f.Broker.PopCancelable(0), f.Blocked.PopDuplicates(0)} {
		for _, c := range list {
			cancelled = append(cancelled, Cancelled(c.Eval, c.SupersededBy, now))
		}
	}
	return cancelled
}

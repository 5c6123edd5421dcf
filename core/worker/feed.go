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

// Feed gives the broker and the waiting evaluations what was applied to the
// state.
type Feed struct {
	Broker   *broker.Broker
	Blocked  *broker.Blocked
	Policies scheduler.Policies // the set in force, or one that never changes

	// beside is the jobs that wait for room and have co-location terms.
	beside map[model.JobKey]struct{}
	// owed is nodes whose room was handed out before everybody was asked, and the
	// index of the change that made it.
	owed map[string]uint64
	// needs is what the evaluations that wait need, as screens found it.
	needs unblock.DemandCache
	// slacks is what budgets had left when Budgets was last called.
	slacks map[model.BudgetKey]slack
}

var _ broker.UnblockFilter = (*unblock.Filter)(nil)

// Evals takes evaluations as they were applied at snap, and returns those that
// thereby became needless: a job of which everything is placed waits for
// nothing. The caller writes their end.
func (f *Feed) Evals(snap *state.Snapshot, now int64, evals ...*model.Evaluation) (needless []*model.Evaluation) {
	for _, e := range evals {
		switch {
		case e.Status == model.EvalPending:
			f.Broker.Enqueue(e)
		case e.Status == model.EvalBlocked:
			if key := e.JobKey(); colocates(snap.Job(key)) {
				if f.beside == nil {
					f.beside = map[model.JobKey]struct{}{}
				}
				f.beside[key] = struct{}{}
			}
			f.block(snap, now, e)
		case e.Status == model.EvalComplete && len(e.Failed) == 0:
			delete(f.beside, e.JobKey())
			for _, waiting := range f.Blocked.Untrack(e.JobKey()) {
				if waiting.ID != e.ID {
					needless = append(needless, Cancelled(waiting, e.ID, now))
				}
			}
		case e.Status == model.EvalFailed || e.Status == model.EvalCancelled:
			f.Broker.Remove(e.ID)
			f.Blocked.Remove(e.ID)
		}
	}
	return needless
}

func (f *Feed) block(snap *state.Snapshot, now int64, e *model.Evaluation) {
	screen := f.screen(snap, now)
	defer screen.Policies.Unpin()
	f.Blocked.Block(e, screen)
}

// Cancelled is the end of an evaluation that another one, by, covers. Its text is
// short: in a storm it is written fifty thousand times.
func Cancelled(e *model.Evaluation, by string, now int64) *model.Evaluation {
	c := *e
	c.Status, c.SupersededBy, c.ModifyTime = model.EvalCancelled, by, now
	c.StatusText = "a newer evaluation covers it"
	return &c
}

// colocates is whether the job waits to be beside something.
func colocates(j *model.Job) bool {
	return j != nil && slices.ContainsFunc(j.Groups, func(g *model.Group) bool { return len(g.Colocate) > 0 })
}

// Placed wakes evaluations that wait to be beside what was placed on nodes at
// snap. Placements make no room, so nobody else is woken.
func (f *Feed) Placed(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if len(f.beside) > 0 {
		f.Freed(snap, now, nodeIDs...)
	}
}

// Room wakes the evaluations that may use room that came up at snap on nodes, or
// on what model.ClusterPlace names.
func (f *Feed) Freed(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if f.Blocked.Len() == 0 {
		// Nobody waits, but one that is being computed may be about to.
		for _, id := range nodeIDs {
			f.unblock(snap, id, snap.Index(), nil)
		}
		return
	}
	screen := f.screen(snap, now)
	defer screen.Policies.Unpin()
	for _, id := range nodeIDs {
		f.unblock(snap, id, snap.Index(), screen)
	}
	f.owe(screen, func(string) uint64 { return snap.Index() })
}

// owe notes the nodes about which a screen owes somebody an answer, and the indexes
// at which they were offered.
func (f *Feed) owe(screen *unblock.Filter, offered func(nodeID string) uint64) {
	if f.owed == nil && len(screen.Deferred) > 0 {
		f.owed = make(map[string]uint64, len(screen.Deferred))
	}
	for id := range screen.Deferred {
		f.owed[id] = max(f.owed[id], offered(id))
	}
}

// Settle asks those again who were turned away because the room of a node had
// been handed out, and tells whether that woke anybody. It is called when
// nothing is ready any more: whoever was woken first has had its turn, and has
// taken the room or gone elsewhere.
func (f *Feed) RetryDeferred(snap *state.Snapshot, now int64) (woke bool) {
	for len(f.owed) > 0 && !woke {
		owed := f.owed
		f.owed = nil
		woke = f.offer(snap, now, owed)
	}
	return woke
}

// Owes is whether Settle has anybody to ask.
func (f *Feed) HasDeferred() bool { return len(f.owed) > 0 }

// offer asks those who wait about nodes, as of the last change of each or the index
// given with it, if that is later: what makes room need not happen on the node.
func (f *Feed) offer(snap *state.Snapshot, now int64, nodes map[string]uint64) (woke bool) {
	screen := f.screen(snap, now)
	defer screen.Policies.Unpin()
	offered := func(id string) uint64 { return max(nodes[id], changedAt(snap, id)) }
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		woke = f.unblock(snap, id, offered(id), screen) || woke
	}
	if woke {
		f.owe(screen, offered)
	}
	return woke
}

// changedAt is the index of the last change on a place.
func changedAt(snap *state.Snapshot, id string) uint64 {
	if cluster, ok := model.ParseClusterLocation(id); ok {
		return snap.ClusterChangeIndex(cluster)
	}
	pos, ok := snap.Position(id)
	if !ok {
		return 0
	}
	return snap.Chunk(int(pos) / state.ChunkSize).ModifyIndex(int(pos) % state.ChunkSize)
}

func (f *Feed) unblock(snap *state.Snapshot, nodeID string, index uint64, screen broker.UnblockFilter) (woke bool) {
	if id, ok := model.ParseClusterLocation(nodeID); ok { // no class of nodes takes bindings
		return snap.Cluster(id) != nil && len(f.Blocked.Unblock(0, nodeID, index, screen)) > 0
	}
	node := snap.Node(nodeID)
	return node != nil && len(f.Blocked.Unblock(node.ClassKey, nodeID, index, screen)) > 0
}

// screen judges by the policies in force; the caller unpins them.
func (f *Feed) screen(snap *state.Snapshot, now int64) *unblock.Filter {
	if f.needs == nil {
		f.needs = unblock.DemandCache{}
	}
	return &unblock.Filter{Snap: snap, Policies: f.Policies.Pin(), Now: now, Cache: f.needs}
}

// Reap returns the ends of evaluations that the broker no longer needs, at most
// a batch; the caller writes them.
func (f *Feed) Reap(now int64) []*model.Evaluation {
	var ends []*model.Evaluation
	for _, list := range [][]*broker.Cancellation{f.Broker.PopCancelable(0), f.Blocked.PopDuplicates(0)} {
		for _, c := range list {
			ends = append(ends, Cancelled(c.Eval, c.SupersededBy, now))
		}
	}
	return ends
}

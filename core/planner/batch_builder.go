package planner

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A batchBuilder collects the plans that are verified for one batch.
type batchBuilder struct {
	// base is the newest committed state when the batch was started. branch is base
	// with the batch in flight and the first applied plans of this batch, or nil
	// while base itself suffices.
	base     *state.Snapshot
	inflight *apply.Batch
	branch   *state.Txn
	view     *state.Snapshot // snapshot of branch; nil if out of date
	// applied is the number of items whose plans branch includes.
	applied int

	// changes counts the objects that the items commit, for Config.MaxChanges. now is
	// the latest time at which an item was verified, in Unix nanoseconds. The log entry
	// carries it, so that every server applies the batch at the same time.
	items   []item
	changes int
	now     int64
}

// An item is one plan of a batch.
type item struct {
	pending      *PendingPlan
	verification Verification
}

// newBatch starts a batch behind one that is about to be written, or nil if there
// is none.
func (a *Applier) newBatch(flying *apply.Batch) batchBuilder {
	return batchBuilder{base: a.cfg.Store.Snapshot(), inflight: flying}
}

// verify verifies one plan on top of those of the batch. A malformed plan is answered
// at once and does not join it.
//
// The batch is applied at the time of its last plan. Plans that were verified at an
// earlier time still hold then, because time only permits more: claims expire,
// evictions leave the window of a budget, and preemption tolerations end. A rule that
// becomes stricter with time would break this.
func (a *Applier) verify(r *batchBuilder, p *PendingPlan) {
	r.now = max(r.now, a.now(p.plan))
	from := a.verifyStart()
	verdict, err := Verify(r.current(), p.plan, r.now, a.cfg.PlacementVerifier, &a.scratch)
	a.observeVerify(from)
	a.stats.add(func(s *Stats) { s.Nodes += uint64(verdict.Nodes) })
	if err != nil {
		a.stats.add(func(s *Stats) { s.Malformed++ })
		a.queue.respond(p, nil, err)
		return
	}
	r.items = append(r.items, item{p, verdict})
	r.changes += changesOf(&verdict)
}

// verifyStart returns the zero time if verifications are not measured, so that a
// simulator without a clock pays nothing.
func (a *Applier) verifyStart() (from time.Time) {
	if a.cfg.OnVerified != nil && a.cfg.Clock != nil {
		from = a.cfg.Clock.Now()
	}
	return from
}

func (a *Applier) observeVerify(from time.Time) {
	if !from.IsZero() {
		a.cfg.OnVerified(a.cfg.Clock.Now().Sub(from))
	}
}

// now returns the time of the clock, or of the plan if there is no clock.
func (a *Applier) now(plan *model.Plan) int64 {
	if a.cfg.Clock == nil {
		return plan.Now
	}
	return a.cfg.Clock.Now().UnixNano()
}

// changesOf returns the number of objects that the accepted groups write: the size of
// the log entry is roughly proportional to it.
func changesOf(v *Verification) int {
	n := 0
	for _, i := range v.Committed {
		g := &v.Plan.Groups[i]
		n += len(g.Placements) + len(g.Updates) + len(g.Stops) + len(g.Evictions) + len(g.Claims) +
			len(g.Assignments) + len(g.Withdrawals) + len(g.ReleasedClaims)
	}
	return n
}

// current returns the state with the batch in flight and this batch so far. It creates
// no branch for the first plan of a batch if nothing is in flight. A batch costs one
// fork, and each plan is applied to it once.
func (r *batchBuilder) current() *state.Snapshot {
	if r.inflight == nil && len(r.items) == 0 {
		return r.base
	}
	if r.branch == nil {
		r.branch = r.base.Fork(r.base.Index() + 1)
		if r.inflight != nil {
			// Groups that are dropped here are ignored: if the write drops them as
			// well, it reports that it diverged, and this branch is discarded.
			r.inflight.Apply(r.branch)
		}
	}
	for ; r.applied < len(r.items); r.applied++ {
		v := &r.items[r.applied].verification
		// The time of the batch grows while it is filled, so the branch may differ from
		// the entry in timestamps, which no check reads.
		if len(v.Committed) > 0 {
			apply.Plan(r.branch, r.now, v.Plan, v.Committed)
			r.view = nil
		}
	}
	if r.view == nil {
		r.view = r.branch.Snapshot()
	}
	return r.view
}

// seal returns the batch of the groups that hold, or nil if there is nothing to write.
// Nothing is in flight, so the verifications are final. It also counts rejections by
// node. Rejections of a part of a group do not count: two workers that compete for the
// rest of a node do so in a healthy cluster.
func (a *Applier) seal(r *batchBuilder) *apply.Batch {
	batch := &apply.Batch{Now: r.now}
	for i := range r.items {
		v := &r.items[i].verification
		if !v.Empty() {
			batch.Plans = append(batch.Plans, apply.BatchPlan{Plan: v.Plan, Groups: v.Committed})
		}
		for k, cause := range v.Causes {
			node := v.Rejected[k].NodeID
			if _, cluster := model.ParseClusterLocation(node); cluster {
				continue // a cluster is never marked: its own scheduler decides
			}
			if cause.ofNode() && v.Rejected[k].Places == nil && a.tracker.reject(node, r.now) {
				batch.Ineligible = append(batch.Ineligible, node)
			}
		}
	}
	slices.Sort(batch.Ineligible)
	if len(batch.Plans) == 0 && len(batch.Ineligible) == 0 {
		return nil
	}
	return batch
}

package planner

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// round is the plans that are checked for one batch.
type round struct {
	// base is the newest committed state when the round began; branch is base
	// with the batch in flight and the first so many plans of this round
	// (applied), or nil as long as base itself will do.
	base    *state.Snapshot
	flying  *apply.Batch
	branch  *state.Txn
	view    *state.Snapshot // branch, as plans are checked on it; nil: out of date
	applied int

	works   []work
	changes int
	now     int64
}

// work is one plan of a round.
type work struct {
	pending *PendingPlan
	verdict Verification
}

// newRound begins a round behind a batch that is about to be written; nil:
// there is none.
func (a *Applier) newRound(flying *apply.Batch) round {
	return round{base: a.cfg.Store.Snapshot(), flying: flying}
}

// verify checks one plan behind those of the round.
func (a *Applier) verify(r *round, p *PendingPlan) {
	r.now = max(r.now, a.now(p.plan))
	from := a.began()
	verdict, err := Verify(r.current(), p.plan, r.now, a.cfg.PlacementVerifier, &a.scratch)
	a.verified(from)
	a.stats.add(func(s *Stats) { s.Nodes += uint64(verdict.Nodes) })
	if err != nil {
		a.stats.add(func(s *Stats) { s.Malformed++ })
		a.queue.answer(p, nil, err)
		return
	}
	r.works = append(r.works, work{p, verdict})
	r.changes += changesOf(&verdict)
}

func (a *Applier) began() (from time.Time) {
	if a.cfg.OnVerified != nil && a.cfg.Clock != nil {
		from = a.cfg.Clock.Now()
	}
	return from
}

func (a *Applier) verified(from time.Time) {
	if !from.IsZero() {
		a.cfg.OnVerified(a.cfg.Clock.Now().Sub(from))
	}
}

// now is the clock's time, or the plan's where there is no clock.
func (a *Applier) now(plan *model.Plan) int64 {
	if a.cfg.Clock == nil {
		return plan.Now
	}
	return a.cfg.Clock.Now().UnixNano()
}

func changesOf(v *Verification) int {
	n := 0
	for _, i := range v.Committed {
		g := &v.Plan.Groups[i]
		n += len(g.Placements) + len(g.Updates) + len(g.Stops) + len(g.Evictions) + len(g.Claims) +
			len(g.Assignments) + len(g.Withdrawals) + len(g.ReleasedClaims)
	}
	return n
}

// current is the state with the batch in flight and the round so far. Nothing
// is branched for a round of one plan with nothing in flight.
func (r *round) current() *state.Snapshot {
	if r.flying == nil && len(r.works) == 0 {
		return r.base
	}
	if r.branch == nil {
		r.branch = r.base.Fork(r.base.Index() + 1)
		if r.flying != nil {
			r.flying.Apply(r.branch)
		}
	}
	for ; r.applied < len(r.works); r.applied++ {
		v := &r.works[r.applied].verdict
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

// seal makes a batch of what holds; nil when there is nothing to write.
// Nothing is in flight, so the verdicts are final.
func (a *Applier) seal(r *round) *apply.Batch {
	batch := &apply.Batch{Now: r.now}
	for i := range r.works {
		v := &r.works[i].verdict
		if !v.Empty() {
			batch.Plans = append(batch.Plans, apply.BatchPlan{Plan: v.Plan, Groups: v.Committed})
		}
		for k, cause := range v.Causes {
			node := v.Rejected[k].NodeID
			if _, cluster := model.ParseClusterLocation(node); cluster {
				continue // what rejects there is its own scheduler
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

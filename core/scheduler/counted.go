package scheduler

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// processCounted plans a service or batch job.
func (r *run) processCounted() error {
	r.stopForeign()
	r.moving = r.nodesChange()
	wants := make([][]want, len(r.job.Groups))
	for i, g := range r.job.Groups {
		wants[i] = r.reconcile(g)
	}
	r.freeLost()
	if r.job.AllAtOnce {
		if r.waitsToRetry() {
			wants = onlyReplaced(wants)
		}
		return r.placeGang(wants)
	}
	for i, g := range r.job.Groups {
		if err := r.placeGroup(g, wants[i]); err != nil {
			return err
		}
	}
	return nil
}

// waitsToRetry is whether some instance waits because it failed.
func (r *run) waitsToRetry() bool {
	for _, at := range r.retries {
		if at > r.now {
			return true
		}
	}
	return false
}

// onlyReplaced leaves out what nothing runs of: while a part of a gang waits, so do the
// others that are missing, as they are to be placed together.
func onlyReplaced(wants [][]want) [][]want {
	for i, list := range wants {
		wants[i] = slices.DeleteFunc(slices.Clone(list), func(w want) bool { return w.replaces == nil })
	}
	return wants
}

// freeLost takes what the plan already stops off the proposed state, so that
// its room may be used.
func (r *run) freeLost() {
	var stopped []*model.Allocation
	for i := range r.plan.list {
		for _, s := range r.plan.list[i].Stops {
			stopped = append(stopped, r.proposed.Alloc(s.AllocID))
		}
	}
	if len(stopped) > 0 {
		r.propose(nil, stopped, model.DesiredStop)
	}
}

// propose makes the state as it will be once the placements are there and the
// allocations gone. It may be kept.
func (r *run) propose(place, gone []*model.Allocation, desired model.DesiredStatus) {
	r.stopped = r.stopped || desired == model.DesiredStop
	txn := r.proposed.Fork(r.proposed.Index() + 1)
	for _, a := range gone {
		left := *a
		left.Desired, left.EndTime = desired, r.now
		txn.UpsertAllocs(&left)
	}
	for _, a := range place {
		came := *a
		txn.UpsertAllocs(&came)
	}
	r.proposed, r.draft = txn.Snapshot(), nil
}

// proposeOne is propose for a placement that nobody leaves for, which nearly all are.
// A branch for each would copy what it touches again and again, so they share one,
// and the state as proposed is good until the next: see keep.
func (r *run) proposeOne(a *model.Allocation) {
	if r.draft == nil {
		r.draft = r.proposed.Fork(r.proposed.Index() + 1)
	}
	came := *a
	r.draft.UpsertAllocs(&came)
	r.proposed = r.draft.Draft()
}

// keep is the state as proposed for whoever needs it to stay as it is.
func (r *run) keep() *stateSnapshot {
	r.draft = nil // what it made stays, as nobody writes to it any more
	return r.proposed
}

// placeGroup places what is missing of one group. After the first instance that
// finds no place the others are not tried: they ask for the same. Replacements
// are, since each frees room of its own.
func (r *run) placeGroup(g *model.Group, wants []want) error {
	if len(wants) == 0 {
		return nil
	}
	rules := r.newRules(g)
	if !slices.ContainsFunc(wants, func(w want) bool { return w.replaces != nil }) {
		if f, hopeless := r.stillHopeless(g, rules); hopeless {
			r.alsoUnblock(&f)
			why := *f.why
			why.Waiting = len(wants) - 1
			r.fail(g, len(wants), &why)
			return nil
		}
	}
	p := r.newPlacer(g, rules)
	p.waits = slices.MinFunc(wants, func(a, b want) int { return cmp.Compare(a.since, b.since) }).since
	defer p.close()
	if p.rules.binds() && r.plan.bound == "" {
		r.plan.bound = "topology " + g.Name
		defer func() { r.plan.bound = "" }()
	}
	failed := 0
	for i, w := range wants {
		if failed > 0 && w.replaces == nil {
			failed++
			continue
		}
		ok, err := p.place(w, i+1 < len(wants))
		if err != nil {
			return err
		}
		if !ok && w.replaces == nil {
			failed++
		}
		if !ok && w.replaces != nil {
			r.fail(g, 1, p.explain())
		}
	}
	if failed > 0 {
		why := p.explain()
		why.Waiting = failed - 1
		r.fail(g, failed, why)
	}
	p.remember(failed > 0)
	return nil
}

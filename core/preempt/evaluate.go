package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// evaluate evaluates the node at slot afresh: it lays out its options for the next call,
// or finds that none can be feasible. Checks are ordered by cost: most nodes of a full
// cluster are dismissed by the priority of their first row or by reclaimable.
func (w *worker) evaluate(slot int32) {
	s := w.s
	for i := s.first[slot]; i < s.first[slot+1]; i++ {
		s.options[i].feasible = false
	}
	pos := s.req.Nodes[slot]
	chunk, i := s.scope.Snap.Chunk(int(pos)/state.ChunkSize), pos%state.ChunkSize
	s.outcomes[slot], s.reach[slot] = NoCandidates, math.MinInt32
	if int64(chunk.MinPriority(int(i))) > s.scope.Ceiling && !s.traits.remote || chunk.Eligible()>>i&1 == 0 {
		return
	}
	if s.isInfeasible(chunk, i, pos) {
		s.outcomes[slot] = Insufficient
		return
	}
	e := columns.Entry{Node: fit.Node{Chunk: chunk, Index: i, Rows: chunk.Rows(int(i))}, Pos: pos, Slot: slot}
	if s.scope.Strict {
		s.scope.Blocking[slot] = 0
	}
	if s.req.Rules != nil && !s.req.Rules.Allows(pos) && !s.findRemote(&w.guard, &e, pos) {
		s.outcomes[slot] = s.missedOutcome(slot, NoCandidates)
		return
	}
	if chunk.HasClaims()>>i&1 == 1 {
		e.Claimed = s.claimedCapacity(pos)
	}
	e.Guarded = w.guard.IsGuarded(&e.Node) || e.Limits != nil
	e.HasSeparation = s.traits.separation && s.req.Rules.HasSeparatedRows(pos)
	e.AmountsOnly = s.traits.simpleAsk && !e.HasSeparation && e.Limits == nil
	if s.traits.fast && e.AmountsOnly && !e.Guarded &&
		(!s.traits.budgetsFirst || !s.scope.Budgets.MayOverrun(e.Rows, s.scope.Ceiling, &w.verify.charged)) {
		w.evaluateFast(&e)
		return
	}
	w.evaluateFully(&e)
}

// evaluateFully collects the candidates of a node, and lays out its options.
func (w *worker) evaluateFully(e *columns.Entry) {
	s := w.s
	if s.isShort(&e.Node) {
		s.outcomes[e.Slot] = Insufficient
		return
	}
	w.candidates.collect(s, &w.guard, e)
	if len(w.candidates.rows) == 0 {
		s.outcomes[e.Slot] = s.missedOutcome(e.Slot, NoCandidates)
		return
	}
	if s.traits.delta == nil {
		w.layOut(e)
		return
	}
	// The policy decides first which candidates it allows: see limitCandidates.
	if e.Guarded {
		w.candidates.addCohorts(s, &w.guard, e.Pos)
	}
	w.deficit = s.scope.Dims.AppendDeficit(w.deficit[:0], &e.Node, &s.req.Group.Ask)
	w.lower.Rows = append(w.lower.Rows, w.candidates.rows...)
	w.lower.Add(&s.inputs, e, w.deficit, w.candidates.mustLeave)
	if len(w.lower.Rows) >= columns.MaxRows {
		w.limitCandidates()
	}
}

// evaluateFast is the path of most searches: a policy that goes by ascending priority,
// and a request for amounts alone. It reads no further than the first priority with
// which the group fits.
func (w *worker) evaluateFast(e *columns.Entry) {
	s := w.s
	dims, slot := &s.scope.Dims, e.Slot
	w.deficit = dims.AppendDeficit(w.deficit[:0], &e.Node, &s.req.Group.Ask)
	w.left = append(w.left[:0], w.deficit...)
	short := dims.CountShort(w.left)
	from, rows := len(w.batch.Rows), w.batch.Rows
	level := int32(0)
	for x := range e.Rows {
		row := &e.Rows[x]
		if int64(row.Priority) > s.scope.Ceiling || short == 0 && row.Priority != level {
			break
		}
		if job := row.Group.Job; job.NonPreemptible || s.ownBelow && s.isOwn(job) {
			continue
		}
		level = row.Priority
		rows = append(rows, row)
		short -= dims.Release(w.left, &row.Group.Ask.Vec)
	}
	w.batch.Rows = rows[:from]
	if len(rows) > from {
		s.outcomes[slot] = Insufficient
	}
	if short > 0 || len(rows) == from {
		return
	}
	e.Option, s.reach[slot] = s.first[slot], level
	if w.dedup.IsUsable && w.dedup.Add(&w.batch, dims, e, w.deficit, rows[from:]) {
		return
	}
	w.batch.Rows = rows
	w.batch.Add(&s.inputs, e, w.deficit, nil)
	if len(rows) >= columns.MaxRows {
		w.flush()
	}
}

// isInfeasible reports whether reclaimable marks a node with candidates where amounts
// alone decide. A full evaluation would find that the candidates do not suffice.
func (s *search) isInfeasible(chunk *state.Chunk, i, pos int32) bool {
	if !s.reclaimable.IsInfeasible(int(pos)) {
		return false
	}
	rules := s.req.Rules
	switch {
	case chunk.HasEvictionRules()>>i&1 == 1 || int64(chunk.MinPriority(int(i))) > s.scope.Ceiling:
		return false
	case rules == nil:
		return true
	}
	return rules.Allows(pos) && (!s.traits.separation || !rules.HasSeparatedRows(pos))
}

// isShort reports whether the group would lack amounts even if every row up to the
// ceiling left. It is a quick check that spares most nodes of a full cluster the
// collection of candidates.
func (s *search) isShort(n *fit.Node) bool {
	ask := &s.req.Group.Ask
	for _, d := range ask.Dims {
		free := n.Free(int(d))
		for at := 0; at < len(n.Rows) && free < ask.Vec[d] && int64(n.Rows[at].Priority) <= s.scope.Ceiling; at++ {
			free += n.Rows[at].Group.Ask.Vec[d]
		}
		if free < ask.Vec[d] {
			return true
		}
	}
	return false
}

// layOut adds the node's options to the next call, one for each way of serving its
// devices, each with the candidates that matter to it.
func (w *worker) layOut(e *columns.Entry) {
	s := w.s
	s.outcomes[e.Slot] = s.missedOutcome(e.Slot, Insufficient)
	if e.Guarded && s.scope.Strict && s.traits.delta != nil {
		e.Limits = &columns.Limits{Remote: e.Remote(), All: slices.Clone(w.candidates.rows)}
	}
	w.deficit = s.scope.Dims.AppendDeficit(w.deficit[:0], &e.Node, &s.req.Group.Ask)
	w.candidates.narrow(s, e, w.deficit)
	if e.AmountsOnly {
		if n := w.candidates.reachAmounts(s, e); n > 0 {
			e.Option = s.first[e.Slot]
			w.addOption(e, n)
		}
	} else {
		choices := e.Model().DeviceChoices(&s.req.Group.Ask)
		for i := s.first[e.Slot]; i < s.first[e.Slot+1]; i++ {
			e.Option, e.Choice = i, choices[s.options[i].device]
			w.verify.reset(e, w.deficit)
			if n := w.candidates.reach(s, e, &w.verify.check); n > 0 {
				w.addOption(e, n)
			}
		}
	}
	if len(w.batch.Rows) >= columns.MaxRows {
		w.flush()
	}
}

// addOption adds an option with the first n candidates to the next call, unless the policy
// cannot distinguish it from an earlier one.
func (w *worker) addOption(e *columns.Entry, n int) {
	s, rows := w.s, w.candidates.rows[:n]
	s.reach[e.Slot] = max(s.reach[e.Slot], rows[n-1].Priority)
	if w.dedup.IsUsable && e.AmountsOnly && !e.Guarded && w.dedup.Add(&w.batch, &s.scope.Dims, e, w.deficit, rows) {
		return
	}
	w.batch.Rows = append(w.batch.Rows, rows...)
	w.batch.Add(&s.inputs, e, w.deficit, w.candidates.mustLeave[:n])
}

// boundable returns the node at slot; ok is false if more than amounts and budgets decides
// there, or if nothing is evictable: to find that takes no call of the policy either. It
// marks the option of the slot as infeasible, since an earlier search used its memory.
func (s *search) boundable(slot int32) (n fit.Node, ok bool) {
	s.options[s.first[slot]].feasible = false
	pos := s.req.Nodes[slot]
	chunk, i := s.scope.Snap.Chunk(int(pos)/state.ChunkSize), pos%state.ChunkSize
	if int64(chunk.MinPriority(int(i))) > s.scope.Ceiling || chunk.Eligible()>>i&1 == 0 {
		return n, false
	}
	if rules := s.req.Rules; rules != nil && (!rules.Allows(pos) || s.traits.separation && rules.HasSeparatedRows(pos)) {
		return n, false
	}
	n = fit.Node{Chunk: chunk, Index: i, Rows: chunk.Rows(int(i))}
	if chunk.HasClaims()>>i&1 == 1 {
		n.Claimed = s.claimedCapacity(pos)
	}
	return n, true
}

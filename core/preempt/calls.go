package preempt

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// answers holds the memory for the answers of policies. It is reused from call to call,
// so nothing of it may be retained.
type answers struct {
	gaps      []int32
	recheck   sdk.Recheck
	selection sdk.Selection
	scores    sdk.VictimScores
	order     []int32 // candidates of an option, sorted by score
}

// finish calls the policy about everything that has been laid out.
func (w *worker) finish() {
	w.limitCandidates()
	w.flush()
}

// flush calls the policy about the options of the batch and adopts its answers. If it
// chose candidates that strict budgets protect, it is called again without them.
func (w *worker) flush() {
	w.call()
	for len(w.retries) > 0 && w.failure.err == nil {
		w.layOutRetries()
		w.call()
	}
	w.retries = nil
	w.resetCall()
}

// call calls the hook that selects or scores victims. An earlier error of the worker
// ends all further calls.
func (w *worker) call() {
	if len(w.batch.Entries) == 0 || w.failure.err != nil {
		return
	}
	w.batch.Complete(&w.s.inputs)
	switch v := w.victims.version; {
	case v.Hooks().Has(policy.HookSelectVictims):
		w.fail(w.selectVictims())
	case v.Info().Adaptive:
		w.fail(w.scoreAdaptively())
	default:
		w.fail(w.scoreVictims())
	}
	if w.failure.err == nil {
		w.solveDuplicates()
	}
}

// resetCall empties the batch.
func (w *worker) resetCall() {
	w.batch.Reset()
	w.dedup.Reset()
	w.keptRows = w.keptRows[:0]
}

// limitCandidates calls PriorityDelta about the candidates collected, and lays out the
// options with those alone that it allows. The policy may widen the gap or narrow it,
// by row; the base gap is its input.
func (w *worker) limitCandidates() {
	b, s := &w.lower, w.s
	defer b.Reset()
	if s.traits.delta == nil || len(b.Entries) == 0 || w.failure.err != nil {
		return
	}
	b.Complete(&s.inputs)
	in := &b.Cand
	gaps := scratch.Sized(w.answers.gaps, len(b.Rows))
	w.answers.gaps = gaps
	for i := range gaps {
		gaps[i] = in.Preemptor.Delta
	}
	v := w.delta.version
	recheck := &w.answers.recheck // not on the stack, where a call of an interface would move it to the heap
	*recheck = sdk.Recheck{}
	if w.fail(v.RecordCall("PriorityDelta", w.delta.instance.PriorityDelta(in, gaps, recheck))) {
		return
	}
	w.guard.Findings.MergePolicyRecheck(*recheck, in.Now)
	for o := range b.Entries {
		e := &b.Entries[o]
		c := &w.candidates
		c.reset()
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			apart := int64(in.Preemptor.Priority) - int64(in.Rows.Priority[row])
			if apart >= int64(gaps[row]) && gaps[row] != sdk.NeverEligible {
				c.rows = append(c.rows, b.Rows[row])
			}
		}
		c.markLeaving(s, e)
		if e.Guarded {
			c.dropCohorts(e, b.RowsOf(o))
		}
		if len(c.rows) > 0 {
			w.layOut(e)
		}
	}
}

// selectVictims adopts the policy's own lists. An answer of another length is a fault
// of the policy, not of the host.
func (w *worker) selectVictims() error {
	in, v, out := &w.batch.Cand, w.victims.version, &w.answers.selection
	out.Reset()
	if err := v.RecordCall("SelectVictims", w.victims.instance.SelectVictims(in, out)); err != nil {
		return err
	}
	w.guard.Findings.MergePolicyRecheck(out.Recheck, in.Now)
	if out.Len() != in.Len() {
		return v.RecordBadAnswer("SelectVictims", "answered %d options of %d", out.Len(), in.Len())
	}
	for o := range in.Len() {
		if err := w.accept(o, out.Rows(o), v.KeepsRedundant()); err != nil {
			return err
		}
	}
	return nil
}

// scoreVictims orders each option's candidates by the policy's tiers and scores. The
// score +Inf excludes a candidate. The sort is stable, so that equal rows stay in the
// order of the columns.
func (w *worker) scoreVictims() error {
	in, a := &w.batch.Cand, &w.answers
	if err := w.callScores(); err != nil {
		return err
	}
	for o := range in.Len() {
		a.order = a.order[:0]
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			if !math.IsInf(a.scores.Score[row], 1) {
				a.order = append(a.order, row)
			}
		}
		slices.SortStableFunc(a.order, a.compareScored)
		if err := w.accept(o, a.order, false); err != nil {
			return err
		}
	}
	return nil
}

// callScores calls ScoreVictims and validates its scores.
func (w *worker) callScores() error {
	in, v, out := &w.batch.Cand, w.victims.version, &w.answers.scores
	n := in.Rows.Len()
	out.Tier, out.Score = scratch.Zeroed(out.Tier, n), scratch.Zeroed(out.Score, n)
	out.Recheck = sdk.Recheck{}
	if err := v.RecordCall("ScoreVictims", w.victims.instance.ScoreVictims(in, out)); err != nil {
		return err
	}
	w.guard.Findings.MergePolicyRecheck(out.Recheck, in.Now)
	for row, score := range out.Score {
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return v.RecordBadAnswer("ScoreVictims", "invalid score %v in row %d: scores must be finite, or +Inf for never", score, row)
		}
	}
	return nil
}

// compareScored orders rows by tier, then by score.
func (a *answers) compareScored(x, y int32) int {
	if s, t := a.scores.Tier[x], a.scores.Tier[y]; s != t {
		return cmp.Compare(s, t)
	}
	return cmp.Compare(a.scores.Score[x], a.scores.Score[y])
}

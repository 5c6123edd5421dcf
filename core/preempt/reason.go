package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// Why an option was chosen is recorded where it is decided, because the answer of a policy is
// gone once the next call is laid out. A worker records verdicts for every feasible option:
// positions and flags, in memory that it reuses, a bounded number for each. Only for the
// option that is chosen in the end are they resolved to allocations, and compared with the
// options of other nodes.
//
// Another call about the chosen option alone would be simpler. But a policy may read totals
// of all options of its call, so that its answer could differ from the one that decided, and
// small searches would make twice as many calls.

// considered is a candidate of a feasible option, with its verdict.
type considered struct {
	row     *state.Row // of the node for which the policy was called
	at      int32      // position among the candidates of the option
	verdict model.Verdict
	scored  bool
	tier    int64
	score   float64
}

// consider records the verdicts about the candidates of option o after its answer was
// accepted: at most model.MaxCandidates of them. opt is the option.
func (w *worker) consider(opt *option, o int, answer []int32) {
	m, v := &w.solutions, &w.verify
	first, last := w.batch.Cand.FirstRow[o], w.batch.Cand.FirstRow[o+1]
	from := len(m.considered)
	scored := w.s.traits.scoresVictims()
	// The score +Inf excludes a candidate, and does not rank it.
	add := func(row int32, verdict model.Verdict) bool {
		c := considered{row: w.batch.Rows[row], at: row - first, verdict: verdict}
		if scored && !math.IsInf(w.answers.scores.Score[row], 1) {
			c.scored, c.tier, c.score = true, w.answers.scores.Tier[row], w.answers.scores.Score[row]
		}
		m.considered = append(m.considered, c)
		return len(m.considered)-from < model.MaxCandidates
	}
	// Marks of checkPick are reused: they are complete only for the rows that were
	// processed. Invariant: a row has the stamp of the option once it is recorded.
	more := true
	for _, pick := range v.picks.list {
		if v.seen[pick] = v.stamp; more {
			more = add(pick, model.Evicted)
		}
	}
	for k, row := range answer {
		if !more {
			break
		}
		if row < first || row >= last {
			continue // behind the victims that sufficed, where answers are not verified
		}
		if v.seen[row] = v.stamp; !slices.Contains(v.picks.list, row) {
			more = add(row, v.verdictOf(k, row))
		}
	}
	for row := first; more && row < last; row++ {
		if v.seen[row] != v.stamp {
			more = add(row, model.Spared)
		}
	}
	opt.considered = m.considered[from:len(m.considered):len(m.considered)]
	opt.candidates, opt.duplicate = last-first, false
}

// verdictOf returns what became of the row at position k of an answer. It is not in the
// list of picks.
func (v *verifier) verdictOf(k int, row int32) model.Verdict {
	switch {
	case slices.Contains(v.picks.blocked, row):
		return model.Shielded
	case k >= v.tried:
		return model.Unneeded
	case v.picks.isGone(v.batch.Rows, v.batch.Rows[row]):
		return model.Evicted
	}
	return model.Reprieved
}

// scoresVictims reports whether the policy scores the candidates once, so that tiers and
// scores explain their order.
func (t *traits) scoresVictims() bool {
	return !t.victims.Hooks().Has(policy.HookSelectVictims) && !t.victims.Info().Adaptive
}

// explain returns the explanation of an option as the choice of a search among some
// options. Ranked is empty. It is called for chosen options only, and costs a few
// allocations.
func (s *search) explain(o *option, options int) *model.Choice {
	t := &s.traits
	why := &model.Choice{
		Options: options, Ceiling: s.scope.Ceiling,
		Selector: model.PolicyCall{Version: t.victims.ID, Hook: "SelectVictims", Columns: uint64(t.columns), Part: t.victims.PartOf(policy.HookSelectVictims)},
		Chooser:  model.PolicyCall{Version: t.chooser.ID, Hook: "ScoreOptions", Columns: uint64(t.optionColumns), Part: t.chooser.PartOf(policy.HookScoreOptions)},
	}
	if !t.victims.Hooks().Has(policy.HookSelectVictims) {
		why.Selector.Hook = "ScoreVictims"
	}
	if len(s.req.Excluded) > 0 {
		why.Search = model.SearchBudgets
	}
	for i := range o.considered {
		c := &o.considered[i]
		row := o.rowOf(s, c)
		if row == nil {
			continue
		}
		why.Candidates = append(why.Candidates, model.Candidate{
			AllocID: row.Alloc.ID, Verdict: c.verdict, Scored: c.scored, Tier: c.tier, Score: c.score,
		})
	}
	why.Omitted = int(o.candidates) - len(o.considered)
	return why
}

// rowOf returns the row of the option's own node that corresponds to a candidate, which may
// be of another node with the same answer; nil if there is none any more.
func (o *option) rowOf(s *search, c *considered) *state.Row {
	row := c.row
	if o.duplicate {
		row = s.fastCandidate(o.rows, c.at)
	}
	if row == nil || o.pos == o.evaluatedAt {
		return row
	}
	at := slices.IndexFunc(o.rows, func(r state.Row) bool { return r.Alloc == row.Alloc })
	if own := fit.At(s.scope.Snap, o.pos).Rows; at >= 0 && at < len(own) {
		return &own[at]
	}
	return nil
}

// fastCandidate returns candidate number n of a node that evaluateFast evaluated.
func (s *search) fastCandidate(rows []state.Row, n int32) *state.Row {
	for x := range rows {
		if job := rows[x].Group.Job; job.NonPreemptible || s.ownBelow && s.isOwn(job) {
			continue
		}
		if n == 0 {
			return &rows[x]
		}
		n--
	}
	return nil
}

// rank lists an option, and after it the best option of each of the best other nodes. It
// costs a scan of the options of the table. Options of one node are adjacent.
func (t *optionTable) rank(best int, snap *state.Snapshot) []model.RankedOption {
	list := make([]int, 1, model.MaxRanked+1)
	list[0] = best
	for i := 0; i < len(t.at); {
		first, next := t.bestOfNode(i)
		i = next
		if t.options.Node[first] == t.options.Node[best] {
			continue
		}
		if len(list) == model.MaxRanked && !t.better(first, list[len(list)-1]) {
			continue
		}
		at := len(list)
		for at > 1 && t.better(first, list[at-1]) {
			at--
		}
		list = slices.Insert(list, at, first)
		list = list[:min(len(list), model.MaxRanked)]
	}
	ranked := make([]model.RankedOption, len(list))
	for k, i := range list {
		ranked[k] = t.ranked(i, snap)
	}
	return ranked
}

// ranked describes an option of the table.
func (t *optionTable) ranked(i int, snap *state.Snapshot) model.RankedOption {
	r := model.RankedOption{
		NodeID: snap.NodeAt(t.options.Node[i]).ID, Score: t.scores.Score[i],
		Victims: int(t.options.VictimCount[i]), Highest: t.options.HighestPriority[i],
	}
	for n := range t.scores.Tiers {
		r.Tiers[n] = t.scores.Tiers[n][i]
	}
	if len(t.outlooks) > 0 {
		r.Outlook = new(t.outlooks[i].Outlook)
	}
	return r
}

// bestOfNode returns the best option of the node whose first option is i, and the first
// option of the next node.
func (t *optionTable) bestOfNode(i int) (best, next int) {
	best, next = i, i+1
	for ; next < len(t.at) && t.options.Node[next] == t.options.Node[i]; next++ {
		if t.better(next, best) {
			best = next
		}
	}
	return best, next
}

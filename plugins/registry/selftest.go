package registry

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// SelfTest calls every hook of a version with cases of different sizes, preemptors and
// times: twice on one instance and once on another. A version passes if its answers are valid, within its limits, and the same
// each time.
func SelfTest(v *policy.Version) error {
	first, err := v.Acquire()
	if err != nil {
		return err
	}
	defer v.Release(first)
	second, err := v.Acquire()
	if err != nil {
		return err
	}
	defer v.Release(second)
	for _, q := range selfTestCases(v.Info()) {
		answer, err := q.run(v, first)
		if err != nil {
			return err
		}
		for _, in := range []policy.Instance{first, second} {
			again, err := q.run(v, in)
			if err != nil {
				return err
			}
			if again != answer {
				return errors.New("equal inputs had different answers: a policy must not use stored state, randomness or a clock")
			}
		}
	}
	return nil
}

// selfTestCase is the input of all hooks.
type selfTestCase struct {
	candidates *sdk.Candidates
	options    *sdk.Options
}

// run calls every hook and returns the answers as text.
func (q *selfTestCase) run(v *policy.Version, in policy.Instance) (string, error) {
	var all []any
	if v.Hooks().Has(policy.HookDelta) {
		gap := slices.Repeat([]int32{q.candidates.Preemptor.Delta}, q.candidates.Rows.Len())
		var recheck sdk.Recheck
		if err := v.RecordCall("PriorityDelta", in.PriorityDelta(q.candidates, gap, &recheck)); err != nil {
			return "", err
		}
		all = append(all, gap, recheck)
	}
	if v.Hooks().Has(policy.HookScoreVictims) {
		n := q.candidates.Rows.Len()
		out := sdk.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
		if err := v.RecordCall("ScoreVictims", in.ScoreVictims(q.candidates, &out)); err != nil {
			return "", err
		}
		for row, s := range out.Score {
			if math.IsNaN(s) || math.IsInf(s, -1) {
				return "", v.RecordBadAnswer("ScoreVictims", "score of row %d is %v; must be finite, or +Inf for never", row, s)
			}
		}
		all = append(all, out)
	}
	if v.Hooks().Has(policy.HookSelectVictims) {
		out, err := q.selection(v, in)
		if err != nil {
			return "", err
		}
		all = append(all, out)
	}
	if v.Hooks().Has(policy.HookScoreOptions) {
		out := sdk.OptionScores{Score: make([]float64, q.options.Len())}
		for k := range out.Tiers {
			out.Tiers[k] = make([]int64, q.options.Len())
		}
		if err := v.RecordCall("ScoreOptions", in.ScoreOptions(q.options, &out)); err != nil {
			return "", err
		}
		for i, s := range out.Score {
			if math.IsNaN(s) || math.IsInf(s, 0) {
				return "", v.RecordBadAnswer("ScoreOptions", "score of option %d is %v; must be finite", i, s)
			}
		}
		all = append(all, out)
	}
	if v.Hooks().Has(policy.HookPreemptBindings) {
		out, err := q.bindings(v, in)
		if err != nil {
			return "", err
		}
		all = append(all, out)
	}
	return fmt.Sprint(all...), nil
}

func (q *selfTestCase) bindings(v *policy.Version, in policy.Instance) (sdk.BindingVictims, error) {
	const hook = "PreemptBindings"
	var out sdk.BindingVictims
	out.Reset()
	for k := range out.Tiers {
		out.Tiers[k] = make([]int64, q.candidates.Len())
	}
	if err := v.RecordCall(hook, in.PreemptBindings(q.candidates, &out)); err != nil {
		return out, err
	}
	return out, q.checkRows(v, hook, &out.Selection)
}

func (q *selfTestCase) selection(v *policy.Version, in policy.Instance) (sdk.Selection, error) {
	const hook = "SelectVictims"
	var out sdk.Selection
	out.Reset()
	if err := v.RecordCall(hook, in.SelectVictims(q.candidates, &out)); err != nil {
		return out, err
	}
	return out, q.checkRows(v, hook, &out)
}

// checkRows returns an error if a selection contains rows of other options, or a row twice.
func (q *selfTestCase) checkRows(v *policy.Version, hook string, out *sdk.Selection) error {
	c := q.candidates
	if out.Len() != c.Len() {
		return v.RecordBadAnswer(hook, "answer has %d options, want %d", out.Len(), c.Len())
	}
	for i := range c.Len() {
		rows := slices.Sorted(slices.Values(out.Rows(i)))
		for k, row := range rows {
			if row < c.FirstRow[i] || row >= c.FirstRow[i+1] {
				return v.RecordBadAnswer(hook, "option %d contains row %d, which is not one of its rows %d to %d", i, row, c.FirstRow[i], c.FirstRow[i+1]-1)
			}
			if k > 0 && rows[k-1] == row {
				return v.RecordBadAnswer(hook, "option %d contains row %d twice", i, row)
			}
		}
	}
	return nil
}

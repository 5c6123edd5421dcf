package steps

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// instance calls a policy and lets the session replace its answers. Faults of the policy
// are returned before the session is involved.
type instance struct {
	policy.Instance
	m *module
}

var _ policy.Instance = (*instance)(nil)

// allColumns has the bit of every optional column.
const allColumns = sdk.RelocationColumns<<1 - 1

// Info returns that of the policy. With Session.Full the policy declares nothing by which
// the host would omit rows or options.
func (i *instance) Info() sdk.Info {
	info := i.Instance.Info()
	if i.m.session.Full {
		info.Columns |= allColumns
		info.Ascending, info.LeastFirst, info.Monotone, info.YoungestFirst = false, false, false, false
	}
	return info
}

// view returns a request as a guest receives it: with the requested columns alone.
func view(encode func(e *abi.Encoder) int) (*abi.Decoder, error) {
	var e abi.Encoder
	frame := abi.Grow(nil, encode(&e))
	e.Write(frame)
	d := &abi.Decoder{}
	_, err := d.Load(frame)
	return d, err
}

// candidates lets the session answer a hook that takes a table of candidates.
func (i *instance) candidates(op abi.Op, in *sdk.Candidates, columns sdk.Columns, own *Answer, check func(*Answer) []string) (*Answer, error) {
	d, err := view(func(e *abi.Encoder) int { return e.Candidates(op, in, columns) })
	if err != nil {
		return nil, err
	}
	seen, err := d.Candidates()
	if err != nil {
		return nil, err
	}
	return i.m.session.exchange(Decision{Policy: i.m.name, Hook: abi.Names[op], Answer: own, Columns: columnsOf(seen), elements: in.Len() + in.Rows.Len()}, check)
}

// PriorityDelta answers with gap, or with eligible: true requires a priority that is lower
// by any amount.
func (i *instance) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	if err := i.Instance.PriorityDelta(in, gap, recheck); err != nil {
		return err
	}
	own := &Answer{Gap: slices.Clone(gap), RecheckAt: recheck.Time()}
	a, err := i.candidates(abi.OpPriorityDelta, in, i.Info().Columns, own, func(a *Answer) []string {
		if a.Gap != nil {
			return append(exclusive("gap", "eligible", a.Eligible != nil), length("gap", len(a.Gap), len(gap))...)
		}
		return length("eligible", len(a.Eligible), len(gap))
	})
	if a == nil {
		return err
	}
	copy(gap, a.Gap)
	for row, eligible := range a.Eligible {
		gap[row] = 1
		if !eligible {
			gap[row] = sdk.NeverEligible
		}
	}
	a.setRecheck(recheck)
	return nil
}

// ScoreVictims answers with score and tier, or with eligible, which excludes rows. A tier that
// is left out is 0, and a score that is null excludes the row.
func (i *instance) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	if err := i.Instance.ScoreVictims(in, out); err != nil {
		return err
	}
	own := &Answer{Tier: slices.Clone(out.Tier), Score: scoresOf(out.Score), RecheckAt: out.Recheck.Time()}
	a, err := i.candidates(abi.OpScoreVictims, in, i.Info().Columns, own, func(a *Answer) []string { return checkScores(a, in) })
	if a == nil {
		return err
	}
	if a.Score != nil {
		clear(out.Tier)
		copy(out.Tier, a.Tier)
	}
	for row, score := range a.Score {
		out.Score[row] = math.Inf(1)
		if score != nil {
			out.Score[row] = *score
		}
	}
	for row, eligible := range a.Eligible {
		if !eligible {
			out.Score[row] = math.Inf(1)
		}
	}
	a.setRecheck(&out.Recheck)
	return nil
}

// SelectVictims answers with picks; or with score and tier, which order the rows as in
// ScoreVictims; or with eligible, which removes rows.
func (i *instance) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	if err := i.Instance.SelectVictims(in, out); err != nil {
		return err
	}
	own := &Answer{Picks: picksOf(out), RecheckAt: out.Recheck.Time()}
	a, err := i.candidates(abi.OpSelectVictims, in, i.Info().Columns, own, func(a *Answer) []string { return checkOrder(a, in) })
	if a == nil {
		return err
	}
	switch {
	case a.Score != nil:
		a.Picks = a.order(in)
	case a.Picks == nil:
		a.Picks = own.Picks
	}
	a.removeIneligible()
	a.setPicks(out)
	return nil
}

// PreemptBindings answers with picks and tiers. Tiers that are left out are 0.
func (i *instance) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	if err := i.Instance.PreemptBindings(in, out); err != nil {
		return err
	}
	own := &Answer{Picks: picksOf(&out.Selection), Tiers: tiersOf(&out.Tiers), RecheckAt: out.Recheck.Time()}
	a, err := i.candidates(abi.OpPreemptBindings, in, sdk.BindingColumns, own, func(a *Answer) []string {
		return append(checkPicks(a, in), checkTiers(a, in.Len())...)
	})
	if a == nil {
		return err
	}
	a.setPicks(&out.Selection)
	a.setTiers(&out.Tiers)
	return nil
}

// ScoreOptions answers with option, the index of the best option, or with score and tiers.
func (i *instance) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	if err := i.Instance.ScoreOptions(in, out); err != nil {
		return err
	}
	d, err := view(func(e *abi.Encoder) int { return e.Options(in, i.Info().Columns) })
	if err != nil {
		return err
	}
	seen, err := d.Options()
	if err != nil {
		return err
	}
	own := &Answer{Score: scoresOf(out.Score), Tiers: tiersOf(&out.Tiers), RecheckAt: out.Recheck.Time()}
	a, err := i.m.session.exchange(Decision{Policy: i.m.name, Hook: abi.Names[abi.OpScoreOptions], Answer: own, Columns: columnsOf(seen), elements: in.Len()},
		func(a *Answer) []string { return checkOptions(a, in.Len()) })
	if a == nil {
		return err
	}
	a.setTiers(&out.Tiers)
	clear(out.Score)
	for at, score := range a.Score {
		out.Score[at] = *score // checked
	}
	if a.Option != nil {
		out.Score[*a.Option] = 1
	}
	a.setRecheck(&out.Recheck)
	return nil
}

func checkOptions(a *Answer, options int) (problems []string) {
	if a.Option != nil {
		if *a.Option < 0 || *a.Option >= options {
			problems = append(problems, fmt.Sprintf("option: expected 0 to %d, found %d", options-1, *a.Option))
		}
		return append(problems, exclusive("option", "score and tiers", a.Score != nil || a.Tiers != nil)...)
	}
	if a.Score != nil {
		problems = length("score", len(a.Score), options)
		for at, score := range a.Score {
			if score == nil {
				problems = append(problems, fmt.Sprintf("score[%d]: expected a number, found null", at))
			}
		}
	}
	return append(problems, checkTiers(a, options)...)
}

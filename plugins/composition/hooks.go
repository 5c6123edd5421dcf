package composition

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// begin records that a call of a hook begins.
func (i *instance) begin() { i.called = i.called[:0] }

// call calls a hook of a part.
func (i *instance) call(p *runningPart, hook func() error) error {
	i.called = append(i.called, p)
	if err := hook(); err != nil {
		return ofPart(p.name, err)
	}
	return nil
}

// badAnswer is the fault of an answer that violates a rule.
func badAnswer(p *runningPart, format string, args ...any) error {
	return ofPart(p.name, &policy.Error{Fault: policy.FaultAnswer, Err: fmt.Errorf(format, args...)})
}

// merge adds the time at which the answer of a part may change.
func merge(to, from *sdk.Recheck) {
	if t := from.Time(); t != 0 {
		to.At(t)
	}
}

// PriorityDelta sets the widest gap that a part requires, so that a candidate is eligible if
// every part allows it.
func (i *instance) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	i.begin()
	if len(i.eligible) == 1 && !i.eligible[0].allowsBaseGap() {
		p := i.eligible[0]
		return i.call(p, func() error { return p.PriorityDelta(p.view(in), gap, recheck) })
	}
	for n, p := range i.eligible {
		i.gap = i.gap[:0]
		for range gap {
			i.gap = append(i.gap, in.Preemptor.Delta)
		}
		var own sdk.Recheck
		if !p.allowsBaseGap() {
			if err := i.call(p, func() error { return p.PriorityDelta(p.view(in), i.gap, &own) }); err != nil {
				return err
			}
		}
		merge(recheck, &own)
		for row, g := range i.gap {
			if n == 0 || g > gap[row] {
				gap[row] = g
			}
		}
	}
	return nil
}

// ScoreVictims returns the answer of the only part of order. Of several parts, the first
// one decides; each further one breaks ties: tiers are the positions of the candidates of an
// option. The score +Inf of any part excludes a candidate.
func (i *instance) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	i.begin()
	if len(i.order) == 1 {
		p := i.order[0]
		return i.call(p, func() error { return p.ScoreVictims(p.view(in), out) })
	}
	if err := i.rank(in, i.order, &out.Recheck); err != nil {
		return err
	}
	for row, rank := range i.ranks {
		out.Tier[row], out.Score[row] = int64(rank), 0
		if rank == excluded {
			out.Tier[row], out.Score[row] = 0, math.Inf(1)
		}
	}
	return nil
}

// SelectVictims returns the answer of the last part of order. If others precede it, it
// receives the candidates of their lowest tiers that suffice, and its victims are evicted in
// the order of these tiers.
func (i *instance) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	i.begin()
	p := i.order[len(i.order)-1]
	if len(i.order) == 1 {
		return i.call(p, func() error { return p.SelectVictims(p.view(in), out) })
	}
	if err := i.rank(in, i.order[:len(i.order)-1], &out.Recheck); err != nil {
		return err
	}
	fewer := i.narrow.to(in, i.ranks)
	own := &i.narrow.selection
	own.Reset()
	if err := i.call(p, func() error { return p.SelectVictims(p.view(fewer), own) }); err != nil {
		return err
	}
	merge(&out.Recheck, &own.Recheck)
	return i.narrow.widen(p, in, i.ranks, out)
}

// ScoreOptions returns the answer of the part that chooses.
func (i *instance) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	i.begin()
	p := i.option[0]
	return i.call(p, func() error { return p.ScoreOptions(p.viewOptions(in), out) })
}

// PreemptBindings returns the answer of the part for bindings.
func (i *instance) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	i.begin()
	p := i.bindings[0]
	return i.call(p, func() error { return p.PreemptBindings(in, out) })
}

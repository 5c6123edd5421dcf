package kubernetes

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy is the policy "kubernetes". It must be configured before its first call.
type Policy struct {
	// percentage and absolute bound the options that are compared; see sample.
	percentage, absolute int64

	lack    rules.Shortfall
	budgets budgets
	order   []int32 // scratch: rows in the order of picking
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.Configurable   = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{percentage: everything} }

// Info implements policy.Policy.
func (p *Policy) Info() policy.Info {
	return policy.Info{
		Name:      "kubernetes",
		Delta:     1,
		Ascending: true,
		// An option that the host omits could not be sampled.
		LeastFirst:    p.percentage == everything,
		Monotone:      p.percentage == everything,
		YoungestFirst: true,
		Columns: policy.UseColumns | policy.StartColumn | policy.MustLeaveColumn | policy.DeviceColumns |
			policy.BudgetColumns,
	}
}

// everything is the percentage that omits no option.
const everything = 100

// Settings implements policy.Configurable, by kube-scheduler's names.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{
		{
			Name: "minCandidateNodesPercentage", Kind: policy.Integer, Default: "100", Limits: policy.Between(0, everything),
			Doc: "percentage of the feasible nodes that are compared; 100 compares all, kube-scheduler's default is 10",
		},
		{
			Name: "minCandidateNodesAbsolute", Kind: policy.Integer, Default: "100", Limits: policy.AtLeast(0),
			Doc: "minimum number of feasible nodes that are compared",
		},
	}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.percentage, p.absolute = c.Integer("minCandidateNodesPercentage"), c.Integer("minCandidateNodesAbsolute")
	if p.percentage == 0 && p.absolute == 0 {
		return errors.New("minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0: no node would be compared")
	}
	return nil
}

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.lack.Load(in)
	p.budgets.load(in)
	for i := range in.Len() {
		p.lack.Reset(i)
		from, to := int(in.FirstRow[i]), int(in.FirstRow[i+1])
		if p.budgets.runOut(from, to) {
			p.selectAround(in, from, to, out)
		} else {
			p.selectAscending(in, from, to, out)
		}
		out.Next()
	}
	return nil
}

// selectAscending picks the least important rows until the option fits: the lowest
// priority first, and within a priority the one that started last.
func (p *Policy) selectAscending(in *policy.Candidates, from, end int, out *policy.Selection) {
	for from < end && !p.lack.Covered() {
		to := rules.GroupEnd(in.Rows.Priority, from, end)
		if to-from == 1 {
			p.pick(int32(from), out)
		} else {
			p.order = appendYoungestFirst(p.order[:0], in.Rows.Start, from, to)
			p.pickAll(p.order, out)
		}
		from = to
	}
}

// selectAround first picks rows that overrun no budget, in the same order, and then
// rows that overrun one.
func (p *Policy) selectAround(in *policy.Candidates, from, end int, out *policy.Selection) {
	p.order = p.order[:0]
	for at := from; at < end; {
		to := rules.GroupEnd(in.Rows.Priority, at, end)
		p.order = appendYoungestFirst(p.order, in.Rows.Start, at, to)
		at = to
	}
	kept, overrun := p.budgets.divide(p.order)
	p.pickAll(kept, out)
	p.pickAll(overrun, out)
}

func (p *Policy) pickAll(rows []int32, out *policy.Selection) {
	for _, row := range rows {
		if p.lack.Covered() {
			return
		}
		p.pick(row, out)
	}
}

func (p *Policy) pick(row int32, out *policy.Selection) {
	out.Pick(int(row))
	p.lack.Pick(int(row))
}

// appendYoungestFirst appends rows of one priority by start, the latest first; among
// equals the first.
func appendYoungestFirst(order []int32, start []int64, from, to int) []int32 {
	begin := len(order)
	for row := from; row < to; row++ {
		order = append(order, int32(row))
	}
	group := order[begin:]
	if len(group) > few {
		slices.SortStableFunc(group, func(a, b int32) int { return cmp.Compare(start[b], start[a]) })
		return order
	}
	for i := 1; i < len(group); i++ {
		for k := i; k > 0 && start[group[k]] > start[group[k-1]]; k-- {
			group[k], group[k-1] = group[k-1], group[k]
		}
	}
	return order
}

// few is the maximum number of rows that are sorted by insertion: usually a handful
// share a priority.
const few = 24

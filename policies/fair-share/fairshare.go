package fairshare

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy is the policy "fair-share". It must be configured before its first call.
type Policy struct {
	onlyAbove bool

	shares  shares
	need    rules.Need
	lack    rules.Shortfall
	gone    []bool // by row of the current option
	options rules.Default
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.Configurable   = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{} }

// Info implements policy.Policy.
func (*Policy) Info() policy.Info {
	return policy.Info{
		Name:  "fair-share",
		Delta: 1,
		Columns: policy.UseColumns | policy.JobColumns | policy.MustLeaveColumn | policy.DeviceColumns |
			policy.VictimColumns | policy.FitColumns | policy.SharedTables,
	}
}

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{{
		Name: "onlyAbove", Kind: policy.Bool, Default: "false", Choices: []string{"false", "true"},
		Doc: "if true, only namespaces above their fair share lose work to others",
	}}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.onlyAbove = c.Bool("onlyAbove")
	return nil
}

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.need.Load(in.Preemptor.Ask, in.Rows.Use, nil)
	p.lack.Load(in)
	p.shares.load(in.Shared, in.Strings, in.Preemptor)
	for i := range in.Len() {
		p.lack.Reset(i)
		p.need.Reset()
		p.selectOn(in, i, out)
		p.shares.restore()
		out.Next()
	}
	return nil
}

// selectOn lists rows of option i until it fits by the columns, or until no eligible
// row is left. Rows that must be evicted come first, because they lower their
// namespace's share regardless of the other picks.
func (p *Policy) selectOn(in *policy.Candidates, i int, out *policy.Selection) {
	first, end := int(in.FirstRow[i]), int(in.FirstRow[i+1])
	p.gone = grown(p.gone, end-first)
	clear(p.gone)
	if in.MustLeave[i] > 0 {
		for row := first; row < end && !p.lack.Covered(); row++ {
			if in.Rows.MustLeave[row] != 0 && p.mayLose(in, row) {
				p.pick(in, first, row, out)
			}
		}
	}
	for !p.lack.Covered() {
		row := p.next(in, first, end)
		if row < 0 {
			return
		}
		p.pick(in, first, row, out)
	}
}

func (p *Policy) pick(in *policy.Candidates, first, row int, out *policy.Selection) {
	out.Pick(row)
	p.gone[row-first] = true
	p.lack.Pick(row)
	if !p.lack.Covered() { // otherwise the distance is not needed again
		p.need.Pick(row)
		p.shares.take(in.Rows.Namespace[row], in.Rows.Use, row)
	}
}

// mayLose reports whether the namespace of a row may lose allocations at all.
func (p *Policy) mayLose(in *policy.Candidates, row int) bool {
	return !p.onlyAbove || p.shares.above(in.Rows.Namespace[row])
}

// next returns the row to evict next: of the namespace with the highest share, the
// lowest priority, the nearest to the need, and the first among equals; -1 if there
// is none.
func (p *Policy) next(in *policy.Candidates, first, end int) int {
	best, bestShare, bestPriority, bestDistance := -1, 0.0, int32(0), 0.0
	for row := first; row < end; row++ {
		if p.gone[row-first] || !p.mayLose(in, row) {
			continue
		}
		share, priority := p.shares.of(in.Rows.Namespace[row]), in.Rows.Priority[row]
		if best >= 0 && (share < bestShare || share == bestShare && priority > bestPriority) {
			continue
		}
		distance := p.need.Distance(row)
		if best >= 0 && share == bestShare && priority == bestPriority && distance >= bestDistance {
			continue
		}
		best, bestShare, bestPriority, bestDistance = row, share, priority, distance
	}
	return best
}

// grown returns a slice of n elements, in the memory of s if that suffices.
func grown[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

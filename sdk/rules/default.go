package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Delta is the priority gap that default asks for where the operator sets none.
const Delta = 10

// Default is the policy named default.
type Default struct {
	need Need
	lack Lack
	gone []bool // by row of the priority group at hand; all false between groups

	bindings Bindings
}

var (
	_ policy.Policy         = (*Default)(nil)
	_ policy.VictimSelector = (*Default)(nil)
	_ policy.OptionScorer   = (*Default)(nil)

	_ policy.BindingPreemptor = (*Default)(nil)
)

// New returns a ready policy.
func New() *Default { return &Default{} }

// Info implements policy.Policy. Start times are not among the columns: age
// does not count, so that answers stay reusable while work gets older.
func (*Default) Info() policy.Info {
	return policy.Info{
		Name:      "default",
		Ascending: true,
		Delta:     Delta,
		Columns: policy.UseColumns | policy.MustLeaveColumn | policy.DeviceColumns |
			policy.FitColumns,
	}
}

// SelectVictims implements policy.VictimSelector. It lists rows until the
// option fits as far as the columns tell, or all of them: what turns out to be
// redundant is spared by the host, which works through the list in reverse.
func (p *Default) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.need.Load(in.Preemptor.Ask, in.Rows.Use, nil)
	p.lack.Load(in)
	priority := in.Rows.Priority
	for i := range in.Len() {
		p.lack.Reset(i)
		p.need.Reset()
		end := int(in.FirstRow[i+1])
		for from := int(in.FirstRow[i]); from < end && !p.lack.Covered(); {
			to := GroupEnd(priority, from, end)
			p.pickGroup(from, to, out)
			from = to
		}
		out.Next()
	}
	return nil
}

// PreemptBindings implements policy.BindingPreemptor: bindings have an order of
// their own, which is Karmada's.
func (p *Default) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	return p.bindings.PreemptBindings(in, out)
}

// pickGroup picks from rows of one priority until the option fits or none is
// left.
func (p *Default) pickGroup(from, to int, out *policy.Selection) {
	if to-from == 1 {
		p.pick(from, out)
		return
	}
	gone := p.scratch(to - from)
	for left := to - from; left > 1; left-- {
		j := p.need.Nearest(gone, from)
		gone[j] = true
		p.pick(from+j, out)
		if p.lack.Covered() {
			clear(gone)
			return
		}
	}
	for j, g := range gone {
		if !g {
			p.pick(from+j, out)
		}
	}
	clear(gone)
}

func (p *Default) pick(row int, out *policy.Selection) {
	out.Pick(row)
	p.lack.Take(row)
	if !p.lack.Covered() { // else nobody asks for the distance again
		p.need.Take(row)
	}
}

func (p *Default) scratch(n int) []bool {
	if n > len(p.gone) {
		p.gone = make([]bool, 2*n)
	}
	return p.gone[:n]
}

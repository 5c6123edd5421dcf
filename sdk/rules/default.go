package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Delta is the priority gap of the default policy if the operator sets none.
const Delta = 10

// Default is the built-in policy "default". The zero value implements version 1 of its
// rules, as does NewVersion1.
type Default struct {
	relocates  bool // since version 2: relocation breaks ties
	relocation Relocation

	need      Need
	shortfall Shortfall
	picked    []bool // by row of the priority group at hand; all false between groups

	bindings Bindings
}

var (
	_ policy.Policy         = (*Default)(nil)
	_ policy.VictimSelector = (*Default)(nil)
	_ policy.OptionScorer   = (*Default)(nil)

	_ policy.BindingPreemptor = (*Default)(nil)
)

// New returns a ready policy with the newest version of the rules, 2.
func New() *Default { return &Default{relocates: true} }

// NewVersion1 returns a policy with version 1 of the rules, in which equal candidates are
// evicted in the order of their IDs wherever they could run instead.
func NewVersion1() *Default { return &Default{} }

// Info implements policy.Policy. The columns omit start times: age does not count, so
// that answers remain reusable while allocations get older.
func (p *Default) Info() policy.Info {
	info := policy.Info{
		Name:      "default",
		Ascending: true,
		Monotone:  true,
		Delta:     Delta,
		Columns: policy.UseColumns | policy.MustLeaveColumn | policy.DeviceColumns |
			policy.FitColumns,
	}
	if p.relocates {
		info.Columns |= policy.RelocationColumns
	}
	return info
}

// SelectVictims implements policy.VictimSelector. It lists rows until the option fits
// by the columns that it sees, or all rows. The host reprieves redundant rows in
// reverse order of the list.
func (p *Default) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.need.Load(in.Preemptor.Ask, in.Rows.Use, nil)
	p.shortfall.Load(in)
	if p.relocates {
		p.relocation.Load(&in.Rows)
	}
	priority := in.Rows.Priority
	for i := range in.Len() {
		p.shortfall.Reset(i)
		p.need.Reset()
		end := int(in.FirstRow[i+1])
		for from := int(in.FirstRow[i]); from < end && !p.shortfall.Covered(); {
			to := GroupEnd(priority, from, end)
			p.pickGroup(from, to, out)
			from = to
		}
		out.Next()
	}
	return nil
}

// PreemptBindings implements policy.BindingPreemptor. Bindings have their own order,
// which is Karmada's.
func (p *Default) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	return p.bindings.PreemptBindings(in, out)
}

// pickGroup picks rows of one priority until the option fits or all are picked.
func (p *Default) pickGroup(from, to int, out *policy.Selection) {
	if to-from == 1 {
		p.pick(from, out)
		return
	}
	gone := p.scratch(to - from)
	for left := to - from; left > 1; left-- {
		j := p.need.Nearest(gone, from)
		if p.relocates {
			j = p.need.prefer(&p.relocation, gone, from, j)
		}
		gone[j] = true
		p.pick(from+j, out)
		if p.shortfall.Covered() {
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
	p.shortfall.Pick(row)
	if !p.shortfall.Covered() { // otherwise the distance is not needed again
		p.need.Pick(row)
	}
}

func (p *Default) scratch(n int) []bool {
	if n > len(p.picked) {
		p.picked = make([]bool, 2*n)
	}
	return p.picked[:n]
}

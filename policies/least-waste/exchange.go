package leastwaste

import "slices"

// passes limits how often all rows are tried for an exchange, which bounds a call.
// Most options are finished after the first pass that changes something.
const passes = 8

// exchangeAll replaces victims by one row at a time, the cheapest first, as long as
// that lowers the cost.
func (p *Policy) exchangeAll() {
	p.order = p.order[:0]
	for row := p.first; row < p.end; row++ {
		if p.rank(int32(row)).gain > 0 {
			p.order = append(p.order, int32(row))
		}
	}
	slices.SortFunc(p.order, p.dearer)
	for range passes {
		better := false
		for _, row := range slices.Backward(p.order) {
			if !p.taken[int(row)-p.first] && p.exchange(int(row)) {
				better = true
			}
		}
		if !better {
			return
		}
	}
}

// exchange picks a row in place of the victims that it makes redundant, if they cost
// more.
func (p *Policy) exchange(row int) bool {
	if len(p.victims) == 0 {
		return false
	}
	r, top := p.rank(int32(row)), p.rank(p.victims[0]).band
	if sum, _ := p.split(p.victims); r.band > top || r.band == top && r.cost > sum {
		return false // more expensive than all of them
	}
	p.balance.Pick(row)
	p.spare()
	p.alone[0] = int32(row)
	if p.compare(p.alone[:], p.spared) >= 0 {
		for _, v := range p.spared {
			p.balance.Pick(int(v))
		}
		p.balance.Unpick(row)
		return false
	}
	p.taken[row-p.first] = true
	p.victims = append(p.victims, int32(row))
	p.forget()
	slices.SortFunc(p.victims, p.dearer)
	return true
}

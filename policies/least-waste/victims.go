package leastwaste

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.rows = &in.Rows
	p.waste.Load(&in.Rows, in.Shared)
	if p.relocates {
		p.relocation.Load(&in.Rows)
	}
	p.seeds.Reset()
	if err := p.greedy.SelectVictims(in, &p.seeds); err != nil {
		return err
	}
	p.balance.Load(in)
	p.other.Load(in)
	for i := range in.Len() {
		p.begin(i, int(in.FirstRow[i]), int(in.FirstRow[i+1]))
		if p.cover() {
			p.spareAll()
			p.preferDefault(i)
			p.exchangeAll()
			p.list(out)
		}
		out.Next()
	}
	p.rows = nil
	return nil
}

// begin starts option i with no row picked.
func (p *Policy) begin(i, first, end int) {
	p.first, p.end = first, end
	p.balance.Reset(i)
	p.victims, p.ranks = p.victims[:0], p.ranks[:0]
	p.taken = slices.Grow(p.taken[:0], end-first)[:end-first]
	clear(p.taken)
	for row := first; row < end; row++ {
		gain, _ := p.balance.Gain(row)
		p.ranks = append(p.ranks, rank{p.cost(row), gain, p.band(p.rows.Priority[row])})
	}
}

// list picks the victims in row order.
func (p *Policy) list(out *policy.Selection) {
	for j, taken := range p.taken {
		if taken {
			out.Pick(p.first + j)
		}
	}
}

func (p *Policy) take(row int) {
	p.balance.Pick(row)
	p.victims = append(p.victims, int32(row))
	p.taken[row-p.first] = true
}

// cover picks rows until the preemptor fits: first those that must be evicted, then
// band by band the row with the lowest cost per gain. It returns false if all rows
// together do not suffice.
func (p *Policy) cover() bool {
	for row := p.first; row < p.end; row++ {
		if p.balance.MustLeave(row) {
			p.take(row)
		}
	}
	for from := p.first; !p.balance.Covered(); {
		if from == p.end {
			return false
		}
		to := p.bandEnd(from)
		for !p.balance.Covered() {
			row := p.cheapest(from, to)
			if row < 0 {
				break
			}
			p.take(row)
		}
		from = to
	}
	return true
}

// bandEnd returns the end of the rows in the band of row from. Rows are sorted by
// priority.
func (p *Policy) bandEnd(from int) int {
	band, to := p.rank(int32(from)).band, from+1
	for to < p.end && p.rank(int32(to)).band == band {
		to++
	}
	return to
}

// cheapest returns the row with the highest gain per cost; among equals of one priority the
// one that can best run elsewhere, then the smaller surplus, then the first. It is negative
// if no row has a gain.
func (p *Policy) cheapest(from, to int) int {
	best, bestPrice, bestSpill := -1, math.Inf(1), 0.0
	for row := from; row < to; row++ {
		if p.taken[row-p.first] {
			continue
		}
		gain, spill := p.balance.Gain(row)
		if gain <= 0 {
			continue
		}
		price := float64(p.rank(int32(row)).cost) / gain
		if best < 0 || price < bestPrice ||
			price == bestPrice && p.rows.Priority[row] == p.rows.Priority[best] && p.breaksTie(row, best, spill < bestSpill) {
			best, bestPrice, bestSpill = row, price, spill
		}
	}
	return best
}

// breaksTie reports whether a row is evicted before an equal one: because it can better run
// elsewhere, or if neither can, because its surplus is smaller.
func (p *Policy) breaksTie(row, other int, lessSurplus bool) bool {
	return p.relocation.Better(row, other) || lessSurplus && !p.relocation.Better(other, row)
}

// spareAll reprieves redundant victims, the most expensive first.
func (p *Policy) spareAll() {
	slices.SortFunc(p.victims, p.dearer)
	p.spare()
	p.forget()
}

// spare reprieves every redundant victim, in order, and records it in p.spared.
func (p *Policy) spare() {
	p.spared = p.spared[:0]
	for _, v := range p.victims {
		if p.balance.Reprieve(int(v)) {
			p.spared = append(p.spared, v)
		}
	}
}

// forget removes the reprieved rows from the list.
func (p *Policy) forget() {
	for _, v := range p.spared {
		p.taken[int(v)-p.first] = false
	}
	p.victims = slices.DeleteFunc(p.victims, func(v int32) bool { return !p.taken[int(v)-p.first] })
}

// preferDefault picks default's victims instead if they cost less, so that no set of
// default is ever cheaper.
func (p *Policy) preferDefault(i int) {
	picks := p.seeds.Rows(i)
	p.other.Reset(i)
	for _, row := range picks {
		p.other.Pick(int(row))
	}
	p.needed = p.needed[:0]
	for _, row := range slices.Backward(picks) {
		if !p.other.Reprieve(int(row)) {
			p.needed = append(p.needed, row)
		}
	}
	slices.SortFunc(p.needed, p.dearer)
	if p.compare(p.needed, p.victims) >= 0 {
		return
	}
	for _, v := range p.victims {
		p.balance.Unpick(int(v))
		p.taken[int(v)-p.first] = false
	}
	p.victims = p.victims[:0]
	for _, row := range p.needed {
		p.take(int(row))
	}
}

package optimal

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.rows, p.cut = &in.Rows, 0
	if p.cost == byWaste {
		p.waste.Load(&in.Rows, in.Shared)
	}
	p.seeds.Reset()
	if err := p.greedy.SelectVictims(in, &p.seeds); err != nil {
		return err
	}
	p.balance.Load(in)
	p.budgets.load(in)
	for i := range in.Len() {
		p.balance.Reset(i)
		if p.seed(p.seeds.Rows(i)) {
			p.improve(int(in.FirstRow[i]), int(in.FirstRow[i+1]))
			p.avoid(int(in.FirstRow[i]), int(in.FirstRow[i+1]))
			p.list(out)
		}
		out.Next()
	}
	p.rows = nil
	return nil
}

// seed makes default's picks the best known set, after the host's reprieve. It
// returns false if they do not cover the option, in which case no set does.
func (p *Policy) seed(picks []int32) bool {
	p.fixed, p.best = p.fixed[:0], p.best[:0]
	for _, row := range picks {
		p.balance.Pick(int(row))
	}
	if !p.balance.Covered() {
		return false
	}
	for _, row := range slices.Backward(picks) {
		switch {
		case p.balance.MustLeave(int(row)):
			p.fixed = append(p.fixed, row)
		case !p.balance.Reprieve(int(row)):
			p.best = append(p.best, row)
		}
	}
	return true
}

// improve searches for a cheaper set among the rows first to end.
func (p *Policy) improve(first, end int) {
	for _, row := range p.best {
		p.balance.Unpick(int(row)) // the picks that remain are fixed
	}
	if len(p.best) == 0 {
		return
	}
	if p.cost == byPriority {
		end = p.reach(first, end)
	}
	p.lay(first, end)
	s := &p.search
	if better := s.run(p.costOfAll(p.best)); better != nil {
		p.best = append(p.best[:0], better...)
	}
	if s.steps > s.maxSteps {
		p.cut++
	}
}

// lay starts a search among the rows first to end.
func (p *Policy) lay(first, end int) {
	s := &p.search
	s.begin(p.maxSteps)
	for row := first; row < end; row++ {
		if gain, spill := p.balance.Gain(row); gain > 0 && !p.balance.MustLeave(row) {
			s.add(int32(row), p.costOf(row), gain, spill)
		}
	}
	s.sort()
	p.balance.EachShortfall(s.addColumn)
}

// reach returns the end of the rows that may be evicted without disturbing a higher
// priority than necessary. The best known set, which is default's, determines it.
func (p *Policy) reach(first, end int) int {
	priority := p.rows.Priority
	highest := priority[p.best[0]]
	for _, rows := range [2][]int32{p.best, p.fixed} {
		for _, row := range rows {
			highest = max(highest, priority[row])
		}
	}
	n, _ := slices.BinarySearchFunc(priority[first:end], highest, func(p, highest int32) int {
		if p <= highest {
			return -1
		}
		return 1
	})
	return first + n
}

func (p *Policy) costOf(row int) cost {
	c := cost{count: 1, sum: int64(p.rows.Priority[row])}
	if p.cost == byWaste {
		c.waste = p.waste.Of(row)
	}
	return c
}

func (p *Policy) costOfAll(rows []int32) (sum cost) {
	for _, row := range rows {
		sum.add(p.costOf(int(row)))
	}
	return sum
}

// list picks the best set and the rows that must be evicted, in row order.
func (p *Policy) list(out *policy.Selection) {
	p.best = append(p.best, p.fixed...)
	slices.Sort(p.best)
	for _, row := range p.best {
		out.Pick(int(row))
	}
}

// cost is the cost of a set of victims, compared field by field. If waste is not
// minimised, it is 0.
type cost struct{ waste, count, sum int64 }

func (c *cost) add(d cost) {
	c.waste += d.waste
	c.count += d.count
	c.sum += d.sum
}

func (c *cost) subtract(d cost) {
	c.waste -= d.waste
	c.count -= d.count
	c.sum -= d.sum
}

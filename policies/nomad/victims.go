package nomad

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.load(in)
	for i := range in.Len() {
		p.first, p.end = int(in.FirstRow[i]), int(in.FirstRow[i+1])
		p.victims = p.victims[:0]
		if p.takeNetwork(i) && p.takeDevices(i) && p.takeRest(i) {
			for _, v := range p.victims {
				out.Pick(int(v))
			}
		}
		out.Next()
		for _, v := range p.victims {
			p.gone[int(v)-p.first] = false
		}
	}
	p.in = nil
	return nil
}

// load prepares the state of one call.
func (p *Policy) load(in *policy.Candidates) {
	p.in = in
	p.network = slices.Index(in.Dims, Network)
	p.skip = p.skip[:0]
	for d := range in.Dims {
		p.skip = append(p.skip, d == p.network)
	}
	p.need.Load(in.Preemptor.Ask, in.Rows.Use, p.skip)
	p.lack.LoadDims(in, p.skip)

	widest := 0
	for i := range in.Len() {
		widest = max(widest, int(in.FirstRow[i+1]-in.FirstRow[i]))
	}
	if widest > len(p.gone) {
		p.gone = make([]bool, widest)
		p.penalty = make([]float64, widest)
	}
}

// take picks a row.
func (p *Policy) take(row int) {
	p.victims = append(p.victims, int32(row))
	p.gone[row-p.first] = true
}

// takeRest is the last step: all dimensions except the network. Victims of earlier
// steps count as free capacity.
func (p *Policy) takeRest(i int) bool {
	p.resetLack(i, len(p.victims))
	if p.lack.Covered() {
		return true
	}
	step := len(p.victims)
	p.need.Reset()
	for from := p.first; !p.lack.Covered(); {
		if from == p.end {
			return false
		}
		to := rules.GroupEnd(p.in.Rows.Priority, from, p.end)
		p.takeGroup(from, to)
		from = to
	}
	p.filterRest(i, step)
	return true
}

// resetLack restarts the shortfall of option i with the first n victims evicted.
func (p *Policy) resetLack(i, n int) {
	p.lack.Reset(i)
	for _, v := range p.victims[:n] {
		p.lack.Pick(int(v))
	}
}

// takeGroup picks rows of one priority until the preemptor fits or all are picked.
func (p *Policy) takeGroup(from, to int) {
	gone := p.gone[from-p.first : to-p.first]
	left := 0
	for _, g := range gone {
		if !g {
			left++
		}
	}
	penalised := left > 1 && p.penalise(from, to)
	for ; left > 0; left-- {
		var j int
		switch {
		case left == 1:
			j = slices.Index(gone, false)
		case penalised:
			j = p.need.NearestPenalised(gone, from, p.penalty)
		default:
			j = p.need.Nearest(gone, from)
		}
		p.take(from + j)
		p.lack.Pick(from + j)
		if p.lack.Covered() {
			return
		}
		p.need.Pick(from + j)
	}
}

// filterRest drops the victims of the last step that are redundant once the ones
// farthest from the request are evicted.
func (p *Policy) filterRest(i, step int) {
	if len(p.victims) == step+1 {
		return
	}
	p.need.Reset() // to the whole request
	p.order = p.order[:0]
	for _, v := range p.victims[step:] {
		p.order = append(p.order, measured{p.need.Distance(int(v)), v})
	}
	p.resetLack(i, step)
	for _, m := range p.reorder(step) {
		p.take(int(m.row))
		p.lack.Pick(int(m.row))
		if p.lack.Covered() {
			return
		}
	}
}

package nomad

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// takeNetwork is the first step: owners of needed host ports, then bandwidth. A node
// has one network, and a row takes part if it has bandwidth or holds a needed port. A
// row that excludes the preemptor for another reason than a port cannot be evicted
// under these rules.
func (p *Policy) takeNetwork(i int) bool {
	lacking := 0.0
	if p.network >= 0 {
		lacking = p.in.Need[p.network][i]
	}
	if lacking <= 0 && (len(p.in.Rows.MustLeave) == 0 || p.in.MustLeave[i] == 0) {
		return true
	}
	freed, ok := p.takePorts()
	if !ok {
		return false
	}
	if freed < lacking && !p.takeBandwidth(lacking-freed) {
		return false
	}
	return p.filterNetwork(lacking)
}

// takePorts picks the rows that hold needed ports and returns the bandwidth that this
// frees.
func (p *Policy) takePorts() (freed float64, ok bool) {
	if len(p.in.Rows.MustLeave) == 0 {
		return 0, true
	}
	for row := p.first; row < p.end; row++ {
		bits := p.in.Rows.MustLeave[row]
		if bits&^policy.MustLeavePort != 0 {
			return 0, false
		}
		if bits == 0 {
			continue
		}
		p.take(row)
		if p.network >= 0 {
			freed += p.in.Rows.Use[p.network][row]
		}
	}
	return freed, true
}

// takeBandwidth picks rows by priority, and within a priority by the distance of
// their bandwidth to the whole request, until enough is free.
func (p *Policy) takeBandwidth(lacking float64) bool {
	use := p.in.Rows.Use[p.network]
	ask := p.in.Preemptor.Ask[p.network]
	for from := p.first; from < p.end; {
		to := rules.GroupEnd(p.in.Rows.Priority, from, p.end)
		if !p.penalise(from, to) {
			clear(p.penalty[:to-from])
		}
		for {
			row, best := -1, math.Inf(1)
			for j := from; j < to; j++ {
				if p.gone[j-p.first] || use[j] <= 0 {
					continue
				}
				if score := apart(ask, use[j]) + p.penalty[j-from]; score < best {
					row, best = j, score
				}
			}
			if row < 0 {
				break
			}
			p.take(row)
			if lacking -= use[row]; lacking <= 0 {
				return true
			}
		}
		from = to
	}
	return false
}

// filterNetwork is the superset filter by bandwidth alone. If no bandwidth is
// requested, the filter never ends early and all victims remain. If some is
// requested, the filter may drop the owner of a needed port, and then the option is
// infeasible.
func (p *Policy) filterNetwork(lacking float64) bool {
	if len(p.victims) <= 1 || p.network < 0 || p.in.Preemptor.Ask[p.network] <= 0 {
		return true
	}
	use, ask := p.in.Rows.Use[p.network], p.in.Preemptor.Ask[p.network]
	p.order = p.order[:0]
	for _, v := range p.victims {
		p.order = append(p.order, measured{apart(ask, use[v]), v})
	}
	order := p.reorder(0)
	for k, m := range order {
		p.take(int(m.row))
		if lacking -= use[m.row]; lacking <= 0 {
			return !p.anyPort(order[k+1:])
		}
	}
	return true
}

func (p *Policy) anyPort(spared []measured) bool {
	if len(p.in.Rows.MustLeave) == 0 {
		return false
	}
	for _, m := range spared {
		if p.in.Rows.MustLeave[m.row]&policy.MustLeavePort != 0 {
			return true
		}
	}
	return false
}

// apart returns the distance of one bandwidth to another, relative to the first.
func apart(ask, use float64) float64 {
	if ask <= 0 {
		return 0
	}
	return math.Abs((ask - use) / ask)
}

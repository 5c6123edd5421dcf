package nomad

// takeDevices is the second step: for one request after the other, it picks rows by
// priority until the chosen device group has enough instances. Its filter counts the
// instances of victims and not the free ones. An option is a choice of groups;
// ScoreOptions ranks the choices.
func (p *Policy) takeDevices(i int) bool {
	for r, need := range p.in.DeviceNeed {
		held := p.in.Rows.Devices[r]
		lacking := need[i]
		if lacking <= 0 {
			continue
		}
		for _, v := range p.victims {
			lacking -= held[v]
		}
		if lacking <= 0 {
			continue
		}
		step := len(p.victims)
		for row := p.first; lacking > 0; row++ {
			if row == p.end {
				return false
			}
			if held[row] > 0 && !p.gone[row-p.first] {
				p.take(row)
				lacking -= held[row]
			}
		}
		p.filterDevices(held, float64(p.in.Preemptor.Devices[r].Count), step)
	}
	return true
}

func (p *Policy) filterDevices(held []float64, count float64, step int) {
	p.order = p.order[:0]
	for _, v := range p.victims[step:] {
		p.order = append(p.order, measured{held[v], v})
	}
	sum := 0.0
	for _, m := range p.reorder(step) {
		p.take(int(m.row))
		if sum += m.by; sum >= count {
			return
		}
	}
}

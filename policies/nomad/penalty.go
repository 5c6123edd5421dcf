package nomad

// If Nomad evicts more allocations of a group in one plan than it may migrate at a
// time, the group is penalised among others of its priority. The penalty never
// protects it from being evicted before a higher priority.
const penaltyStep = 50.0

// penalise fills p.penalty for rows from to to and reports whether any row has a
// penalty. Only victims that the plan already holds count, not those of the current
// option.
func (p *Policy) penalise(from, to int) bool {
	rows := &p.in.Rows
	if len(rows.Evictions) == 0 {
		return false
	}
	evictions, limits := rows.Evictions[from:to], rows.EvictionLimit[from:to]
	for j, limit := range limits {
		if limit > 0 && evictions[j] >= limit {
			p.fillPenalties(evictions, limits)
			return true
		}
	}
	return false
}

func (p *Policy) fillPenalties(evictions, limits []int32) {
	for j, limit := range limits {
		p.penalty[j] = 0
		if k := evictions[j]; limit > 0 && k >= limit {
			p.penalty[j] = float64(penaltyStep * float64(int64(k)+1-int64(limit)))
		}
	}
}

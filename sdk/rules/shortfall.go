package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Shortfall is the amount that an option lacks before the preemptor fits, as far as
// the columns show: resources, device instances, and rows that must be evicted.
//
// Call Load once per call of the hook, Reset for each option, and Pick for each pick.
type Shortfall struct {
	// The columns of Need and DeviceNeed, and the amounts that rows free of each.
	need, frees [][]float64
	// MustLeave of the options and of the rows; nil if they are ignored.
	mustLeave []int32
	leaves    []uint8

	col  []int32   // columns not covered yet
	left []float64 // remaining shortfall of each, above zero
	must int32     // rows that must be evicted and are not picked
}

// Load sets the options.
func (l *Shortfall) Load(in *policy.Candidates) {
	l.need = append(append(l.need[:0], in.Need...), in.DeviceNeed...)
	l.frees = append(append(l.frees[:0], in.Rows.Use...), in.Rows.Devices...)
	l.mustLeave, l.leaves = in.MustLeave, in.Rows.MustLeave
}

// LoadDims is Load for policies that proceed step by step: it considers only the
// dimensions that skip does not mark.
func (l *Shortfall) LoadDims(in *policy.Candidates, skip []bool) {
	l.need, l.frees = l.need[:0], l.frees[:0]
	for d, need := range in.Need {
		if !skip[d] {
			l.need, l.frees = append(l.need, need), append(l.frees, in.Rows.Use[d])
		}
	}
	l.mustLeave, l.leaves = nil, nil
}

// Reset starts option i with no row picked.
func (l *Shortfall) Reset(i int) {
	l.col, l.left, l.must = l.col[:0], l.left[:0], 0
	for c, need := range l.need {
		if n := need[i]; n > 0 {
			l.col, l.left = append(l.col, int32(c)), append(l.left, n)
		}
	}
	if len(l.leaves) > 0 {
		l.must = l.mustLeave[i]
	}
}

// Pick subtracts the amounts that row frees.
func (l *Shortfall) Pick(row int) {
	kept := 0
	for k, c := range l.col {
		if left := l.left[k] - l.frees[c][row]; left > 0 {
			l.col[kept], l.left[kept] = c, left
			kept++
		}
	}
	l.col, l.left = l.col[:kept], l.left[:kept]
	if l.must > 0 && l.leaves[row] != 0 {
		l.must--
	}
}

// Covered reports whether the preemptor fits.
func (l *Shortfall) Covered() bool { return len(l.col) == 0 && l.must == 0 }

// GroupEnd returns the end of the rows that have the priority of row from. The rows
// must be sorted by priority.
func GroupEnd(priority []int32, from, end int) int {
	p := priority[from]
	to := from + 1
	for to < end && priority[to] == p {
		to++
	}
	return to
}

package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Lack is what an option lacks before the preemptor fits, as far as the columns
// tell: resources, device instances, and rows that must leave.
//
// Load it once a call, Reset it for each option, Take each pick.
type Lack struct {
	// The columns of Need and DeviceNeed, and of what rows free of each.
	need, frees [][]float64
	// MustLeave of the options and of the rows; nil when it is not looked at.
	mustLeave []int32
	leaves    []uint8

	col  []int32   // columns not covered yet
	left []float64 // what each of them lacks, above zero
	must int32     // rows that must leave and have not been taken
}

// Load sets the options that the lack is of.
func (l *Lack) Load(in *policy.Candidates) {
	l.need = append(append(l.need[:0], in.Need...), in.DeviceNeed...)
	l.frees = append(append(l.frees[:0], in.Rows.Use...), in.Rows.Devices...)
	l.mustLeave, l.leaves = in.MustLeave, in.Rows.MustLeave
}

// LoadDims is Load for policies that go step by step: it looks at the
// dimensions that skip does not mark, and at nothing else.
func (l *Lack) LoadDims(in *policy.Candidates, skip []bool) {
	l.need, l.frees = l.need[:0], l.frees[:0]
	for d, need := range in.Need {
		if !skip[d] {
			l.need, l.frees = append(l.need, need), append(l.frees, in.Rows.Use[d])
		}
	}
	l.mustLeave, l.leaves = nil, nil
}

// Reset starts option i with no row taken.
func (l *Lack) Reset(i int) {
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

// Take subtracts what row frees.
func (l *Lack) Take(row int) {
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

// Covered is whether nothing is lacking any more.
func (l *Lack) Covered() bool { return len(l.col) == 0 && l.must == 0 }

// GroupEnd returns the end of the rows that have the priority of row from; they
// are sorted by it.
func GroupEnd(priority []int32, from, end int) int {
	p := priority[from]
	to := from + 1
	for to < end && priority[to] == p {
		to++
	}
	return to
}

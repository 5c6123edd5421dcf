package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Balance is a Shortfall for policies that revise their choice: rows are picked and
// unpicked in any order. Amounts are whole numbers, so that Unpick undoes Pick
// exactly.
//
// Call Load once per call of the hook and Reset for each option.
type Balance struct {
	shortfall Shortfall // holds the columns

	col  []int32   // columns with a shortfall if no row is picked
	left []float64 // remaining shortfall of each; zero or negative if covered
	must int32     // rows that must be evicted and are not picked
}

// Load sets the options.
func (b *Balance) Load(in *policy.Candidates) { b.shortfall.Load(in) }

// Reset starts option i with no row picked.
func (b *Balance) Reset(i int) {
	b.shortfall.Reset(i)
	b.col = append(b.col[:0], b.shortfall.col...)
	b.left = append(b.left[:0], b.shortfall.left...)
	b.must = b.shortfall.must
}

// Pick subtracts the amounts that row frees.
func (b *Balance) Pick(row int) {
	for k, c := range b.col {
		b.left[k] -= b.shortfall.frees[c][row]
	}
	if b.MustLeave(row) {
		b.must--
	}
}

// Unpick undoes Pick.
func (b *Balance) Unpick(row int) {
	for k, c := range b.col {
		b.left[k] += b.shortfall.frees[c][row]
	}
	if b.MustLeave(row) {
		b.must++
	}
}

// Covered reports whether the preemptor fits.
func (b *Balance) Covered() bool {
	for _, left := range b.left {
		if left > 0 {
			return false
		}
	}
	return b.must == 0
}

// MustLeave reports whether the option cannot fit unless row is evicted.
func (b *Balance) MustLeave(row int) bool {
	return len(b.shortfall.leaves) > 0 && b.shortfall.leaves[row] != 0
}

// Reprieve unpicks row if the option remains covered without it, and reports whether
// it did. The row must be picked.
func (b *Balance) Reprieve(row int) bool {
	b.Unpick(row)
	if b.Covered() {
		return true
	}
	b.Pick(row)
	return false
}

// Gain returns how much of the shortfall row would free: the sum, over the columns
// with a shortfall, of the share that row covers. It is 0 if picking the row has no
// effect. Spill is the amount beyond the shortfall that the row would free, in the
// same measure.
func (b *Balance) Gain(row int) (gain, spill float64) {
	for k, c := range b.col {
		if left := b.left[k]; left > 0 {
			frees := b.shortfall.frees[c][row]
			useful := min(frees, left)
			gain += useful / left
			spill += (frees - useful) / left
		}
	}
	return gain, spill
}

// EachShortfall calls visit for every column with a shortfall, with the shortfall and
// the amount that each row of the call frees of it.
func (b *Balance) EachShortfall(visit func(left float64, frees []float64)) {
	for k, c := range b.col {
		if b.left[k] > 0 {
			visit(b.left[k], b.shortfall.frees[c])
		}
	}
}

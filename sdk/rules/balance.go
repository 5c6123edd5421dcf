package rules

import "github.com/cede-scheduler/cede/sdk/policy"

// Balance is Lack for policies that change their mind: rows are taken and given
// back in any order. Amounts are whole numbers, so that giving back undoes
// taking to the bit.
//
// Load it once a call and Reset it for each option.
type Balance struct {
	lack Lack // holds the columns

	col  []int32   // those in which something is lacking when no row is taken
	left []float64 // what each of them lacks; zero or negative: enough
	must int32     // rows that must leave and are not taken
}

// Load sets the options that the balance is of.
func (b *Balance) Load(in *policy.Candidates) { b.lack.Load(in) }

// Reset starts option i with no row taken.
func (b *Balance) Reset(i int) {
	b.lack.Reset(i)
	b.col = append(b.col[:0], b.lack.col...)
	b.left = append(b.left[:0], b.lack.left...)
	b.must = b.lack.must
}

// Take counts what row frees as free.
func (b *Balance) Take(row int) {
	for k, c := range b.col {
		b.left[k] -= b.lack.frees[c][row]
	}
	if b.MustLeave(row) {
		b.must--
	}
}

// Give undoes Take.
func (b *Balance) Give(row int) {
	for k, c := range b.col {
		b.left[k] += b.lack.frees[c][row]
	}
	if b.MustLeave(row) {
		b.must++
	}
}

// Covered is whether nothing is lacking.
func (b *Balance) Covered() bool {
	for _, left := range b.left {
		if left > 0 {
			return false
		}
	}
	return b.must == 0
}

// MustLeave is whether the option cannot fit while row stays.
func (b *Balance) MustLeave(row int) bool {
	return len(b.lack.leaves) > 0 && b.lack.leaves[row] != 0
}

// Spare is whether the option stays covered without row, which is taken. If so
// the row is given back.
func (b *Balance) Spare(row int) bool {
	b.Give(row)
	if b.Covered() {
		return true
	}
	b.Take(row)
	return false
}

// Gain is how much of what is lacking row would free: the sum, over what is
// lacking, of the share of it that row covers; 0: taking it brings nothing.
// Spill is what it would free beyond that, in the same measure.
func (b *Balance) Gain(row int) (gain, spill float64) {
	for k, c := range b.col {
		if left := b.left[k]; left > 0 {
			frees := b.lack.frees[c][row]
			useful := min(frees, left)
			gain += useful / left
			spill += (frees - useful) / left
		}
	}
	return gain, spill
}

// Lacking calls visit for every column in which something is lacking, with
// what is lacking and what each row of the call frees of it.
func (b *Balance) Lacking(visit func(left float64, frees []float64)) {
	for k, c := range b.col {
		if b.left[k] > 0 {
			visit(b.left[k], b.lack.frees[c])
		}
	}
}

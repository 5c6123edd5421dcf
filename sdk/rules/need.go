package rules

import "github.com/cede-scheduler/cede/sdk/fmath"

// Need is the vector that victims are measured against: the ask of the
// preemptor, less what the victims picked so far free. Free room is not taken
// off, and components may go negative. A dimension counts while its need is
// above zero.
//
// Load it once a call, Reset it for each option, Take each pick.
type Need struct {
	use  [][]float64 // as given
	ask  []float64   // of the asked dimensions
	asks []int32     // which those are, ascending

	// The dimensions that still count, ascending, and the need of each. late is a
	// row taken and not subtracted yet, since often nobody asks again, or -1.
	dim  []int32
	left []float64
	late int
	full bool // nothing is subtracted
}

// Load sets the ask and the columns of use that it is compared with, indexed by
// dimension. skip marks dimensions to leave out; nil means none.
func (n *Need) Load(ask []float64, use [][]float64, skip []bool) {
	n.use, n.ask, n.asks = use, n.ask[:0], n.asks[:0]
	for d, a := range ask {
		if a > 0 && (skip == nil || !skip[d]) {
			n.ask = append(n.ask, a)
			n.asks = append(n.asks, int32(d))
		}
	}
	n.full = false
	n.Reset()
}

// Reset forgets the picks.
func (n *Need) Reset() {
	n.late = -1
	if !n.full {
		n.dim = append(n.dim[:0], n.asks...)
		n.left = append(n.left[:0], n.ask...)
		n.full = true
	}
}

// Take subtracts what row frees.
func (n *Need) Take(row int) {
	if n.late >= 0 {
		n.subtract()
	}
	n.late = row
}

// subtract catches up with the last Take.
func (n *Need) subtract() {
	kept := 0
	for k, d := range n.dim {
		if left := n.left[k] - n.use[d][n.late]; left > 0 {
			n.dim[kept], n.left[kept] = d, left
			kept++
		}
	}
	n.dim, n.left = n.dim[:kept], n.left[:kept]
	n.late, n.full = -1, false
}

// Distance of a row to the need: the square root of the sum, over the
// dimensions that count, of ((need-use)/need)². After Reset that is the
// distance to the whole ask.
func (n *Need) Distance(row int) float64 {
	if n.late >= 0 {
		n.subtract()
	}
	return fmath.Sqrt(n.square(row))
}

// square is the square of the distance, once all that was taken is subtracted.
func (n *Need) square(row int) float64 {
	sum := 0.0
	for k, d := range n.dim {
		r := (n.left[k] - n.use[d][row]) / n.left[k]
		sum += float64(r * r)
	}
	return sum
}

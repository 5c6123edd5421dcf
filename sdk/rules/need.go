package rules

import "github.com/cede-scheduler/cede/sdk/fmath"

// Need is the vector that victims are compared with: the preemptor's request, less
// the amounts that the picked victims free. Free capacity is not subtracted, and
// components may become negative. A dimension counts while its need is above zero.
//
// Call Load once per call of the hook, Reset for each option, and Pick for each pick.
type Need struct {
	use  [][]float64 // as passed to Load
	ask  []float64   // requested amounts that are above zero
	asks []int32     // their dimensions, ascending

	// The dimensions that still count, ascending, and the need of each. pending is a
	// row that is picked but not subtracted yet, because the distance is often not
	// needed again; -1 if there is none.
	dim     []int32
	left    []float64
	pending int
	full    bool // nothing is subtracted
}

// Load sets the request and the columns of use that it is compared with, indexed by
// dimension. skip marks dimensions to omit; nil means none.
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

// Reset discards the picks.
func (n *Need) Reset() {
	n.pending = -1
	if !n.full {
		n.dim = append(n.dim[:0], n.asks...)
		n.left = append(n.left[:0], n.ask...)
		n.full = true
	}
}

// Pick subtracts the amounts that row frees.
func (n *Need) Pick(row int) {
	if n.pending >= 0 {
		n.subtract()
	}
	n.pending = row
}

// subtract applies the last Pick.
func (n *Need) subtract() {
	kept := 0
	for k, d := range n.dim {
		if left := n.left[k] - n.use[d][n.pending]; left > 0 {
			n.dim[kept], n.left[kept] = d, left
			kept++
		}
	}
	n.dim, n.left = n.dim[:kept], n.left[:kept]
	n.pending, n.full = -1, false
}

// Distance returns the distance of a row to the need: the square root of the sum,
// over the dimensions that count, of ((need-use)/need)². After Reset it is the
// distance to the whole request.
func (n *Need) Distance(row int) float64 {
	if n.pending >= 0 {
		n.subtract()
	}
	return fmath.Sqrt(n.square(row))
}

// square returns the square of the distance. No pick may be pending.
func (n *Need) square(row int) float64 {
	sum := 0.0
	for k, d := range n.dim {
		r := (n.left[k] - n.use[d][row]) / n.left[k]
		sum += float64(r * r)
	}
	return sum
}

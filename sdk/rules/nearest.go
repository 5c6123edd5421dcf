package rules

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/fmath"
)

// Nearest returns the index j of the row first+j that is nearest to the need among
// the rows that gone does not mark. Among equals it returns the first. If all rows
// are marked, it returns len(gone).
//
// It compares sums of squares before it takes roots. A root never reverses an order,
// but it makes some different sums equal. It is therefore needed only if a sum is
// smaller than the best one: most distances cost no root, and the result is the same
// as if distances were compared.
func (n *Need) Nearest(gone []bool, first int) int {
	if n.pending >= 0 {
		n.subtract()
	}
	last := first + len(gone)
	switch len(n.dim) {
	case 0:
		for j, g := range gone {
			if !g {
				return j
			}
		}
		return len(gone)
	case 1:
		return nearest1(gone, n.use[n.dim[0]][first:last], n.left[0])
	case 2:
		return nearest2(gone, n.use[n.dim[0]][first:last], n.use[n.dim[1]][first:last], n.left[0], n.left[1])
	case 3:
		return nearest3(gone, n.use[n.dim[0]][first:last], n.use[n.dim[1]][first:last], n.use[n.dim[2]][first:last],
			n.left[0], n.left[1], n.left[2])
	case 4:
		return nearest4(gone, n.use[n.dim[0]][first:last], n.use[n.dim[1]][first:last], n.use[n.dim[2]][first:last],
			n.use[n.dim[3]][first:last], n.left[0], n.left[1], n.left[2], n.left[3])
	}
	best, bestSum := len(gone), math.Inf(1)
	for j, g := range gone {
		if g {
			continue
		}
		if sum := n.square(first + j); closer(sum, bestSum) {
			best, bestSum = j, sum
		}
	}
	return best
}

// prefer returns, among the rows that are as near as row first+best, which Nearest found,
// the one that can best run elsewhere; among equals the first. It costs one comparison of
// relocation per row unless relocation differs.
func (n *Need) prefer(r *Relocation, gone []bool, first, best int) int {
	nearest := first + best
	for j, g := range gone {
		if !g && r.Better(first+j, first+best) && !closer(n.square(nearest), n.square(first+j)) {
			best = j
		}
	}
	return best
}

// NearestPenalised is Nearest with penalty[j] added to the distance of row first+j.
func (n *Need) NearestPenalised(gone []bool, first int, penalty []float64) int {
	best, bestScore := len(gone), math.Inf(1)
	for j, g := range gone {
		if g {
			continue
		}
		if score := n.Distance(first+j) + penalty[j]; score < bestScore {
			best, bestScore = j, score
		}
	}
	return best
}

// closer reports whether the distance with square a is smaller than that with square
// b. Two roots can round to the same value only if the squares are within a few units
// in the last place of each other.
func closer(a, b float64) bool {
	return a < float64(b*(1-0x1p-50)) || a < b && fmath.Sqrt(a) < fmath.Sqrt(b)
}

// The searches for few dimensions hold columns and needs in registers. All lengths
// are equal; comparing j with each lets the compiler prove that no access is out of
// bounds.

func nearest1(gone []bool, u0 []float64, n0 float64) int {
	best, bestSum := len(gone), math.Inf(1)
	for j, g := range gone {
		if g || j >= len(u0) {
			continue
		}
		r0 := (n0 - u0[j]) / n0
		if sum := float64(r0 * r0); closer(sum, bestSum) {
			best, bestSum = j, sum
		}
	}
	return best
}

func nearest2(gone []bool, u0, u1 []float64, n0, n1 float64) int {
	best, bestSum := len(gone), math.Inf(1)
	for j, g := range gone {
		if g || j >= len(u0) || j >= len(u1) {
			continue
		}
		r0, r1 := (n0-u0[j])/n0, (n1-u1[j])/n1
		if sum := float64(r0*r0) + float64(r1*r1); closer(sum, bestSum) {
			best, bestSum = j, sum
		}
	}
	return best
}

func nearest3(gone []bool, u0, u1, u2 []float64, n0, n1, n2 float64) int {
	best, bestSum := len(gone), math.Inf(1)
	for j, g := range gone {
		if g || j >= len(u0) || j >= len(u1) || j >= len(u2) {
			continue
		}
		r0, r1, r2 := (n0-u0[j])/n0, (n1-u1[j])/n1, (n2-u2[j])/n2
		if sum := float64(r0*r0) + float64(r1*r1) + float64(r2*r2); closer(sum, bestSum) {
			best, bestSum = j, sum
		}
	}
	return best
}

func nearest4(gone []bool, u0, u1, u2, u3 []float64, n0, n1, n2, n3 float64) int {
	best, bestSum := len(gone), math.Inf(1)
	for j, g := range gone {
		if g || j >= len(u0) || j >= len(u1) || j >= len(u2) || j >= len(u3) {
			continue
		}
		r0, r1, r2, r3 := (n0-u0[j])/n0, (n1-u1[j])/n1, (n2-u2[j])/n2, (n3-u3[j])/n3
		sum := float64(r0*r0) + float64(r1*r1) + float64(r2*r2) + float64(r3*r3)
		if closer(sum, bestSum) {
			best, bestSum = j, sum
		}
	}
	return best
}

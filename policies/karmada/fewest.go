package karmada

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// search finds the smallest set of rows that covers the shortfall of an option; among
// sets of equal size, the least important rows. With one resource it is exact without
// backtracking: k rows cover a need if and only if the k largest do, so rows are
// picked from the least important on as long as the largest of the rest could still
// complete them. With several resources that test is necessary and not sufficient, so
// the search backtracks. It gives up after a number of steps and then picks the rows
// that free most.
type search struct {
	in    *policy.Candidates
	order []int32
	dims  []int     // dimensions with a shortfall
	need  []float64 // by position in dims
	picks []int32
	steps int
}

// mostSteps bounds the search on one option. It suffices for a few dozen candidates,
// as member clusters have, and not for thousands.
const mostSteps = 20_000

// fewest returns rows, the least important first.
func (s *search) fewest(in *policy.Candidates, option int, order []int32) []int32 {
	s.in, s.order, s.steps = in, order, mostSteps
	s.dims, s.need, s.picks = s.dims[:0], s.need[:0], s.picks[:0]
	for d := range in.Need {
		if n := in.Need[d][option]; n > 0 {
			s.dims, s.need = append(s.dims, d), append(s.need, n)
		}
	}
	least, ok := s.least()
	if !ok {
		return nil // all of them do not suffice
	}
	for k := least; k <= len(order) && s.steps > 0; k++ {
		if s.complete(0, k) {
			return s.picks
		}
	}
	return s.greedy()
}

// least returns a lower bound of the number of rows, considering each resource by itself.
func (s *search) least() (rows int, ok bool) {
	for j, d := range s.dims {
		column := make([]float64, 0, len(s.order))
		for _, row := range s.order {
			column = append(column, s.in.Rows.Use[d][row])
		}
		slices.SortFunc(column, func(a, b float64) int {
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		sum, k := 0.0, 0
		for ; k < len(column) && sum < s.need[j]; k++ {
			sum += column[k]
		}
		if sum < s.need[j] {
			return 0, false
		}
		rows = max(rows, k)
	}
	return rows, true
}

// complete picks the remaining number of rows from a position in the order on, so
// that they cover the rest of the need.
func (s *search) complete(from, left int) bool {
	if left == 0 {
		return s.covered()
	}
	for at := from; at+left <= len(s.order); at++ {
		if s.steps--; s.steps < 0 {
			return false
		}
		s.take(s.order[at], -1)
		s.picks = append(s.picks, s.order[at])
		if s.possible(at+1, left-1) && s.complete(at+1, left-1) {
			return true
		}
		s.picks = s.picks[:len(s.picks)-1]
		s.take(s.order[at], 1)
	}
	return false
}

func (s *search) take(row int32, sign float64) {
	for j, d := range s.dims {
		s.need[j] += float64(sign * s.in.Rows.Use[d][row])
	}
}

func (s *search) covered() bool {
	for _, n := range s.need {
		if n > 0 {
			return false
		}
	}
	return true
}

// possible reports whether, for each resource by itself, that many rows from a
// position on can free the rest of the need.
func (s *search) possible(from, left int) bool {
	for j, d := range s.dims {
		if s.need[j] > 0 && s.most(d, from, left) < s.need[j] {
			return false
		}
	}
	return true
}

// most returns the maximum that so many rows from a position on free of a resource.
func (s *search) most(d, from, rows int) float64 {
	if rows == 0 {
		return 0
	}
	top := make([]float64, 0, rows+1)
	for _, row := range s.order[from:] {
		x := s.in.Rows.Use[d][row]
		at := len(top)
		for at > 0 && top[at-1] < x {
			at--
		}
		if at < rows {
			if top = slices.Insert(top, at, x); len(top) > rows {
				top = top[:rows]
			}
		}
	}
	sum := 0.0
	for _, x := range top {
		sum += x
	}
	return sum
}

// greedy repeatedly picks the row that covers the largest share of the remaining
// need; among equals the least important. The host reprieves redundant rows. The
// search must have undone its picks.
func (s *search) greedy() []int32 {
	whole := slices.Clone(s.need)
	rest := slices.Clone(s.order)
	for !s.covered() && len(rest) > 0 {
		best, most := 0, -1.0
		for at, row := range rest {
			if share := s.share(row, whole); share > most {
				best, most = at, share
			}
		}
		s.take(rest[best], -1)
		s.picks = append(s.picks, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return s.picks
}

func (s *search) share(row int32, whole []float64) float64 {
	sum := 0.0
	for j, d := range s.dims {
		if s.need[j] > 0 {
			sum += min(s.in.Rows.Use[d][row], s.need[j]) / whole[j]
		}
	}
	return sum
}

package metrics

import (
	"math/bits"
	"slices"
)

// The regret search is cut off after regretWork candidates for one preemption and
// regretTotal candidates in one run. After the cut-off, the fewest found so far
// counts: a policy is never charged for a victim that was not proven needless.
// regretTotal takes about two seconds.
const (
	regretWork  = 20_000
	regretTotal = 20_000_000
)

// surrogateScale is the value of one whole need in the surrogate dimension.
const surrogateScale = 1 << 20

// regretSearch finds the smallest set of candidates that together free the needed
// amounts.
//
// This is a minimum cover in several dimensions: easy in one (largest first), hard in
// many. The one-dimensional solution is the bound that makes the search fast. With m
// picks left, the m largest amounts of the undecided candidates must cover the
// missing amount in every dimension, and in the sum of all dimensions as shares of
// their needs (the surrogate). Each round searches for fewer candidates than the
// previous one, so most calls end at the first bound.
type regretSearch struct {
	dims         int     // including the surrogate, which is last
	need         []int64 // by dimension; positive
	rows         []int64 // row-major by candidate; amounts are capped at the need
	nextDistinct []int32 // the first later candidate that differs from this one
	top          []int64 // see suffixes
	picks        int     // the largest number of picks in top
	left         int     // candidates left to examine in this call
	spent        int     // candidates examined in this run
	used         []bool
	temp         []int64
	stack        []int64 // missing amounts, by depth
}

// fewest returns the smallest number of candidates that would have sufficed, at most
// chosen. It reports whether that number is proven.
func (s *regretSearch) fewest(c *Choice, chosen int) (int, bool) {
	s.load(c)
	if s.dims == 0 || chosen == 0 {
		return 0, true
	}
	floor := s.floor()
	if chosen <= floor {
		return chosen, true
	}
	best := min(chosen, s.greedy(chosen))
	if best <= floor {
		return best, true
	}
	s.left = min(regretWork, regretTotal-s.spent)
	before := s.left
	s.suffixes(best - 1)
	s.stack = resize(s.stack, best*s.dims)
	for best > floor && s.left > 0 {
		copy(s.stack, s.need)
		unused, found := s.cover(0, best-1, 0)
		if !found {
			break
		}
		best -= 1 + unused
	}
	s.spent += before - s.left
	return best, s.left > 0 || best <= floor
}

// load copies the dimensions with a positive need, caps every amount at the need, and
// sorts the candidates by their total amount.
func (s *regretSearch) load(c *Choice) {
	s.need = s.need[:0]
	for _, n := range c.Need {
		if n > 0 {
			s.need = append(s.need, n)
		}
	}
	if s.dims = 0; len(s.need) == 0 {
		return
	}
	real := len(s.need)
	s.dims = real + 1
	s.need = append(s.need, int64(real)*surrogateScale)
	s.rows = s.rows[:0]
	for at := 0; at+len(c.Need) <= len(c.Frees); at += len(c.Need) {
		var sum int64
		for d, n := range c.Need {
			if n > 0 {
				free := min(max(c.Frees[at+d], 0), n)
				s.rows = append(s.rows, free)
				sum += surrogate(free, n)
			}
		}
		s.rows = append(s.rows, sum)
	}
	s.sort()
}

// surrogate returns free as a share of need, rounded up so that it is a bound.
func surrogate(free, need int64) int64 {
	hi, lo := bits.Mul64(uint64(free), surrogateScale)
	quotient, rest := bits.Div64(hi, lo, uint64(need))
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// sort orders candidates by total amount, descending, with equal ones adjacent.
func (s *regretSearch) sort() {
	n := len(s.rows) / s.dims
	order := make([][]int64, n)
	for i := range order {
		order[i] = s.row(i)
	}
	slices.SortFunc(order, func(a, b []int64) int {
		if a[s.dims-1] != b[s.dims-1] {
			return int(min(max(b[s.dims-1]-a[s.dims-1], -1), 1))
		}
		return slices.Compare(b, a)
	})
	s.temp = s.temp[:0]
	for _, row := range order {
		s.temp = append(s.temp, row...)
	}
	s.rows, s.temp = s.temp, s.rows
	s.nextDistinct = resize(s.nextDistinct, n)
	for i := n - 1; i >= 0; i-- {
		s.nextDistinct[i] = int32(i + 1)
		if i+1 < n && slices.Equal(s.row(i), s.row(i+1)) {
			s.nextDistinct[i] = s.nextDistinct[i+1]
		}
	}
}

func (s *regretSearch) count() int          { return len(s.rows) / s.dims }
func (s *regretSearch) row(i int) []int64   { return s.rows[i*s.dims : (i+1)*s.dims] }
func resize[T any](of []T, n int) []T       { return slices.Grow(of[:0], n)[:n] }
func (s *regretSearch) depth(k int) []int64 { return s.stack[k*s.dims : (k+1)*s.dims] }

// floor returns a lower bound: the largest of the solutions in each single dimension.
// If all candidates together free too little, it returns their number plus one.
func (s *regretSearch) floor() int {
	n, floor := s.count(), 0
	for d, need := range s.need {
		s.temp = resize(s.temp, n)
		for i := range n {
			s.temp[i] = s.row(i)[d]
		}
		slices.Sort(s.temp)
		picks := 0
		for ; need > 0 && picks < n; picks++ {
			need -= s.temp[n-1-picks]
		}
		if need > 0 {
			return n + 1
		}
		floor = max(floor, picks)
	}
	return floor
}

// greedy repeatedly picks the candidate that covers most of the missing amount. It
// returns the number of picks, or limit if it needs more.
func (s *regretSearch) greedy(limit int) int {
	n := s.count()
	s.used = resize(s.used, n)
	clear(s.used)
	missing := append(resize(s.stack, 0), s.need[:s.dims-1]...)
	s.stack = missing
	for picks := 0; ; picks++ {
		if done(missing) {
			return picks
		}
		best, most := -1, int64(0)
		for i := range n {
			if s.used[i] {
				continue
			}
			var gain int64
			for d, m := range missing {
				if m > 0 {
					gain += surrogate(min(s.row(i)[d], m), s.need[d])
				}
			}
			if gain > most {
				best, most = i, gain
			}
		}
		if best < 0 || picks == limit {
			return limit
		}
		s.used[best] = true
		for d := range missing {
			missing[d] -= s.row(best)[d]
		}
	}
}

func done(missing []int64) bool {
	return !slices.ContainsFunc(missing, func(m int64) bool { return m > 0 })
}

// suffixes fills top: the value at [(i×(picks+1)+m)×dims+d] is the sum of the m
// largest amounts of dimension d among the candidates from i on.
func (s *regretSearch) suffixes(picks int) {
	n := s.count()
	s.picks = picks
	s.top = resize(s.top, (n+1)*(picks+1)*s.dims)
	largest := resize(s.temp, s.dims*picks) // by dimension, descending
	clear(largest)
	s.temp = largest
	for i := n; i >= 0; i-- {
		for d := range s.dims {
			of := largest[d*picks : (d+1)*picks]
			if i < n {
				insert(of, s.row(i)[d])
			}
			var sum int64
			for m := 0; m <= picks; m++ {
				s.top[(i*(picks+1)+m)*s.dims+d] = sum
				if m < picks {
					sum += of[m]
				}
			}
		}
	}
}

// insert inserts v into a descending list of fixed length.
func insert(of []int64, v int64) {
	at := len(of)
	for at > 0 && of[at-1] < v {
		at--
	}
	if at < len(of) {
		copy(of[at+1:], of[at:len(of)-1])
		of[at] = v
	}
}

// cover reports whether at most picks candidates from i on cover the missing amounts
// at this depth. If so, it also returns the number of unused picks.
func (s *regretSearch) cover(i, picks, depth int) (int, bool) {
	missing := s.depth(depth)
	if done(missing[:s.dims-1]) {
		return picks, true
	}
	if picks == 0 {
		return 0, false
	}
	for n := s.count(); i < n && s.left > 0; i = int(s.nextDistinct[i]) {
		s.left--
		if !s.feasible(i, picks, missing) {
			return 0, false
		}
		next, row, helps := s.depth(depth+1), s.row(i), false
		for d, m := range missing {
			next[d] = m - row[d]
			helps = helps || m > 0 && row[d] > 0 && d < s.dims-1
		}
		if !helps {
			continue
		}
		if left, found := s.cover(i+1, picks-1, depth+1); found {
			return left, true
		}
	}
	return 0, false
}

// feasible is the bound: it reports whether the largest remaining amounts suffice in
// each dimension separately.
func (s *regretSearch) feasible(i, picks int, missing []int64) bool {
	top := s.top[(i*(s.picks+1)+picks)*s.dims:]
	for d, m := range missing {
		if top[d] < m {
			return false
		}
	}
	return true
}

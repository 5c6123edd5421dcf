package rules

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Bindings selects the bindings that are evicted from a member cluster: the lowest
// priority first, among equals the one that started last, and among those the last
// name, until the preemptor fits. The host reprieves redundant rows in reverse, so
// that the remaining bindings are the same as if all were reprieved in order of
// importance. It ranks clusters by the fewest victims, then by the lowest highest
// priority, then by the lowest sum of priorities.
type Bindings struct {
	// PriorityFirst ranks clusters by the highest priority, then by the sum, then by
	// the number of victims.
	PriorityFirst bool
	// Elastic declares that elastic bindings have two adjacent rows. Among equal
	// priorities the second row, the minimum of the binding, is evicted after the
	// surplus of all bindings.
	Elastic bool

	shortfall Shortfall
	none      []bool  // for LoadDims: no dimension is skipped
	order     []int32 // scratch: rows in the order of eviction
}

// PreemptBindings implements policy.BindingPreemptor.
func (b *Bindings) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	for len(b.none) < len(in.Need) {
		b.none = append(b.none, false)
	}
	b.shortfall.LoadDims(in, b.none)
	for i := range in.Len() {
		b.shortfall.Reset(i)
		for _, row := range b.Order(in, i) {
			if b.shortfall.Covered() {
				break
			}
			out.Pick(int(row))
			b.shortfall.Pick(int(row))
		}
		out.Next()
	}
	b.Rank(in, out)
	return nil
}

// Order returns the rows of an option, the least important first. The result is valid
// until the next call.
func (b *Bindings) Order(in *policy.Candidates, option int) []int32 {
	r := &in.Rows
	b.order = b.order[:0]
	for row := in.FirstRow[option]; row < in.FirstRow[option+1]; row++ {
		b.order = append(b.order, row)
	}
	name := func(row int32) string { return in.Strings[r.Job[row]] }
	first := in.FirstRow[option]
	kept := func(row int32) int {
		if b.Elastic && row > first && r.Job[row] == r.Job[row-1] {
			return 1
		}
		return 0
	}
	slices.SortFunc(b.order, func(x, y int32) int {
		if c := cmp.Or(cmp.Compare(r.Priority[x], r.Priority[y]), cmp.Compare(kept(x), kept(y)), cmp.Compare(r.Start[y], r.Start[x])); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(name(y), name(x)), cmp.Compare(x, y))
	})
	return b.order
}

// Rank sets the tiers from the rows of each option. In the host's second call these
// rows are the victims.
func (b *Bindings) Rank(in *policy.Candidates, out *policy.BindingVictims) {
	for i := range in.Len() {
		rows := in.Rows.Priority[in.FirstRow[i]:in.FirstRow[i+1]]
		number, highest, sum := int64(len(rows)), int64(lowestPriority), int64(0)
		for _, p := range rows {
			highest = max(highest, int64(p))
			sum += int64(p) - lowestPriority // one more victim never lowers the sum
		}
		tiers := [3]int64{number, highest, sum}
		if b.PriorityFirst {
			tiers = [3]int64{highest, sum, number}
		}
		for k, tier := range tiers {
			out.Tiers[k][i] = tier
		}
	}
}

const lowestPriority = -1 << 31

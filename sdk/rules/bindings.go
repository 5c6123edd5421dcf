package rules

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Bindings is the rules for what leaves a member cluster: the lowest priority
// first, of equals what started last, and of those the name that comes last,
// until the preemptor fits. The host spares the redundant in reverse, so that
// what stays is what a reprieve of everybody, the most important first, would
// keep. Among clusters: the fewest victims, then the lowest highest priority,
// then the lowest sum of priorities.
type Bindings struct {
	// PriorityFirst compares clusters by the highest priority, then the sum, then
	// the number of victims.
	PriorityFirst bool
	// Elastic is whether elastic bindings have two rows, next to each other: of equal
	// priorities the second, what they keep, leaves after what all can do without.
	Elastic bool

	lack  Lack
	none  []bool  // of Lack.LoadDims: nothing is skipped
	order []int32 // scratch: rows in the order of picking
}

// PreemptBindings implements policy.BindingPreemptor.
func (b *Bindings) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	for len(b.none) < len(in.Need) {
		b.none = append(b.none, false)
	}
	b.lack.LoadDims(in, b.none)
	for i := range in.Len() {
		b.lack.Reset(i)
		for _, row := range b.Order(in, i) {
			if b.lack.Covered() {
				break
			}
			out.Pick(int(row))
			b.lack.Take(int(row))
		}
		out.Next()
	}
	b.Rank(in, out)
	return nil
}

// Order is the rows of an option, the least important first. It is valid until
// the next call.
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

// Rank fills the tiers by the rows of each option: of the host's second question
// they are its victims.
func (b *Bindings) Rank(in *policy.Candidates, out *policy.BindingVictims) {
	for i := range in.Len() {
		rows := in.Rows.Priority[in.FirstRow[i]:in.FirstRow[i+1]]
		number, highest, sum := int64(len(rows)), int64(lowestPriority), int64(0)
		for _, p := range rows {
			highest = max(highest, int64(p))
			sum += int64(p) - lowestPriority // so that a victim more is never a lower sum
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

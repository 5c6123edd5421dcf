package optimal_test

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// priceOf returns the cost of a set of rows of an option, implemented from the
// description: three numbers, of which the first that differs decides.
func priceOf(c *policytest.Case, by string, o *policytest.Option, set []int) []int64 {
	waste, highest, sum := int64(0), int64(math.MinInt64), int64(0)
	for _, k := range set {
		r := &o.Rows[k]
		waste += wasteOf(c, r)
		highest = max(highest, int64(r.Priority))
		sum += int64(r.Priority)
	}
	count := int64(len(set))
	switch by {
	case "priority":
		return []int64{highest, count, sum}
	case "victims":
		return []int64{count, sum}
	}
	return []int64{waste, count, sum}
}

// wasteOf returns the waste of evicting a row, in nanoseconds of the whole cluster.
func wasteOf(c *policytest.Case, r *policytest.Row) int64 {
	if len(c.Totals) == 0 {
		return 0
	}
	share := 0.0
	for d, total := range c.Totals {
		share += r.Use[d] / total
	}
	worth := 1.0
	if x, ok := r.Annotations["cost"]; ok {
		worth = max(x, 0)
	}
	return int64(worth * float64(r.LostWork) * share / float64(len(c.Totals)))
}

// cheapest tries every subset of the rows of option i and returns the cost of the
// cheapest that frees enough, or nil if none does.
func cheapest(c *policytest.Case, by string, in *policy.Candidates, i int) []int64 {
	o := &c.Options[i]
	var best []int64
	for mask := range 1 << len(o.Rows) {
		var set []int
		for k := range o.Rows {
			if mask>>k&1 != 0 {
				set = append(set, k)
			}
		}
		if !policytest.Fits(in, i, set) {
			continue
		}
		if price := priceOf(c, by, o, set); best == nil || slices.Compare(price, best) < 0 {
			best = price
		}
	}
	return best
}

package optimal_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// exceedsBudget reports whether a set of rows exceeds a budget.
func exceedsBudget(c *policytest.Case, o *policytest.Option, set []int) bool {
	for _, b := range c.Budgets {
		n := int32(0)
		for _, k := range set {
			if slices.Contains(o.Rows[k].Budgets, b.Name) {
				n++
			}
		}
		if n > max(0, b.Slack) {
			return true
		}
	}
	return false
}

// cheapestWithin returns the cost of the cheapest sufficient set that exceeds no
// budget, or nil if there is none.
func cheapestWithin(c *policytest.Case, by string, in *policy.Candidates, i int) (best []int64) {
	o := &c.Options[i]
	for mask := range 1 << len(o.Rows) {
		var set []int
		for k := range o.Rows {
			if mask>>k&1 != 0 {
				set = append(set, k)
			}
		}
		if !policytest.Fits(in, i, set) || exceedsBudget(c, o, set) {
			continue
		}
		if price := priceOf(c, by, o, set); best == nil || slices.Compare(price, best) < 0 {
			best = price
		}
	}
	return best
}

// A budget is exceeded only if every sufficient set of victims exceeds one. Otherwise
// the result is the cheapest set within the budgets.
func TestOptimal_ExceedsBudgetsOnlyIfNecessary(t *testing.T) {
	t.Parallel()
	eachCost(t, func(t *testing.T, by string) {
		r := rand.New(rand.NewPCG(5, 6))
		p := configured(t, by, 10_000_000)
		within, must := 0, 0
		for k := range policytest.Count(t) / 4 {
			s := shape(k)
			s.Budgets = true
			c := policytest.Random(r, s)
			in := c.Candidates()
			for i, victims := range policytest.EvictUntilFit(in, policytest.Select(t, p, in), false) {
				if victims == nil {
					continue
				}
				want := cheapestWithin(c, by, in, i)
				if broken := exceedsBudget(c, &c.Options[i], victims); broken != (want == nil) {
					t.Fatalf("case %d, option %d: %v exceed a budget: %t; a set within the budgets exists: %t", k, i, victims, broken, want != nil)
				}
				if want == nil {
					must++
					continue
				}
				within++
				if got := priceOf(c, by, &c.Options[i], victims); slices.Compare(got, want) != 0 {
					t.Fatalf("case %d, option %d: %v cost %v, cheapest %v", k, i, victims, got, want)
				}
			}
		}
		t.Logf("%d within the budgets, %d over", within, must)
		if within < 50 || must < 10 {
			t.Errorf("property not exercised: %d within the budgets, %d over", within, must)
		}
	})
}

package policytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Laws checks properties that every policy with SelectVictims should have, each on
// Count random cases or a share of them. They hold whatever victims the policy
// prefers.
type Laws struct {
	// New returns an instance that has not been called yet.
	New func() policy.VictimSelector
	// Shape bounds case k of the cases in which ties are allowed.
	Shape func(k int) Shape
	// KeepRedundant is set if redundant picks are not reprieved.
	KeepRedundant bool
}

// Check checks every law in its own subtest.
func (l Laws) Check(t *testing.T) {
	t.Helper()
	t.Run("order affects ties only", l.checkOrder)
	t.Run("units do not affect decisions", l.checkUnits)
	t.Run("answers are independent", l.checkIndependence)
}

// CheckAscending checks the promise of Info.Ascending: rows above the highest
// priority that is needed do not change the decision.
func (l Laws) CheckAscending(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(15, 16))
	p := l.New()
	for k := range Count(t) / 4 {
		c := Random(r, l.Shape(k))
		names := func() (lists [][]string) {
			for i, picks := range picksOf(t, p, c.Candidates()) {
				lists = append(lists, c.Names(i, picks))
			}
			return lists
		}
		want := names()
		c.Truncate()
		for i, got := range names() {
			if !slices.Equal(got, want[i]) {
				t.Fatalf("case %d, option %d: picks %v, but %v without the unneeded rows", k, i, want[i], got)
			}
		}
	}
}

func (l Laws) checkOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := l.New()
	victims := func(c *Case) (lists [][]string) {
		in := c.Candidates()
		for i, rows := range EvictUntilFit(in, Select(t, p, in), l.KeepRedundant) {
			names := c.Names(i, rows)
			slices.Sort(names) // the set of victims counts, not their order
			lists = append(lists, names)
		}
		return lists
	}
	for k := range Count(t) / 4 {
		c := Random(r, Shape{Options: 4, Rows: 12, NoTies: true, Work: l.Shape(k).Work, Tenants: l.Shape(k).Tenants})
		before := victims(c)
		slices.Reverse(c.Options)
		for i := range c.Options {
			rows := c.Options[i].Rows
			r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		}
		after := victims(c)
		slices.Reverse(after)
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("case %d: victims %v, permuted %v", k, before, after)
		}
	}
}

func (l Laws) checkUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := l.New()
	for k := range Count(t) / 4 {
		c := Random(r, l.Shape(k))
		in := c.Candidates()
		before := fmt.Sprint(Picks(in, Select(t, p, in), 0))
		for d := range in.Need {
			unit := math.Ldexp(1, r.IntN(21)-10) // a power of two, so that ties remain ties
			c.Preemptor.Ask[d] *= unit
			scale(in.Need[d], unit)
			scale(in.Rows.Use[d], unit)
			in.Shared.Totals[d] *= unit
			scale(in.Shared.Namespaces.Use[d], unit)
		}
		if after := fmt.Sprint(Picks(in, Select(t, p, in), 0)); after != before {
			t.Fatalf("case %d: picks %s, but %s in other units", k, before, after)
		}
	}
}

func (l Laws) checkIndependence(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	old := l.New()
	for k := range Count(t) / 10 {
		c := Random(r, l.Shape(k))
		together := picksOf(t, old, c.Candidates())
		for i := range c.Options {
			alone := *c
			alone.Options = c.Options[i : i+1]
			if got := picksOf(t, l.New(), alone.Candidates())[0]; !slices.Equal(got, together[i]) {
				t.Fatalf("case %d: option %d gets %v alone, but %v among others", k, i, got, together[i])
			}
		}
	}
}

// picksOf returns the picks of p for every option.
func picksOf(t testing.TB, p policy.VictimSelector, in *policy.Candidates) [][]int {
	t.Helper()
	s := Select(t, p, in)
	lists := make([][]int, in.Len())
	for i := range lists {
		lists[i] = Picks(in, s, i)
	}
	return lists
}

func scale(v []float64, f float64) {
	for i := range v {
		v[i] *= f
	}
}

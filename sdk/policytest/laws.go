package policytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Laws are properties that a policy which selects victims by what it is shown
// should have, each checked on Count random cases or a share of them. They say
// nothing about whom to pick.
type Laws struct {
	// New returns an instance that was never asked anything.
	New func() policy.VictimSelector
	// Shape bounds case k of those in which ties are welcome.
	Shape func(k int) Shape
	// KeepRedundant is whether the picks stand whole.
	KeepRedundant bool
}

// Check checks every law in a test of its own.
func (l Laws) Check(t *testing.T) {
	t.Helper()
	t.Run("order decides nothing but ties", l.checkOrder)
	t.Run("units decide nothing", l.checkUnits)
	t.Run("an answer depends on nothing else", l.checkIndependence)
}

// CheckAscending checks the promise of Info.Ascending: rows of priorities that
// are not reached change nothing.
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
				t.Fatalf("case %d, option %d: picks %v, without the rows that are not reached %v", k, i, want[i], got)
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
			slices.Sort(names) // who goes counts, not in which order they are named
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
			unit := math.Ldexp(1, r.IntN(21)-10) // exact, so that ties stay ties
			c.Preemptor.Ask[d] *= unit
			scale(in.Need[d], unit)
			scale(in.Rows.Use[d], unit)
			in.Shared.Totals[d] *= unit
			scale(in.Shared.Namespaces.Use[d], unit)
		}
		if after := fmt.Sprint(Picks(in, Select(t, p, in), 0)); after != before {
			t.Fatalf("case %d: picks %s, in other units %s", k, before, after)
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
				t.Fatalf("case %d: option %d alone gets %v, among others %v", k, i, got, together[i])
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

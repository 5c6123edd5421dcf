package optimal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

var costs = []string{"priority", "victims", "waste"}

func shape(k int) policytest.Shape {
	return policytest.Shape{Options: 3, Rows: 9, Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4, Work: true}
}

func configured(t testing.TB, by string, maxSteps int) *optimal.Policy {
	return policytest.Configured(t, optimal.New(), fmt.Sprintf(`{"cost":%q,"maxSteps":%d}`, by, maxSteps))
}

func eachCost(t *testing.T, test func(t *testing.T, by string)) {
	for _, by := range costs {
		t.Run(by, func(t *testing.T) { test(t, by) })
	}
}

func TestOptimal_SatisfiesLaws(t *testing.T) {
	t.Parallel()
	eachCost(t, func(t *testing.T, by string) {
		laws := policytest.Laws{New: func() policy.VictimSelector { return configured(t, by, 2000) }, Shape: shape}
		laws.Check(t)
		if configured(t, by, 2000).Info().Ascending {
			laws.CheckAscending(t)
		}
	})
}

// The reference tries every subset of the candidates.
func TestOptimal_FindsCheapestVictims(t *testing.T) {
	t.Parallel()
	eachCost(t, func(t *testing.T, by string) {
		r := rand.New(rand.NewPCG(1, 2))
		p := configured(t, by, 10_000_000)
		better := 0
		for k := range policytest.Count(t) / 8 {
			c := policytest.Random(r, shape(k))
			in := c.Candidates()
			byDefault := policytest.EvictUntilFit(in, policytest.Select(t, rules.New(), in), false)
			for i, victims := range policytest.EvictUntilFit(in, policytest.Select(t, p, in), false) {
				want := cheapest(c, by, in, i)
				if (victims == nil) != (want == nil) {
					t.Fatalf("case %d, option %d: victims %v, cheapest %v", k, i, victims, want)
				}
				if victims == nil {
					continue
				}
				got := priceOf(c, by, &c.Options[i], victims)
				if slices.Compare(got, want) != 0 {
					t.Fatalf("case %d, option %d: %v cost %v, cheapest %v\n%+v", k, i, victims, got, want, c)
				}
				if d := priceOf(c, by, &c.Options[i], byDefault[i]); slices.Compare(got, d) < 0 {
					better++
				} else if !slices.Equal(slices.Sorted(slices.Values(byDefault[i])), victims) {
					t.Fatalf("case %d, option %d: %v and default's %v have equal cost", k, i, victims, byDefault[i])
				}
			}
			if p.Cut() > 0 {
				t.Fatalf("case %d: the search was cut off", k)
			}
		}
		if better == 0 {
			t.Error("never better than default")
		}
		t.Logf("better than default: %d", better)
	})
}

// If the search is cut off, the set costs at most as much as default's, and contains
// no unnecessary victim.
func TestOptimal_IsNoWorseThanDefaultWhenCutOff(t *testing.T) {
	t.Parallel()
	eachCost(t, func(t *testing.T, by string) {
		r := rand.New(rand.NewPCG(3, 4))
		cut := 0
		for k := range policytest.Count(t) / 20 {
			s := shape(k)
			s.Rows = 60
			c := policytest.Random(r, s)
			in := c.Candidates()
			byDefault := policytest.EvictUntilFit(in, policytest.Select(t, rules.New(), in), false)
			for _, maxSteps := range []int{0, 1, 7, 300} {
				p := configured(t, by, maxSteps)
				for i, victims := range policytest.EvictUntilFit(in, policytest.Select(t, p, in), false) {
					if (victims == nil) != (byDefault[i] == nil) {
						t.Fatalf("case %d, option %d: victims %v, of default %v", k, i, victims, byDefault[i])
					}
					if victims == nil {
						continue
					}
					got, most := priceOf(c, by, &c.Options[i], victims), priceOf(c, by, &c.Options[i], byDefault[i])
					if slices.Compare(got, most) > 0 || maxSteps == 0 && slices.Compare(got, most) != 0 {
						t.Fatalf("case %d, option %d, %d steps: %v cost %v, default %v", k, i, maxSteps, victims, got, most)
					}
				}
				cut += p.Cut()
			}
		}
		if cut == 0 {
			t.Error("the search was never cut off")
		}
	})
}

func TestOptimal_RanksOptionsByCost(t *testing.T) {
	t.Parallel()
	eachCost(t, func(t *testing.T, by string) {
		r := rand.New(rand.NewPCG(5, 6))
		p := configured(t, by, 2000)
		for k := range policytest.Count(t) / 20 {
			c := policytest.Random(r, shape(k))
			in := c.Candidates()
			victims := policytest.EvictUntilFit(in, policytest.Select(t, p, in), false)
			out := policytest.NewScores(len(c.Options))
			if err := p.ScoreOptions(c.OptionsOf(victims), out); err != nil {
				t.Fatal(err)
			}
			for a := range c.Options {
				for b := range c.Options {
					if len(victims[a]) == 0 || len(victims[b]) == 0 {
						if len(victims[a]) < len(victims[b]) && len(victims[a]) == 0 && policytest.CompareOptions(out, a, b) >= 0 {
							t.Fatalf("case %d: option %d without victims is ranked below option %d", k, a, b)
						}
						continue
					}
					x, y := priceOf(c, by, &c.Options[a], victims[a]), priceOf(c, by, &c.Options[b], victims[b])
					if want := slices.Compare(x, y); want != 0 && policytest.CompareOptions(out, a, b) != want {
						t.Fatalf("case %d: option %d costs %v, option %d %v, comparison %d", k, a, x, b, y, policytest.CompareOptions(out, a, b))
					}
				}
			}
		}
	})
}

func TestOptimal_Cases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, by, text, victims string }{
		{
			"one victim suffices where default evicts two with closer sizes",
			"priority",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  near 20 cpu=900
			  rest 20 cpu=400
			  large 20 cpu=3000`,
			"[[large]]",
		},
		{
			"a higher priority is not evicted in order to spare several lower ones",
			"priority",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500
			  b 30 cpu=500
			  c 60 cpu=1000`,
			"[[a b]]",
		},
		{
			"unless the cost is the number of victims",
			"victims",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500
			  b 30 cpu=500
			  c 60 cpu=1000`,
			"[[c]]",
		},
		{
			"or the lost work",
			"waste",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500 age=1h
			  b 30 cpu=500 age=1h
			  c 60 cpu=1000 age=1m`,
			"[[c]]",
		},
		{
			"a row that must be evicted has no further cost, and neither has any row of at most its priority",
			"priority",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500
			  b 20 cpu=400
			  c 50 cpu=1000
			  holder 60 cpu=100 port`,
			"[[c holder]]",
		},
		{
			"one resource with another: one holder of both",
			"priority",
			`preemptor 90 cpu=100 memory=100 device:gpu=1
			node n1
			  a 20 cpu=100
			  b 20 memory=100
			  c 20 device:gpu=1
			  d 20 cpu=100 memory=100 device:gpu=1`,
			"[[d]]",
		},
		{
			"no set frees enough",
			"victims",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  a 20 cpu=50`,
			"[[]]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			var names [][]string
			for i, rows := range policytest.EvictUntilFit(in, policytest.Select(t, configured(t, tt.by, 2000), in), false) {
				names = append(names, c.Names(i, rows))
			}
			if got := fmt.Sprint(names); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

// Twenty equal rows have over a hundred thousand equivalent subsets of ten.
func TestOptimal_SearchesEqualRowsOnce(t *testing.T) {
	t.Parallel()
	text := "preemptor 90 cpu=1000 memory=1\nnode n1 cpu=0 memory=0\n"
	for range 20 {
		text += "  a 20 cpu=101 memory=1 age=1h\n  b 20 cpu=99 memory=1 age=1h\n"
	}
	in := policytest.MustParse(t, text).Candidates()
	eachCost(t, func(t *testing.T, by string) {
		p := configured(t, by, 2000)
		if victims := policytest.EvictUntilFit(in, policytest.Select(t, p, in), false)[0]; len(victims) != 10 || p.Cut() > 0 {
			t.Errorf("%d victims, cut off: %v", len(victims), p.Cut() > 0)
		}
	})
}

func TestOptimal_DoesNotAllocateWhenWarm(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := policytest.Random(r, policytest.Shape{Options: 20, Rows: 40, Devices: true, MustLeave: true, Work: true})
	in := c.Candidates()
	eachCost(t, func(t *testing.T, by string) {
		p := configured(t, by, 300)
		options := c.OptionsOf(policytest.EvictUntilFit(in, policytest.Select(t, p, in), false))
		scores := policytest.NewScores(options.Len())
		var s policy.Selection
		n := testing.AllocsPerRun(20, func() {
			s.Reset()
			_ = p.SelectVictims(in, &s)
			_ = p.ScoreOptions(options, scores)
		})
		if n != 0 {
			t.Errorf("%v allocations per call", n)
		}
	})
}

package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func shape(k int) policytest.Shape {
	return policytest.Shape{Options: 4, Rows: 8 + 8*(k%5/4), Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4}
}

func selectVictims(t testing.TB, p *rules.Default, in *policy.Candidates) *policy.Selection {
	t.Helper()
	var s policy.Selection
	s.Reset()
	if err := p.SelectVictims(in, &s); err != nil {
		t.Fatal(err)
	}
	if s.Len() != in.Len() {
		t.Fatalf("%d answers to %d options", s.Len(), in.Len())
	}
	return &s
}

// picksOf returns the picks of option i as indexes into its rows.
func picksOf(in *policy.Candidates, s *policy.Selection, i int) []int {
	picks := []int{}
	for _, row := range s.Rows(i) {
		picks = append(picks, int(row-in.FirstRow[i]))
	}
	return picks
}

func names(c *policytest.Case, i int, picks []int) []string {
	list := []string{}
	for _, k := range picks {
		list = append(list, c.Options[i].Rows[k].Name)
	}
	return list
}

func TestDefault_PicksWhatTheDescriptionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := rules.New()
	picked := 0
	for k := range policytest.Count(t) {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		s := selectVictims(t, p, in)
		for i := range c.Options {
			got, want := picksOf(in, s, i), oracleVictims(c, &c.Options[i])
			if !slices.Equal(got, want) {
				t.Fatalf("case %d, option %d: picks %v, want %v\n%+v", k, i, got, want, c)
			}
			picked += len(got)
		}
	}
	t.Logf("%d rows picked", picked)
}

func TestDefault_VictimsAreMinimalAndFoundWheneverThereAreSome(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := rules.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		for i, victims := range policytest.Settle(in, selectVictims(t, p, in), false) {
			all := []int{}
			for row := range c.Options[i].Rows {
				all = append(all, row)
			}
			if fits := policytest.Fits(in, i, all); fits != (victims != nil) {
				t.Fatalf("case %d, option %d: fits without all rows: %v; victims %v", k, i, fits, victims)
			}
			for v := range victims {
				if policytest.Fits(in, i, slices.Delete(slices.Clone(victims), v, v+1)) {
					t.Fatalf("case %d, option %d: victim %d of %v is not needed", k, i, v, victims)
				}
			}
		}
	}
}

func TestDefault_StoriesEndAsTheyShould(t *testing.T) {
	for _, tt := range []struct{ name, text, picks, victims string }{
		{
			"a higher victim that suffices alone spares the lower one that does not help", // quirk 2
			`preemptor 90 cpu=1000 memory=1000
			node n1 cpu=0 memory=0
			  small 20 cpu=200 memory=200
			  big 40 cpu=1000 memory=1000`,
			"[small big]", "[big]",
		},
		{
			"a memory shortage costs nobody who holds cpu", // quirk 2
			`preemptor 90 cpu=500 memory=1000
			node n1 cpu=600 memory=0
			  spinner 20 cpu=500 memory=1
			  keeper 30 cpu=100 memory=1000`,
			"[spinner keeper]", "[keeper]",
		},
		{
			"free device instances count", // quirk 3
			`preemptor 90 device:gpu=4
			node n1 device:gpu=2
			  a 10 device:gpu=1
			  c 20 device:gpu=3`,
			"[a c]", "[c]",
		},
		{
			"the documentation's webapp",
			`preemptor 75 memory=2048 disk=1024
			node n1 memory=0 disk=0
			  a1 20 memory=512 disk=820
			  a2 20 memory=512 disk=205
			  a4 50 cpu=500 memory=1024 disk=512
			  a5 50 cpu=500 memory=1024 disk=512`,
			"[a1 a2 a4]", "[a1 a2 a4]",
		},
		{
			"within a priority the nearest goes first, measured without free room",
			`preemptor 90 cpu=1000
			node n1 cpu=700
			  fits 20 cpu=300
			  near 20 cpu=900`,
			"[near]", "[near]",
		},
		{
			"who holds a needed port goes, whatever its priority",
			`preemptor 90 cpu=100
			node n1 cpu=100
			  low 20 cpu=50
			  holder 40 cpu=50 port`,
			"[low holder]", "[holder]",
		},
		{
			"whoever excludes the preemptor goes",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  low 20 cpu=150
			  rival 40 separation`,
			"[low rival]", "[low rival]",
		},
		{
			"a node with more promised than it has lacks what is not asked for",
			`preemptor 90 cpu=100 memory=0
			node n1 cpu=0 memory=-10
			  a 20 cpu=100
			  b 30 memory=10`,
			"[a b]", "[a b]",
		},
		{
			"equals go in row order",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  first 20 cpu=100
			  second 20 cpu=100`,
			"[first]", "[first]",
		},
		{
			"not enough: everything is listed, nobody evicted",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  a 20 cpu=50
			  b 20 cpu=40`,
			"[a b]", "[]",
		},
		{
			"fits already",
			`preemptor 90 cpu=100
			node n1 cpu=100
			  a 20 cpu=50`,
			"[]", "[]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			s := selectVictims(t, rules.New(), in)
			if got := fmt.Sprint(names(c, 0, picksOf(in, s, 0))); got != tt.picks {
				t.Errorf("picks %s, want %s", got, tt.picks)
			}
			if got := fmt.Sprint(names(c, 0, policytest.Settle(in, s, false)[0])); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

func TestDefault_OrderOfOptionsAndOfRowsDecidesNothingButTies(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := rules.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, policytest.Shape{Options: 4, Rows: 12, NoTies: true})
		before := settled(t, p, c)
		slices.Reverse(c.Options)
		for i := range c.Options {
			rows := c.Options[i].Rows
			r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		}
		after := settled(t, p, c)
		slices.Reverse(after)
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("case %d: victims %v, permuted %v", k, before, after)
		}
	}
}

func settled(t *testing.T, p *rules.Default, c *policytest.Case) [][]string {
	t.Helper()
	in := c.Candidates()
	lists := [][]string{}
	for i, victims := range policytest.Settle(in, selectVictims(t, p, in), false) {
		lists = append(lists, names(c, i, victims))
	}
	return lists
}

func TestDefault_UnitsOfAResourceDecideNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := rules.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		before := fmt.Sprint(picksOf(in, selectVictims(t, p, in), 0))
		for d := range in.Need {
			unit := math.Ldexp(1, r.IntN(21)-10) // exact, so that ties stay ties
			c.Preemptor.Ask[d] *= unit
			scale(in.Need[d], unit)
			scale(in.Rows.Use[d], unit)
		}
		if after := fmt.Sprint(picksOf(in, selectVictims(t, p, in), 0)); after != before {
			t.Fatalf("case %d: picks %s, in other units %s", k, before, after)
		}
	}
}

func scale(v []float64, f float64) {
	for i := range v {
		v[i] *= f
	}
}

func TestDefault_AnswersDependOnNothingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	old := rules.New()
	for k := range policytest.Count(t) / 10 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		together := selectVictims(t, old, in)
		for i := range c.Options {
			alone := *c
			alone.Options = c.Options[i : i+1]
			one := alone.Candidates()
			got := picksOf(one, selectVictims(t, rules.New(), one), 0)
			if want := picksOf(in, together, i); !slices.Equal(got, want) {
				t.Fatalf("case %d: option %d alone gets %v, among others %v", k, i, got, want)
			}
		}
	}
}

func TestDefault_AllocatesNothingOnceWarm(t *testing.T) {
	in, p := constructionA(50, 2), rules.New()
	options := manyOptions(64)
	var s policy.Selection
	scores := policytest.NewScores(options.Len())
	n := testing.AllocsPerRun(100, func() {
		s.Reset()
		_ = p.SelectVictims(in, &s)
		_ = p.ScoreOptions(options, scores)
	})
	if n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func TestDefault_RowsOfPrioritiesThatAreNotReachedChangeNothing(t *testing.T) { // Info.Ascending
	r := rand.New(rand.NewPCG(15, 16))
	p := rules.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		before := selectVictims(t, p, in)
		want := [][]int{}
		for i := range c.Options {
			want = append(want, picksOf(in, before, i))
		}
		c.Truncate()
		in = c.Candidates()
		after := selectVictims(t, p, in)
		for i := range c.Options {
			if got := picksOf(in, after, i); !slices.Equal(got, want[i]) {
				t.Fatalf("case %d, option %d: picks %v, without the rows above %v", k, i, want[i], got)
			}
		}
	}
}

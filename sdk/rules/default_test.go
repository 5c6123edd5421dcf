package rules_test

import (
	"fmt"
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

var laws = policytest.Laws{New: func() policy.VictimSelector { return rules.New() }, Shape: shape}

func TestDefault_SatisfiesLaws(t *testing.T) { laws.Check(t) }

// Info.Ascending promises that rows above the highest needed priority have no effect.
func TestDefault_IgnoresUnneededPriorities(t *testing.T) { laws.CheckAscending(t) }

func TestDefault_MatchesReferenceImplementation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	p := rules.New()
	picked := 0
	for k := range policytest.Count(t) {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		s := policytest.Select(t, p, in)
		for i := range c.Options {
			got, want := policytest.Picks(in, s, i), referenceVictims(c, &c.Options[i])
			if !slices.Equal(got, want) {
				t.Fatalf("case %d, option %d: picks %v, want %v\n%+v", k, i, got, want, c)
			}
			picked += len(got)
		}
	}
	t.Logf("%d rows picked", picked)
}

func TestDefault_VictimsAreMinimalAndComplete(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	p := rules.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		for i, victims := range policytest.EvictUntilFit(in, policytest.Select(t, p, in), false) {
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

func TestDefault_Cases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, picks, victims string }{
		{
			"a sufficient victim of higher priority reprieves a useless one of lower priority", // quirk 2
			`preemptor 90 cpu=1000 memory=1000
			node n1 cpu=0 memory=0
			  small 20 cpu=200 memory=200
			  big 40 cpu=1000 memory=1000`,
			"[small big]", "[big]",
		},
		{
			"holders of cpu are not evicted for a memory shortage", // quirk 2
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
			"webapp of the documentation",
			`preemptor 75 memory=2048 disk=1024
			node n1 memory=0 disk=0
			  a1 20 memory=512 disk=820
			  a2 20 memory=512 disk=205
			  a4 50 cpu=500 memory=1024 disk=512
			  a5 50 cpu=500 memory=1024 disk=512`,
			"[a1 a2 a4]", "[a1 a2 a4]",
		},
		{
			"within a priority the nearest is evicted first, ignoring free capacity",
			`preemptor 90 cpu=1000
			node n1 cpu=700
			  fits 20 cpu=300
			  near 20 cpu=900`,
			"[near]", "[near]",
		},
		{
			"a holder of a required port is evicted at any priority",
			`preemptor 90 cpu=100
			node n1 cpu=100
			  low 20 cpu=50
			  holder 40 cpu=50 port`,
			"[low holder]", "[holder]",
		},
		{
			"an allocation that excludes the preemptor is evicted",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  low 20 cpu=150
			  rival 40 separation`,
			"[low rival]", "[low rival]",
		},
		{
			"an overcommitted node has a shortfall in dimensions that are not requested",
			`preemptor 90 cpu=100 memory=0
			node n1 cpu=0 memory=-10
			  a 20 cpu=100
			  b 30 memory=10`,
			"[a b]", "[a b]",
		},
		{
			"ties are evicted in row order",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  first 20 cpu=100
			  second 20 cpu=100`,
			"[first]", "[first]",
		},
		{
			"infeasible: all rows are listed, none is evicted",
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
			s := policytest.Select(t, rules.New(), in)
			if got := fmt.Sprint(c.Names(0, policytest.Picks(in, s, 0))); got != tt.picks {
				t.Errorf("picks %s, want %s", got, tt.picks)
			}
			if got := fmt.Sprint(c.Names(0, policytest.EvictUntilFit(in, s, false)[0])); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

func TestDefault_AllocatesNothingOnceWarm(t *testing.T) {
	in, p := policytest.ConstructionA(50, true).Candidates(), rules.New()
	options := manyOptions(64)
	var s policy.Selection
	scores := policytest.NewScores(options.Len())
	n := testing.AllocsPerRun(100, func() {
		s.Reset()
		_ = p.SelectVictims(in, &s)
		_ = p.ScoreOptions(options, scores)
	})
	if n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

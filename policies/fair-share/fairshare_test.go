package fairshare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
	"github.com/cede-scheduler/cede/sdk/settings"
)

func configured(t testing.TB, config string) *fairshare.Policy {
	t.Helper()
	return policytest.Configured(t, fairshare.New(), config)
}

const onlyAbove = `{"onlyAbove":true}`

func shape(k int) policytest.Shape {
	return policytest.Shape{Options: 4, Rows: 8 + 8*(k%5/4), Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4, Tenants: true}
}

func TestFairShare_SatisfiesLaws(t *testing.T) {
	t.Parallel()
	for _, config := range []string{`{}`, onlyAbove} {
		t.Run(config, func(t *testing.T) {
			policytest.Laws{New: func() policy.VictimSelector { return configured(t, config) }, Shape: shape}.Check(t)
		})
	}
}

func TestFairShare_PicksDescribedVictims(t *testing.T) {
	t.Parallel()
	for _, above := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 2))
		p := configured(t, fmt.Sprintf(`{"onlyAbove":%v}`, above))
		picked, spared := 0, 0
		for k := range policytest.Count(t) / 4 {
			c := policytest.Random(r, shape(k))
			in := c.Candidates()
			s := policytest.Select(t, p, in)
			for i := range c.Options {
				got, want := policytest.Picks(in, s, i), oracleVictims(c, &c.Options[i], above)
				if !slices.Equal(got, want) {
					t.Fatalf("case %d, option %d: picks %v, want %v\n%+v", k, i, got, want, c)
				}
				picked += len(got)
				if len(got) < len(c.Options[i].Rows) && !policytest.Fits(in, i, got) {
					spared++
				}
			}
		}
		if picked == 0 || above != (spared > 0) {
			t.Errorf("onlyAbove %v: %d rows picked, %d options given up", above, picked, spared)
		}
	}
}

func TestFairShare_Cases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, text, victims string }{
		{
			"the namespace with the highest share loses first, regardless of priority", ``, `
			cluster cpu=1000
			namespace rich cpu=600
			namespace poor cpu=200
			preemptor 90 namespace=new cpu=100
			node n1 cpu=0
			  p 10 cpu=100 namespace=poor
			  r 80 cpu=100 namespace=rich`,
			"[r]",
		},
		{
			"a weight of three makes three times the use an equal share", ``, `
			cluster cpu=1000
			namespace rich weight=3 cpu=500
			namespace poor cpu=200
			preemptor 90 namespace=new cpu=100
			node n1 cpu=0
			  p 10 cpu=100 namespace=poor
			  r 10 cpu=100 namespace=rich`,
			"[p]",
		},
		{
			"the dominant resource counts", ``, `
			cluster cpu=1000 memory=1000
			namespace spinner cpu=400
			namespace keeper memory=500
			preemptor 90 namespace=new cpu=50
			node n1 cpu=0
			  k 10 cpu=50 namespace=keeper
			  s 10 cpu=100 namespace=spinner`,
			"[k]",
		},
		{
			"the next victim comes from another namespace as shares fall", ``, `
			cluster cpu=1000
			namespace a cpu=400
			namespace b cpu=350
			preemptor 90 namespace=new cpu=300
			node n1 cpu=0
			  a1 10 cpu=100 namespace=a
			  a2 10 cpu=100 namespace=a
			  b1 10 cpu=100 namespace=b
			  b2 10 cpu=100 namespace=b`,
			"[a1 b1 a2]",
		},
		{
			"the preemptor counts in its own namespace before it runs", ``, `
			cluster cpu=1000
			namespace a cpu=300
			namespace b cpu=350
			preemptor 90 namespace=a cpu=100
			node n1 cpu=0
			  own 10 cpu=100 namespace=a
			  other 10 cpu=100 namespace=b`,
			"[own]",
		},
		{
			"within a namespace lowest priority first, then the nearest, then the first", ``, `
			preemptor 90 namespace=new cpu=150
			node n1 cpu=0
			  far 20 cpu=10 namespace=a
			  near 20 cpu=70 namespace=a
			  again 20 cpu=70 namespace=a
			  higher 30 cpu=150 namespace=a`,
			"[near again far]",
		},
		{
			"equal shares: the lower priority is evicted first", ``, `
			preemptor 90 namespace=new cpu=100
			node n1 cpu=0
			  a 30 cpu=100 namespace=a
			  b 20 cpu=100 namespace=b`,
			"[b]",
		},
		{
			"a row that must be evicted comes first and counts", ``, `
			cluster cpu=1000
			namespace a cpu=400
			namespace b cpu=350
			preemptor 90 namespace=new cpu=200 ports=1
			node n1 cpu=0
			  port 50 cpu=100 namespace=a port
			  a1 10 cpu=100 namespace=a
			  b1 20 cpu=100 namespace=b`,
			"[port b1]",
		},
		{
			"a resource without capacity does not raise a share", ``, `
			cluster cpu=1000 licence=0
			namespace a cpu=100 licence=5
			namespace b cpu=200
			preemptor 90 namespace=new cpu=100
			node n1 cpu=0
			  a1 10 cpu=100 licence=1 namespace=a
			  b1 10 cpu=100 namespace=b`,
			"[b1]",
		},
		{
			"only namespaces above their fair share lose work", onlyAbove, `
			cluster cpu=900
			namespace a cpu=310
			namespace b cpu=290
			preemptor 90 namespace=c cpu=200
			node n1 cpu=0
			  a1 80 cpu=5 namespace=a
			  b1 10 cpu=300 namespace=b`,
			"[]", // the fair share is 300 for each of three: b is protected, and a has too little here
		},
		{
			"and only until they reach it", onlyAbove, `
			cluster cpu=900
			namespace a cpu=310
			namespace b cpu=400
			preemptor 90 namespace=c cpu=200
			node n1 cpu=0
			  a1 10 cpu=100 namespace=a
			  b1 10 cpu=50 namespace=b
			  b2 10 cpu=50 namespace=b
			  b3 10 cpu=50 namespace=b`,
			"[b1 b2 a1]", // a is above until a1 is evicted; b3 is not considered
		},
		{
			"the preemptor's own namespace may lose although it has little", onlyAbove, `
			cluster cpu=900
			namespace b cpu=290
			preemptor 90 namespace=a cpu=100
			node n1 cpu=0
			  a1 10 cpu=100 namespace=a
			  b1 10 cpu=100 namespace=b`,
			"[a1]",
		},
		{
			"a protected row that must be evicted makes the option infeasible", onlyAbove, `
			cluster cpu=900
			namespace a cpu=600
			preemptor 90 namespace=c cpu=100 ports=1
			node n1 cpu=0
			  a1 10 cpu=100 namespace=a
			  b1 10 cpu=100 namespace=b port`,
			"[]",
		},
		{
			"fits already", ``, `
			preemptor 90 cpu=100
			node n1 cpu=100
			  a 20 cpu=50`,
			"[]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			s := policytest.Select(t, configured(t, tt.config), in)
			if got := fmt.Sprint(c.Names(0, policytest.EvictUntilFit(in, s, false)[0])); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

// With onlyAbove, every victim would also be a victim without it, and the shares of
// other namespaces have no effect on a node that runs only the preemptor's own
// namespace.
func TestFairShare_OnlyAboveStopsSoonerAndPicksTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	all, some := configured(t, `{}`), configured(t, onlyAbove)
	for k := range policytest.Count(t) / 10 {
		c := policytest.Random(r, policytest.Shape{Options: 3, Rows: 10, Tenants: true, NoTies: true})
		in := c.Candidates()
		a, b := policytest.Select(t, all, in), policytest.Select(t, some, in)
		for i := range c.Options {
			picks, fewer := policytest.Picks(in, a, i), policytest.Picks(in, b, i)
			others := func(rows []int) (list []int) {
				for _, row := range rows {
					if c.Options[i].Rows[row].Namespace != c.Preemptor.Namespace {
						list = append(list, row)
					}
				}
				return list
			}
			if from, to := others(picks), others(fewer); len(to) > len(from) || !slices.Equal(from[:len(to)], to) {
				t.Fatalf("case %d, option %d: evicts %v of others, with onlyAbove %v", k, i, from, to)
			}
		}
	}
}

// More use never makes a namespace lose less.
func TestFairShare_LargerShareIsEvictedNoLater(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	p := configured(t, `{}`)
	for k := range policytest.Count(t) / 10 {
		c := policytest.Random(r, policytest.Shape{Options: 1, Rows: 10, Tenants: true, NoTies: true})
		first := func() string {
			in := c.Candidates()
			picks := policytest.Picks(in, policytest.Select(t, p, in), 0)
			if len(picks) == 0 {
				return ""
			}
			return c.Options[0].Rows[picks[0]].Namespace
		}
		before := first()
		for i := range c.Namespaces {
			if c.Namespaces[i].Name != before {
				continue
			}
			for d := range c.Dims {
				c.Namespaces[i].Use[d] *= 1 + r.Float64()
			}
		}
		if after := first(); after != before {
			t.Fatalf("case %d: %s is evicted first, with more use %s", k, before, after)
		}
	}
}

func TestFairShare_PrefersOptionsOfLargestShares(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
	cluster cpu=1000
	namespace rich cpu=600
	namespace poor cpu=200
	preemptor 90 namespace=new cpu=100
	node n1 cpu=0
	  p1 10 cpu=100 namespace=poor
	node n2 cpu=0
	  p2 10 cpu=50 namespace=poor
	  r2 10 cpu=50 namespace=rich
	node n3 cpu=0
	  r3 80 cpu=100 namespace=rich
	node n4 cpu=0
	  r4 70 cpu=100 namespace=rich
	node n5 cpu=100`)
	in := c.OptionsOf([][]int{{0}, {0, 1}, {0}, {0}, {}})
	out := policytest.NewScores(in.Len())
	if err := configured(t, `{}`).ScoreOptions(in, out); err != nil {
		t.Fatal(err)
	}
	order := []int{0, 1, 2, 3, 4}
	slices.SortStableFunc(order, func(a, b int) int {
		for _, tier := range out.Tiers {
			if tier[a] != tier[b] {
				return map[bool]int{true: -1, false: 1}[tier[a] < tier[b]]
			}
		}
		return 0
	})
	// No victim, then the highest share by default's rules, then the fewest of the lowest.
	if got, want := fmt.Sprint(order), "[4 3 2 0 1]"; got != want {
		t.Errorf("options in order %s, want %s: %v", got, want, out.Tiers)
	}
	if out.Tiers[0][4] != math.MinInt64 || out.Tiers[0][3] != -600_000 {
		t.Errorf("first tiers %v", out.Tiers[0])
	}
}

func TestFairShare_SettingsAreInOrder(t *testing.T) {
	t.Parallel()
	if err := settings.Check(fairshare.New().Settings()); err != nil {
		t.Error(err)
	}
}

func TestFairShare_AllocatesNothingOnceWarm(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := policytest.Random(r, policytest.Shape{Options: 8, Rows: 40, Tenants: true})
	in := c.Candidates()
	victims := make([][]int, len(c.Options))
	for i, o := range c.Options {
		for row := range o.Rows {
			victims[i] = append(victims[i], row)
		}
	}
	options := c.OptionsOf(victims)
	p, scores := configured(t, `{}`), policytest.NewScores(options.Len())
	var s policy.Selection
	n := testing.AllocsPerRun(100, func() {
		s.Reset()
		_ = p.SelectVictims(in, &s)
		_ = p.ScoreOptions(options, scores)
	})
	if n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// With one namespace the preemptor can only evict its own namespace, and the policy
// reduces to the order within a namespace, which is default's.
func TestFairShare_IsDefaultWithinOneNamespace(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	p, other := configured(t, onlyAbove), rules.New()
	for k := range policytest.Count(t) / 10 {
		c := policytest.Random(r, policytest.Shape{Options: 3, Rows: 12, Devices: k%2 == 0, Small: k%3 == 0})
		in := c.Candidates()
		got := policytest.EvictUntilFit(in, policytest.Select(t, p, in), false)
		want := policytest.EvictUntilFit(in, policytest.Select(t, other, in), false)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("case %d: victims %v, under default %v", k, got, want)
		}
	}
}

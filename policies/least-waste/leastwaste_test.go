package leastwaste_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

var widths = []int{0, 1, 15}

func configured(t testing.TB, bands int) *leastwaste.Policy {
	return policytest.Configured(t, leastwaste.New(), fmt.Sprintf(`{"bands":%d}`, bands))
}

func eachWidth(t *testing.T, test func(t *testing.T, bands int)) {
	for _, bands := range widths {
		t.Run(fmt.Sprintf("bands=%d", bands), func(t *testing.T) { test(t, bands) })
	}
}

func shape(k int) policytest.Shape {
	return policytest.Shape{Options: 4, Rows: 9 + 21*(k%5/4), Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4, Work: true}
}

func TestLeastWaste_SatisfiesLaws(t *testing.T) {
	t.Parallel()
	eachWidth(t, func(t *testing.T, bands int) {
		policytest.Laws{New: func() policy.VictimSelector { return configured(t, bands) }, Shape: shape}.Check(t)
	})
}

// settled returns the victims of p after the host's reprieve.
func settled(t *testing.T, p policy.VictimSelector, in *policy.Candidates) [][]int {
	t.Helper()
	return policytest.EvictUntilFit(in, policytest.Select(t, p, in), false)
}

// bill returns the cost of a set of rows by band, implemented from the description:
// the lost nanoseconds of the whole cluster, plus one per row.
func bill(c *policytest.Case, bands int, o *policytest.Option, set []int) map[int]int64 {
	sums := map[int]int64{}
	for _, k := range set {
		r := &o.Rows[k]
		share := 0.0
		for d, total := range c.Totals {
			share += r.Use[d] / total
		}
		worth := 1.0
		if x, ok := r.Annotations["cost"]; ok {
			worth = max(x, 0)
		}
		band := 0
		if bands > 0 {
			band = int(math.Floor(float64(r.Priority) / float64(bands)))
		}
		sums[band] += 1 + int64(worth*float64(r.LostWork)*share/float64(len(c.Totals)))
	}
	return sums
}

// compare compares two bills from the highest band downwards.
func compare(a, b map[int]int64) int {
	for band := 200; band > -200; band-- {
		if a[band] != b[band] {
			if a[band] < b[band] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func TestLeastWaste_OnNoOptionDoesDefaultCostLess(t *testing.T) {
	t.Parallel()
	eachWidth(t, func(t *testing.T, bands int) {
		r := rand.New(rand.NewPCG(1, 2))
		p := configured(t, bands)
		better := 0
		for k := range policytest.Count(t) / 4 {
			c := policytest.Random(r, shape(k))
			in := c.Candidates()
			ours, theirs := settled(t, p, in), settled(t, rules.New(), in)
			for i := range ours {
				if (ours[i] == nil) != (theirs[i] == nil) {
					t.Fatalf("case %d, option %d: victims %v, of default %v", k, i, ours[i], theirs[i])
				}
				switch compare(bill(c, bands, &c.Options[i], ours[i]), bill(c, bands, &c.Options[i], theirs[i])) {
				case 1:
					t.Fatalf("case %d, option %d: %v cost more than %v", k, i, ours[i], theirs[i])
				case -1:
					better++
				}
				for v := range ours[i] {
					if policytest.Fits(in, i, slices.Delete(slices.Clone(ours[i]), v, v+1)) {
						t.Fatalf("case %d, option %d: victim %d of %v is not needed", k, i, v, ours[i])
					}
				}
			}
		}
		if better == 0 {
			t.Error("never better than default")
		}
	})
}

// The least waste, found by search, is the yardstick of the greedy choice.
func TestLeastWaste_IsWithinTwoPercentOfTheLeastThereIs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	p := configured(t, 0)
	exact := policytest.Configured(t, optimal.New(), `{"cost":"waste","maxSteps":1000000}`)
	options, apart, ratio := 0, 0, 0.0
	for range policytest.Count(t) / 40 {
		c := policytest.Random(r, policytest.Shape{Options: 4, Rows: 40, Work: true})
		in := c.Candidates()
		ours, least := settled(t, p, in), settled(t, exact, in)
		for i := range ours {
			if len(ours[i]) == 0 {
				continue
			}
			x, y := bill(c, 0, &c.Options[i], ours[i])[0], bill(c, 0, &c.Options[i], least[i])[0]
			if x < y && exact.Cut() == 0 {
				t.Fatalf("%v cost less than %v, which should be the cheapest", ours[i], least[i])
			}
			if x > y {
				apart++
			}
			options++
			ratio += float64(x) / float64(y)
		}
	}
	t.Logf("%d options, %d not the best, on average %.4f of the best", options, apart, ratio/float64(options))
	if ratio > 1.02*float64(options) {
		t.Error("too far from the best")
	}
}

func TestLeastWaste_Cases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, text, victims string }{
		{
			"the youngest of equals is evicted",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  old 20 cpu=1000 age=3h
			  new 20 cpu=1000 age=1m`,
			"[[new]]",
		},
		{
			"work saved by a checkpoint is not lost",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  old 20 cpu=1000 age=3h lostwork=1m
			  new 20 cpu=1000 age=10m`,
			"[[old]]",
		},
		{
			"an hour of a small allocation costs less than an hour of a large one",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  large 20 cpu=4000 age=1h
			  small 20 cpu=1000 age=1h`,
			"[[small]]",
		},
		{
			"without bands, a higher priority that loses nothing is evicted before a lower one that does",
			`{"bands":0}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  low 20 cpu=1000 age=3h
			  high 60 cpu=1000 age=1m`,
			"[[high]]",
		},
		{
			"but not from a higher band",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  low 20 cpu=1000 age=3h
			  low2 25 cpu=1000 age=2h
			  high 60 cpu=1000 age=1m`,
			"[[low2]]",
		},
		{
			"no row of the lower band is evicted unnecessarily if the higher band is needed",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  low 20 cpu=500 age=1h
			  high 60 cpu=1000 age=1m`,
			"[[high]]",
		},
		{
			"bands reach below zero",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  below -5 cpu=1000 age=3h
			  above 5 cpu=1000 age=1m`,
			"[[below]]",
		},
		{
			"many small losses can be less than one large, and more",
			`{}`,
			`cluster cpu=10000
			preemptor 90 cpu=1000
			node n1 cpu=0
			  big 20 cpu=1000 age=1h
			  x 20 cpu=500 age=50m
			  y 20 cpu=500 age=50m
			node n2 cpu=0
			  big 20 cpu=1000 age=1h
			  x 20 cpu=500 age=70m
			  y 20 cpu=500 age=70m`,
			"[[x y] [big]]",
		},
		{
			"resources weigh as shares of the cluster",
			`{}`,
			`cluster cpu=10000 memory=1000
			preemptor 90 cpu=100
			node n1 cpu=0 memory=0
			  thinker 20 cpu=500 memory=10 age=1h
			  keeper 20 cpu=100 memory=100 age=1h`,
			"[[thinker]]",
		},
		{
			"a factor raises the cost",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  worth 20 cpu=1000 age=1h note:cost=10
			  plain 20 cpu=1000 age=3h
			  trash 29 cpu=1000 age=9h note:cost=0`,
			"[[trash]]",
		},
		{
			"seconds replace the measured loss",
			`{"annotation":"restart","annotationAs":"seconds"}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  slow 20 cpu=1000 age=1m note:restart=7200
			  plain 20 cpu=1000 age=1h`,
			"[[plain]]",
		},
		{
			"an annotation that is not configured does not count",
			`{"annotation":""}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  worth 20 cpu=1000 age=1h note:cost=10
			  plain 20 cpu=1000 age=3h`,
			"[[worth]]",
		},
		{
			"a row that must be evicted is counted first",
			`{}`,
			`preemptor 90 cpu=100
			node n1 cpu=0
			  cheap 20 cpu=100 age=1s
			  holder 40 cpu=100 age=9h port`,
			"[[holder]]",
		},
		{
			"device instances are needed too",
			`{}`,
			`preemptor 90 cpu=100 device:gpu=2
			node n1 cpu=0 device:gpu=0
			  a 20 cpu=100 device:gpu=1 age=1h
			  b 20 cpu=100 device:gpu=1 age=2h
			  c 20 cpu=100 device:gpu=2 age=4h
			  d 20 cpu=100 age=1s`,
			"[[a b]]",
		},
		{
			"no set of rows frees enough",
			`{}`,
			`preemptor 90 cpu=100
			node n1 cpu=0
			  a 20 cpu=50 age=1h`,
			"[[]]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			p := policytest.Configured(t, leastwaste.New(), tt.config)
			var names [][]string
			for i, rows := range settled(t, p, c.Candidates()) {
				names = append(names, c.Names(i, rows))
			}
			if got := fmt.Sprint(names); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

func TestLeastWaste_RanksOptionsByLostWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, text, best string }{
		{
			"the least waste",
			`{"bands":0}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=1000 age=2h
			node n2 cpu=0
			  b 50 cpu=1000 age=1h`,
			"n2",
		},
		{
			"the lowest band",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=1000 age=2h
			node n2 cpu=0
			  b 50 cpu=1000 age=1h`,
			"n1",
		},
		{
			"the least in that band, regardless of lower bands",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500 age=1s
			  b 50 cpu=500 age=2h
			node n2 cpu=0
			  c 20 cpu=500 age=9h
			  d 55 cpu=500 age=1h`,
			"n2",
		},
		{
			"no work is lost: the fewest",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=500
			  b 20 cpu=500
			node n2 cpu=0
			  c 29 cpu=1000`,
			"n2",
		},
		{
			"equals: the lowest highest priority",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 29 cpu=1000 age=1h
			node n2 cpu=0
			  b 20 cpu=1000 age=1h`,
			"n2",
		},
		{
			"no eviction at all",
			`{}`,
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a -30 cpu=1000
			node n2 cpu=1000`,
			"n2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			p := policytest.Configured(t, leastwaste.New(), tt.config)
			out := policytest.NewScores(len(c.Options))
			if err := p.ScoreOptions(c.OptionsOf(settled(t, p, c.Candidates())), out); err != nil {
				t.Fatal(err)
			}
			if got := c.Options[policytest.Best(out)].Name; got != tt.best {
				t.Errorf("%s is the best, want %s: %+v", got, tt.best, out)
			}
		})
	}
}

func TestLeastWaste_AllocatesNothingOnceWarm(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	c := policytest.Random(r, policytest.Shape{Options: 20, Rows: 40, Devices: true, MustLeave: true, Work: true})
	in, p := c.Candidates(), configured(t, 10)
	options := c.OptionsOf(settled(t, p, in))
	scores := policytest.NewScores(options.Len())
	var s policy.Selection
	n := testing.AllocsPerRun(100, func() {
		s.Reset()
		_ = p.SelectVictims(in, &s)
		_ = p.ScoreOptions(options, scores)
	})
	if n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

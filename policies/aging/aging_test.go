package aging_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/policies/aging"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/settings"
)

func configured(t testing.TB, config string) *aging.Policy {
	t.Helper()
	return policytest.Configured(t, aging.New(), config)
}

func TestAging_Cases(t *testing.T) {
	t.Parallel()
	// 45, 49 and 50 are on one node, and 50 is the preemptor; a candidate with a gap
	// of 10 or more is eligible at any age.
	const node = `
	node n1 cpu=0
	  far 30 cpu=100 age=1h
	  near 45 cpu=100 age=1h
	  nearest 49 cpu=100 age=1h
	  equal 50 cpu=100 age=1h`
	for _, tt := range []struct {
		name, config, waiting string
		eligible, again       string // again: delay until the recheck; "" for none
	}{
		{"a new preemptor needs the whole gap", ``, "0s", "[far]", "10m0s"},
		{"a nanosecond before the half-life", ``, "9m59.999999999s", "[far]", "1ns"},
		{"after one half-life half the gap suffices", ``, "10m", "[far near]", "23m13.156856933s"},
		{"eventually every strictly lower priority is eligible", ``, "100h", "[far near nearest]", ""},
		{"a half-life of its own", `{"halfLife":"1h"}`, "1h", "[far near]", "2h19m18.941141595s"},
		{"grace comes first", `{"grace":"1h"}`, "1h", "[far]", "10m0s"},
		{"after the grace period it does not count", `{"grace":"1h"}`, "1h10m", "[far near]", "23m13.156856933s"},
		{"the gap does not fall below the floor", `{"floor":5}`, "100h", "[far near]", ""},
		{"a floor above the base gap has no effect", `{"floor":11}`, "100h", "[far]", ""},
		{"an allocation that has not settled becomes eligible later", `{"settle":"3h"}`, "100h", "[far]", "2h0m0s"},
		{"the later of both times counts", `{"settle":"61m"}`, "9m", "[far]", "1m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, "preemptor 50 cpu=100 waiting="+tt.waiting+node)
			in := c.Candidates()
			gaps, at := policytest.Gaps(t, configured(t, tt.config), in)
			if got := fmt.Sprint(c.Names(0, policytest.Eligible(in, gaps, 0))); got != tt.eligible {
				t.Errorf("eligible %s, want %s", got, tt.eligible)
			}
			again := ""
			if at != 0 {
				again = time.Duration(at - in.Now).String()
			}
			if again != tt.again {
				t.Errorf("recheck after %q, want %q", again, tt.again)
			}
		})
	}
}

// An allocation that has not started loses no work, so it needs no time to settle.
func TestAging_EvictsAllocationsThatHaveNotStarted(t *testing.T) {
	t.Parallel()
	in := policytest.MustParse(t, `
	preemptor 50 cpu=100 waiting=1h
	node n1 cpu=0
	  starting 45 cpu=100`).Candidates()
	gaps, at := policytest.Gaps(t, configured(t, `{"settle":"1h"}`), in)
	if len(policytest.Eligible(in, gaps, 0)) != 1 || at != 0 {
		t.Errorf("gaps %v, recheck at %d", gaps, at)
	}
}

// situation returns a random case in which time matters.
func situation(r *rand.Rand) *policytest.Case {
	c := policytest.Random(r, policytest.Shape{Options: 3, Rows: 8})
	c.Now = policytest.Now
	c.Preemptor.Priority = int32(40 + r.IntN(30))
	c.Preemptor.Delta = int32(r.IntN(30))
	c.Preemptor.Waiting = r.Int64N(int64(2 * time.Hour))
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			c.Options[i].Rows[k].Age = 1 + r.Int64N(int64(30*time.Minute))
		}
	}
	return c
}

var configs = []string{`{}`, `{"halfLife":"1m"}`, `{"grace":"30m","floor":3}`, `{"settle":"20m","halfLife":"3m7s"}`, `{"settle":0,"floor":9}`}

// later returns the input of the policy for the same cluster after d more.
func later(in *policy.Candidates, d int64) *policy.Candidates {
	next, who := *in, *in.Preemptor
	next.Now += d
	who.Waiting += d
	next.Preemptor = &who
	return &next
}

func eligible(t *testing.T, p *aging.Policy, in *policy.Candidates) (rows [][]int, again int64) {
	gaps, at := policytest.Gaps(t, p, in)
	for i := range in.Len() {
		rows = append(rows, policytest.Eligible(in, gaps, i))
	}
	return rows, at
}

func TestAging_RequestsRecheckAtTheNextChange(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	asked := 0
	for k := range policytest.Count(t) / 10 {
		in, p := situation(r).Candidates(), configured(t, configs[k%len(configs)])
		before, at := eligible(t, p, in)
		if at == 0 {
			if after, _ := eligible(t, p, later(in, int64(1000*time.Hour))); fmt.Sprint(before) != fmt.Sprint(after) {
				t.Fatalf("case %d: %v becomes %v without a recheck", k, before, after)
			}
			continue
		}
		asked++
		if at <= in.Now {
			t.Fatalf("case %d: recheck %d ns in the past", k, in.Now-at)
		}
		if just, again := eligible(t, p, later(in, at-in.Now-1)); fmt.Sprint(before) != fmt.Sprint(just) || again != at {
			t.Fatalf("case %d: a nanosecond before, %v is %v, with recheck at %d instead of %d", k, before, just, again, at)
		}
		if after, _ := eligible(t, p, later(in, at-in.Now)); fmt.Sprint(before) == fmt.Sprint(after) {
			t.Fatalf("case %d: recheck without effect: %v", k, after)
		}
	}
	if asked == 0 {
		t.Error("the property was not exercised")
	}
}

func TestAging_LongerWaitNeverReducesCandidates(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for k := range policytest.Count(t) / 10 {
		in, p := situation(r).Candidates(), configured(t, configs[k%len(configs)])
		short, _ := eligible(t, p, in)
		in.Preemptor.Waiting += r.Int64N(int64(time.Hour))
		long, _ := eligible(t, p, in)
		for i := range short {
			for _, row := range short[i] {
				if !slices.Contains(long[i], row) {
					t.Fatalf("case %d, option %d: %v shrinks to %v", k, i, short[i], long[i])
				}
			}
		}
	}
}

// The gap of a row depends only on that row, the preemptor and the time.
func TestAging_NeighboursDecideNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for k := range policytest.Count(t) / 10 {
		in, p := situation(r).Candidates(), configured(t, configs[k%len(configs)])
		together, _ := policytest.Gaps(t, p, in)
		for row := range together {
			alone := *in
			alone.FirstRow = []int32{0, 1}
			alone.Rows = policy.Rows{Priority: in.Rows.Priority[row : row+1], Start: in.Rows.Start[row : row+1]}
			if gaps, _ := policytest.Gaps(t, p, &alone); gaps[0] != together[row] {
				t.Fatalf("case %d: row %d has gap %d, alone %d", k, row, together[row], gaps[0])
			}
		}
	}
}

// The definition in plain floating point, which may err where the gap jumps.
func TestAging_TheGapHalves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range policytest.Count(t) {
		base, floor := 2+r.Int32N(1<<uint(1+r.IntN(30))), 1+r.Int32N(5)
		halfLife, waiting := 1+r.IntN(100), r.Int64N(int64(time.Hour))
		in := &policy.Candidates{
			Now: policytest.Now, FirstRow: []int32{0},
			Preemptor: &policy.Preemptor{Priority: math.MaxInt32, Delta: base, Waiting: waiting},
		}
		exact := float64(base) * math.Exp2(-float64(waiting)/(float64(halfLife)*1e9))
		want := max(floor, int32(math.Ceil(exact)))
		if base <= floor || math.Abs(exact-math.Round(exact)) < 1e-6 || exact-float64(want) > -1e-9*exact {
			continue
		}
		for gap := want - 1; gap <= want; gap++ {
			in.FirstRow = append(in.FirstRow[:1], 1)
			in.Rows = policy.Rows{Priority: []int32{math.MaxInt32 - gap}, Start: []int64{0}}
			gaps, _ := policytest.Gaps(t, configured(t, fmt.Sprintf(`{"halfLife":%d,"floor":%d}`, halfLife, floor)), in)
			if got := len(policytest.Eligible(in, gaps, 0)) == 1; got != (gap == want) {
				t.Fatalf("base %d, floor %d, %d ns of %d s: gap %d is enough: %v; want %d", base, floor, waiting, halfLife, gap, got, want)
			}
		}
	}
}

func TestAging_SettingsAreInOrderAndBounded(t *testing.T) {
	t.Parallel()
	if err := settings.Check(aging.New().Settings()); err != nil {
		t.Error(err)
	}
	for _, config := range []string{`{"halfLife":"0s"}`, `{"floor":0}`, `{"grace":-1}`, `{"halfLife":"20000h"}`} {
		if _, err := settings.Read(aging.New().Settings(), []byte(config)); err == nil {
			t.Errorf("%s was accepted", config)
		}
	}
}

func TestAging_AllocatesNothing(t *testing.T) {
	in, p := policytest.ConstructionA(50, true).Candidates(), configured(t, `{}`)
	in.Preemptor.Delta, in.Preemptor.Waiting = 60, int64(time.Minute)
	gaps := make([]int32, in.Rows.Len())
	var recheck policy.Recheck
	if n := testing.AllocsPerRun(100, func() { _ = p.PriorityDelta(in, gaps, &recheck) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

package nomad_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func shape(k int) policytest.Shape {
	return policytest.Shape{Options: 4, Rows: 8 + 24*(k%5/4), Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4}
}

var laws = policytest.Laws{New: func() policy.VictimSelector { return nomad.New() }, Shape: shape, KeepRedundant: true}

func TestNomad_SatisfiesLaws(t *testing.T) { laws.Check(t) }

// Info.Ascending allows the host to skip rows of higher priorities.
func TestNomad_IgnoresUnreachedPriorities(t *testing.T) { laws.CheckAscending(t) }

func TestNomad_PicksMatchReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	p := nomad.New()
	found, none, steps := 0, 0, 0
	for k := range policytest.Count(t) {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		s := policytest.Select(t, p, in)
		for i := range c.Options {
			want := []int{}
			if x := referenceVictims(c, &c.Options[i]); x != nil {
				want = append(want, x.evicted...)
				if len(x.deviceVictims) > 0 && len(x.evicted) > 2 {
					steps++
				}
			} else {
				none++
			}
			got := policytest.Picks(in, s, i)
			if !slices.Equal(got, want) {
				t.Fatalf("case %d, option %d: picks %v, want %v\n%+v", k, i, got, want, c)
			}
			if len(got) > 0 {
				found++
				if !policytest.Fits(in, i, got) {
					t.Fatalf("case %d, option %d: does not fit without %v", k, i, got)
				}
			}
		}
	}
	t.Logf("%d options with victims, %d of several steps, %d infeasible", found, steps, none)
}

func TestNomad_ConstructionAMatchesMeasuredVictims(t *testing.T) {
	t.Parallel()
	victims := func(c *policytest.Case) []string {
		in := c.Candidates()
		return c.Names(0, policytest.Picks(in, policytest.Select(t, nomad.New(), in), 0))
	}
	if got, want := strings.Join(victims(policytest.ConstructionA(50, false)), ","), "0,28,14,35,21,7,42"; got != want {
		t.Errorf("n=50: victims %s, want %s", got, want)
	}
	// Once cpu and memory suffice, the last two of n=200 are any of 24 that hold
	// the same disk. Nomad's map gave 161 and 182; so do we when they come first.
	tied := policytest.ConstructionA(200, false)
	for k, rows := 0, tied.Options[0].Rows; k < 2; k++ {
		first := []int{161, 182}[k]
		rows[k], rows[first] = rows[first], rows[k]
	}
	if got, want := strings.Join(victims(tied), ","), "0,77,182,175,161,196,98"; got != want {
		t.Errorf("n=200: victims %s, want %s", got, want)
	}
	if got, want := strings.Join(victims(policytest.ConstructionA(200, false)), ","), "0,77,14,175,7,196,98"; got != want {
		t.Errorf("n=200 in order: victims %s, want %s", got, want)
	}
	for n, want := range map[int][2]int{10: {6, 7}, 50: {7, 32}, 200: {7, 127}} {
		if fixed, half := len(victims(policytest.ConstructionA(n, false))), len(victims(policytest.ConstructionA(n, true))); fixed != want[0] || half != want[1] {
			t.Errorf("n=%d: %d and %d victims, want %v", n, fixed, half, want)
		}
	}
}

func TestNomad_Cases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, victims string }{
		{
			"quirk 2: the filter retains the farthest rows even if they are not needed",
			`preemptor 90 cpu=1000 memory=1000
			node n1
			  small 20 cpu=200 memory=200
			  big 40 cpu=1000 memory=1000`,
			"[small big]",
		},
		{
			"quirk 2: a row without memory is evicted for memory",
			`preemptor 90 cpu=500 memory=1000
			node n1 cpu=600 memory=0
			  spinner 20 cpu=500 memory=1
			  keeper 30 cpu=100 memory=1000`,
			"[spinner keeper]",
		},
		{
			"quirk 3: the device filter ignores free instances",
			`preemptor 90 device:gpu=4
			node n1 device:gpu=2
			  a 10 device:gpu=1
			  c 20 device:gpu=3`,
			"[c a]",
		},
		{
			"the device filter stops at the count",
			`preemptor 90 device:gpu=4
			node n1 device:gpu=0
			  a 10 device:gpu=1
			  b 10 device:gpu=2
			  c 20 device:gpu=4`,
			"[c]",
		},
		{
			"the superset filter drops rows that the farther ones make unnecessary",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  near 20 cpu=900
			  huge 30 cpu=3000`,
			"[huge]",
		},
		{
			"infeasible even if all rows are evicted: no victims",
			`preemptor 90 cpu=1000
			node n1 cpu=0
			  a 20 cpu=900`,
			"[]",
		},
		{
			"fits already",
			`preemptor 90 cpu=100 network=10
			node n1 cpu=100 network=10
			  a 20 cpu=900`,
			"[]",
		},
		{
			"bandwidth: only rows that hold bandwidth",
			`preemptor 100 cpu=1100 memory=1000 disk=25600 network=840
			node n1 cpu=900 memory=5424 disk=90112 network=200
			  a0 30 cpu=2800 memory=2256 disk=4096
			  a1 30 cpu=200 memory=256 disk=4096 network=800`,
			"[a1]",
		},
		{
			"the last step ignores bandwidth",
			`preemptor 90 cpu=100 network=100
			node n1 cpu=0 network=100
			  wide 20 cpu=100 network=100
			  slim 20 cpu=100`,
			"[wide]", // equal distance: the first
		},
		{
			"the holder of a port is evicted, and its bandwidth counts",
			`preemptor 100 cpu=600 network=700
			node n1 cpu=2000 network=150
			  a1 30 cpu=200 network=600 port
			  a2 30 cpu=200 network=100`,
			"[a1]",
		},
		{
			"two holders of ports without a bandwidth request: no row is filtered",
			`preemptor 90 cpu=10
			node n1 cpu=10
			  a 20 cpu=1 port
			  b 30 cpu=1 port`,
			"[a b]",
		},
		{
			"with a bandwidth request the filter may drop the holder of a port: infeasible",
			`preemptor 90 network=100
			node n1 network=100
			  a 20 network=10 port
			  b 30 network=10 port`,
			"[]",
		},
		{
			"within a priority bandwidth is compared with the whole request",
			`preemptor 90 network=500
			node n1 network=400
			  exact 20 network=100
			  most 20 network=450`,
			"[most]",
		},
		{
			"preemption does not resolve anti-affinity",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  a 20 cpu=100 separation`,
			"[]",
		},
		{
			"victims of the bandwidth step count for devices and resources",
			`preemptor 90 network=100 cpu=300 device:gpu=2
			node n1 network=0 cpu=0 device:gpu=0
			  net 40 network=100 cpu=100 device:gpu=1
			  gpu 30 cpu=100 device:gpu=1
			  cpu 20 cpu=100`,
			"[net gpu cpu]",
		},
		{
			"if the last step fails, the victims of the first are dropped",
			`preemptor 90 network=100 cpu=300
			node n1 network=0 cpu=0
			  net 20 network=100 cpu=100`,
			"[]",
		},
		{
			"the penalty reorders within a priority",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  exact 20 cpu=100 evictions=1/1
			  far 20 cpu=900 evictions=1/2`,
			"[far]",
		},
		{
			"the penalty does not protect a lower priority",
			`preemptor 90 cpu=100
			node n1 cpu=0
			  exact 20 cpu=100 evictions=9/1
			  far 30 cpu=100`,
			"[exact]",
		},
		{
			"a surplus in one dimension does not count while another is insufficient",
			`preemptor 75 memory=2048 disk=1024
			node n1 memory=0 disk=0
			  a1 20 memory=512 disk=820
			  a2 20 memory=512 disk=205
			  a4 50 cpu=500 memory=1024 disk=512
			  a5 50 cpu=500 memory=1024 disk=512`,
			"[a2 a1 a4]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			s := policytest.Select(t, nomad.New(), in)
			if got := fmt.Sprint(c.Names(0, policytest.Picks(in, s, 0))); got != tt.victims {
				t.Errorf("victims %s, want %s", got, tt.victims)
			}
		})
	}
}

func TestNomad_DoesNotAllocateWhenWarm(t *testing.T) {
	in, p := policytest.ConstructionA(50, true).Candidates(), nomad.New()
	options := deviceOptions(t, 64)
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

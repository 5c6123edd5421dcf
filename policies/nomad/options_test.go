package nomad_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func scoreOptions(t testing.TB, in *policy.Options) *policy.OptionScores {
	t.Helper()
	out := policytest.NewScores(in.Len())
	if err := nomad.New().ScoreOptions(in, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNomad_OptionScoresMatchReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 22))
	compared := 0
	for k := range policytest.Count(t) {
		c := policytest.Random(r, policytest.Shape{Options: 6, Rows: 6, Small: true, Devices: true, MustLeave: k%3 == 0})
		c.Preemptor.JobType = []string{"service", "batch", "system", "sysbatch"}[r.IntN(4)]
		kept, victims, answers := fitting(c)
		if len(kept.Options) == 0 {
			continue
		}
		in := kept.OptionsOf(victims)
		out := scoreOptions(t, in)
		for i := range kept.Options {
			if want := referenceScore(kept, i, victims[i]); math.Abs(out.Score[i]-want) > 1e-15 {
				t.Fatalf("case %d, option %d: score %v, want %v", k, i, out.Score[i], want)
			}
		}
		if ambiguous(kept) {
			continue
		}
		compared++
		for i, want := range referenceTiers(in.Node, answers) {
			if out.Tiers[0][i] != want {
				t.Fatalf("case %d, option %d: tier %d, want %d\n%+v", k, i, out.Tiers[0][i], want, kept)
			}
		}
	}
	t.Logf("%d choices of device groups compared", compared)
}

// ambiguous reports whether a row holds devices for several requests. Only then the
// list of victims does not determine the request for which the row was evicted.
func ambiguous(c *policytest.Case) bool {
	for _, o := range c.Options {
		for _, r := range o.Rows {
			serves := 0
			for _, held := range r.Devices {
				if held > 0 {
					serves++
				}
			}
			if serves > 1 {
				return true
			}
		}
	}
	return false
}

// fitting returns the options on which every step succeeds.
func fitting(c *policytest.Case) (*policytest.Case, [][]int, []*reference) {
	kept := *c
	kept.Options = nil
	var victims [][]int
	var answers []*reference
	for i := range c.Options {
		if x := referenceVictims(c, &c.Options[i]); x != nil {
			kept.Options = append(kept.Options, c.Options[i])
			victims = append(victims, x.evicted)
			answers = append(answers, x)
		}
	}
	return &kept, victims, answers
}

func referenceScore(c *policytest.Case, i int, victims []int) float64 {
	o := &c.Options[i]
	scores := []float64{o.FitBefore}
	for k, s := range o.Components {
		if o.Present&(1<<k) != 0 {
			scores = append(scores, s)
		}
	}
	if len(victims) > 0 && (c.Preemptor.JobType == "service" || c.Preemptor.JobType == "batch") {
		highest, sum := 0.0, 0.0
		for _, k := range victims {
			highest = max(highest, float64(o.Rows[k].Priority))
			sum += float64(o.Rows[k].Priority)
		}
		net := highest + sum/highest
		scores = append(scores, 1/(1+math.Exp(0.0048*(net-2048))))
	}
	sum := 0.0
	for _, s := range scores {
		sum += s
	}
	return sum / float64(len(scores))
}

// referenceTiers returns 0 for the best device choice of each node and 1 for others.
func referenceTiers(node []int32, answers []*reference) []int64 {
	better := func(a, b *reference) bool {
		for q := range a.deviceVictims {
			na, nb := a.netPriority(q), b.netPriority(q)
			switch {
			case na == nil && nb == nil:
			case na == nil || nb == nil:
				return na == nil
			case *na != *nb:
				return *na < *nb
			}
		}
		return false
	}
	best := map[int32]int{}
	for i, n := range node {
		if b, ok := best[n]; !ok || better(answers[i], answers[b]) {
			best[n] = i
		}
	}
	tiers := make([]int64, len(node))
	for i, n := range node {
		if best[n] != i {
			tiers[i] = 1
		}
	}
	return tiers
}

func TestNomad_PreemptionScoreMatchesMeasuredValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		highest, count int32
		sum            int64
		want           float64
	}{
		{20, 1, 20, 0.99994},  // net 21
		{75, 10, 750, 0.9999}, // net 85
		{90, 100, 9000, 0.99987},
		{1024, 1, 1 << 20, 0.5}, // net 2048
		{0, 3, 0, 0.99995},      // priority 0: no quotient
		{-5, 2, -10, 0.99995},
	} {
		in := &policy.Options{
			Preemptor: &policy.Preemptor{JobType: "service"},
			Node:      []int32{0}, HighestPriority: []int32{tt.highest}, VictimCount: []int32{tt.count}, PrioritySum: []int64{tt.sum},
			FitBefore: []float64{0}, Present: []uint8{0},
		}
		if got := 2 * scoreOptions(t, in).Score[0]; math.Abs(got-tt.want) > 2e-5 {
			t.Errorf("highest %d, sum %d: %v, want %v", tt.highest, tt.sum, got, tt.want)
		}
	}
}

func TestNomad_PrefersDeviceGroupWithLowestNetPriority(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		tiers      []int64
	}{
		{
			"equal priorities count once",
			`preemptor 90 device:gpu=2
			node n1 device:gpu=0@1
			  a 30 device:gpu=2
			node n1 device:gpu=0@2
			  b 20 device:gpu=1
			  c 20 device:gpu=1`,
			[]int64{1, 0},
		},
		{
			"a free group wins over any",
			`preemptor 90 device:gpu=2
			node n1 device:gpu=0@1
			  a -30 device:gpu=2
			node n1 device:gpu=2@2
			  a -30`,
			[]int64{1, 0},
		},
		{
			"the first of equal groups, separately on each node",
			`preemptor 90 device:gpu=1
			node n1 device:gpu=0@1
			  a 30 device:gpu=1
			node n1 device:gpu=0@2
			  b 30 device:gpu=1
			node n2 device:gpu=0@1
			  c 40 device:gpu=1`,
			[]int64{0, 1, 0},
		},
		{
			"victims of the resource step do not count",
			`preemptor 90 device:gpu=2 cpu=100
			node n1 device:gpu=1@1 cpu=0
			  a 20 device:gpu=1
			  b 50 device:gpu=1 cpu=100
			node n1 device:gpu=1@2 cpu=0
			  c 30 device:gpu=1
			  b 50 cpu=100`,
			[]int64{0, 1},
		},
		{
			"victims of the port step do not count",
			`preemptor 90 device:gpu=2
			node n1 device:gpu=0@1
			  a 20 device:gpu=1
			  b 70 device:gpu=1 port
			node n1 device:gpu=0@2
			  c 30 device:gpu=2
			  b 70 port`,
			[]int64{0, 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			victims := policytest.EvictUntilFit(in, policytest.Select(t, nomad.New(), in), true)
			out := scoreOptions(t, c.OptionsOf(victims))
			for i, want := range tt.tiers {
				if out.Tiers[0][i] != want {
					t.Errorf("option %d: tier %d, want %d", i, out.Tiers[0][i], want)
				}
			}
		})
	}
}

// deviceOptions returns about n options with device requests in their state after
// SelectVictims.
func deviceOptions(t testing.TB, n int) *policy.Options {
	t.Helper()
	r := rand.New(rand.NewPCG(31, 32))
	for {
		c := policytest.Random(r, policytest.Shape{Options: 2 * n, Rows: 6, Small: true, Devices: true})
		kept, victims, _ := fitting(c)
		if len(kept.Options) >= n && len(c.Preemptor.Devices) > 0 {
			kept.Options = kept.Options[:n]
			return kept.OptionsOf(victims)
		}
	}
}

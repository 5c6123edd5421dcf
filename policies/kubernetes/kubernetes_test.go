package kubernetes_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/settings"
)

func shape(k int) policytest.Shape {
	return policytest.Shape{
		Options: 4, Rows: 8 + 72*(k%9/8), Devices: k%2 == 0, MustLeave: k%3 == 0, Small: k%7 < 4, Work: true, Budgets: k%8 < 6,
	}
}

var laws = policytest.Laws{New: func() policy.VictimSelector { return kubernetes.New() }, Shape: shape}

func TestKubernetes_SatisfiesLaws(t *testing.T) { laws.Check(t) }

// Info.Ascending allows the host to skip rows of higher priorities.
func TestKubernetes_IgnoresUnreachedPriorities(t *testing.T) {
	t.Parallel()
	laws.CheckAscending(t)
}

// Picking in reverse and reprieving the last pick first is equivalent to removing all
// rows and putting the most important back first.
func TestKubernetes_VictimsMatchReprieve(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	p := kubernetes.New()
	found, spared, none := 0, 0, 0
	for k := range policytest.Count(t) {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		settled := policytest.EvictUntilFit(in, policytest.Select(t, p, in), false)
		for i := range c.Options {
			want, got := oracle(c, in, i), settled[i]
			if (want == nil) != (got == nil) {
				t.Fatalf("case %d, option %d: victims %v, want %v\n%s", k, i, got, want, policytest.Format(c))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("case %d, option %d: victims %v, want %v\n%s", k, i, got, want, policytest.Format(c))
			}
			switch {
			case want == nil:
				none++
			case len(c.Budgets) > 0 && len(got) > 0 && len(got) < len(c.Options[i].Rows):
				spared++
			case len(got) > 0:
				found++
			}
		}
	}
	if found == 0 || spared == 0 || none == 0 {
		t.Errorf("%d options with victims, %d with budgets and reprieved rows, %d infeasible", found, spared, none)
	}
}

// No victim can be put back: each one is necessary.
func TestKubernetes_VictimsAreMinimal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	p := kubernetes.New()
	for k := range policytest.Count(t) / 4 {
		c := policytest.Random(r, shape(k))
		in := c.Candidates()
		for i, victims := range policytest.EvictUntilFit(in, policytest.Select(t, p, in), false) {
			for v := range victims {
				if policytest.Fits(in, i, slices.Delete(slices.Clone(victims), v, v+1)) {
					t.Fatalf("case %d, option %d: victim %d of %v is unnecessary\n%s", k, i, v, victims, policytest.Format(c))
				}
			}
		}
	}
}

func TestKubernetes_Settings(t *testing.T) {
	t.Parallel()
	if err := settings.Check(kubernetes.New().Settings()); err != nil {
		t.Error(err)
	}
	values, err := settings.Read(kubernetes.New().Settings(), []byte(`{"minCandidateNodesPercentage":0,"minCandidateNodesAbsolute":0}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := kubernetes.New().Configure(values); err == nil {
		t.Error("a sample of size 0 was accepted")
	}
}

func TestKubernetes_DoesNotAllocateWhenWarm(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := policytest.Random(r, policytest.Shape{Options: 8, Rows: 40, Work: true, Budgets: true})
	in, p := c.Candidates(), kubernetes.New()
	victims := make([][]int, len(c.Options))
	options := c.OptionsOf(victims)
	var s policy.Selection
	scores := policytest.NewScores(options.Len())
	if n := testing.AllocsPerRun(100, func() {
		s.Reset()
		_ = p.SelectVictims(in, &s)
		_ = p.ScoreOptions(options, scores)
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

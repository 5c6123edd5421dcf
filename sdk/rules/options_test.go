package rules_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestDefault_RanksOptionsByVictimsThenFit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for k := range policytest.Count(t) / 10 {
		in := randomOptions(r, 1+r.IntN(12))
		out := policytest.NewScores(in.Len())
		if err := rules.New().ScoreOptions(in, out); err != nil {
			t.Fatal(err)
		}
		got, want := order(in.Len()), order(in.Len())
		slices.SortStableFunc(got, func(a, b int) int { return policytest.CompareOptions(out, a, b) })
		slices.SortStableFunc(want, func(a, b int) int { return byDescription(in, a, b) })
		if !slices.Equal(got, want) {
			t.Fatalf("case %d: order %v, want %v", k, got, want)
		}
	}
}

// byDescription compares two options as the documentation of the rules defines.
func byDescription(in *policy.Options, a, b int) int {
	if free := (in.VictimCount[a] == 0); free != (in.VictimCount[b] == 0) {
		if free {
			return -1
		}
		return 1
	}
	mean := func(i int) float64 {
		parts := []float64{in.FitAfter[i]}
		for k := range in.Components {
			if in.Present[i]&(1<<k) != 0 {
				parts = append(parts, in.Components[k][i])
			}
		}
		sum := 0.0
		for _, p := range parts {
			sum += p
		}
		return sum / float64(len(parts))
	}
	return cmp.Or(
		cmp.Compare(in.HighestPriority[a], in.HighestPriority[b]),
		cmp.Compare(in.VictimCount[a], in.VictimCount[b]),
		cmp.Compare(in.PrioritySum[a], in.PrioritySum[b]),
		cmp.Compare(mean(b), mean(a)),
	)
}

func TestDefault_NoEvictionBeatsVictimsOfAnyPriority(t *testing.T) {
	t.Parallel()
	in := &policy.Options{
		Node: []int32{0, 1}, HighestPriority: []int32{-50, 0}, VictimCount: []int32{1, 0}, PrioritySum: []int64{-50, 0},
		FitAfter: []float64{1, 0},
	}
	out := policytest.NewScores(2)
	if err := rules.New().ScoreOptions(in, out); err != nil {
		t.Fatal(err)
	}
	if policytest.CompareOptions(out, 1, 0) >= 0 {
		t.Errorf("a free node ranks behind a victim of priority -50: %+v", out)
	}
}

func randomOptions(r *rand.Rand, n int) *policy.Options {
	in := &policy.Options{Preemptor: &policy.Preemptor{Priority: 90}}
	for i := range n {
		victims := r.IntN(3)
		in.Node = append(in.Node, int32(i))
		in.VictimCount = append(in.VictimCount, int32(victims))
		in.HighestPriority = append(in.HighestPriority, int32(victims*r.IntN(3)))
		in.PrioritySum = append(in.PrioritySum, int64(victims*r.IntN(3)))
		in.FitAfter = append(in.FitAfter, float64(r.IntN(3))/2)
		in.Present = append(in.Present, uint8(r.IntN(8)))
		for k := range in.Components {
			in.Components[k] = append(in.Components[k], float64(r.IntN(5)-2)/2)
		}
	}
	return in
}

func order(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func manyOptions(n int) *policy.Options {
	in := randomOptions(rand.New(rand.NewPCG(13, 14)), n)
	for i := range in.FitAfter {
		in.FitAfter[i] = math.Sqrt(float64(i) / float64(n))
	}
	return in
}

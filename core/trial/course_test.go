package trial

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

// planned returns a trial in which the candidate evicts one victim more per block, in the order
// of its seed.
func planned(blocks int) *model.PolicyTrial {
	t := &model.PolicyTrial{Plan: model.TrialPlan{Block: 60, Seed: 7, Measures: 1}, Start: 1000}
	for i := range blocks {
		b := model.TrialBlock{Start: 1000 + int64(i)*60, Candidate: t.Plan.CandidateDecides(i), Sums: model.PolicySums{Victims: 3}}
		if b.Candidate {
			b.Sums.Victims = 4
		}
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// The last point is the interval on which the verdict is based, and no earlier point depends
// on later blocks.
func TestCourseOf_EndsWithTheSummary(t *testing.T) {
	whole := planned(201)
	c := CourseOf(whole, "victims", 40)
	if len(c.Points) != 40 || len(c.Blocks) != 201 || c.Points[39].Interval != Summarize(whole).Measure("victims").Difference {
		t.Fatalf("%d points, %d blocks, last %+v", len(c.Points), len(c.Blocks), c.Points[len(c.Points)-1])
	}
	for i, p := range c.Points {
		if i > 0 && p.Pairs <= c.Points[i-1].Pairs {
			t.Errorf("point %d is after %d pairs, the one before after %d", i, p.Pairs, c.Points[i-1].Pairs)
		}
		part := *whole
		part.Blocks = whole.Blocks[:2*p.Pairs]
		if got := Summarize(&part).Measure("victims").Difference; got != p.Interval {
			t.Errorf("after %d pairs: %+v, want %+v", p.Pairs, p.Interval, got)
		}
		if end := whole.Blocks[2*p.Pairs-1].Start + 60; p.End != end {
			t.Errorf("point %d ends at %d, want %d", i, p.End, end)
		}
	}
	for i, v := range c.Blocks {
		if want := 3.0; whole.Blocks[i].Candidate != (v == want+1) {
			t.Errorf("block %d has the value %v", i, v)
		}
	}
	if short := CourseOf(planned(7), "victims", 40); len(short.Points) != 3 || len(short.Blocks) != 7 {
		t.Errorf("%d points and %d blocks of 7 blocks", len(short.Points), len(short.Blocks))
	}
	if c := CourseOf(whole, "unknown", 40); c != nil {
		t.Errorf("unknown measure: %+v", c)
	}
}

func TestLeastPairs_IsTheFirstVerdict(t *testing.T) {
	for measures, want := range map[int]int{0: 8, 1: 8, 3: 9, 6: 10} {
		n := LeastPairs(measures)
		if n != want {
			t.Errorf("%d measures: %d pairs, want %d", measures, n, want)
		}
		trial := planned(2 * n)
		trial.Plan.Measures = int32(measures)
		before := planned(2*n - 2)
		before.Plan.Measures = int32(measures)
		if Summarize(before).Measure("victims").Difference.Low > 0 || Summarize(trial).Measure("victims").Difference.Low <= 0 {
			t.Errorf("%d measures: the first verdict is not after %d pairs", measures, n)
		}
	}
}

package trial

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

// LeastPairs returns the number of pairs before which no trial reaches a verdict, if its
// conditions read this number of measures. With fewer pairs, not even differences of equal
// size and sign exclude 0.
func LeastPairs(measures int) int {
	alpha := rate(measures)
	var differences []float64
	for !Excludes(differences, 0, alpha) {
		differences = append(differences, 1)
	}
	return len(differences)
}

// rate returns the error rate of each of the measures.
func rate(measures int) float64 { return ErrorRate / float64(max(1, measures)) }

// A Course is the history of one measure of a trial.
type Course struct {
	Points []Point
	Blocks []float64 // value of each complete block, the oldest first
}

// A Point is the interval of a measure after a number of pairs.
type Point struct {
	Interval
	End int64 // of the last block of the pairs, in Unix nanoseconds
}

// CourseOf returns the history of the measure with the name, or nil if there is none. It
// contains at most the given number of points, evenly distributed, of which the last one
// is that of Summarize. It costs one Estimate for each point.
func CourseOf(t *model.PolicyTrial, name string, points int) *Course {
	for _, m := range measures {
		if m.name == name {
			return m.course(t, points)
		}
	}
	return nil
}

func (m *measure) course(t *model.PolicyTrial, points int) *Course {
	c := &Course{}
	for i := range t.Blocks {
		c.Blocks = append(c.Blocks, m.value(&t.Blocks[i].Sums))
	}
	pairs := len(t.Blocks) / 2
	differences, alpha := m.adjusted(t), rate(int(t.Plan.Measures))
	points = min(points, pairs)
	for i := 1; i <= points; i++ {
		n := int(math.Ceil(float64(i) * float64(pairs) / float64(points)))
		c.Points = append(c.Points, Point{Interval: Estimate(differences[:n], alpha), End: t.Blocks[2*n-1].Start + t.Plan.Block})
	}
	return c
}

// adjusted returns the differences within the complete pairs of a trial, without the part
// that the load explains. An element depends on its pair and on those before it.
func (m *measure) adjusted(t *model.PolicyTrial) []float64 {
	// The control is the load that arrived in a block, which the versions do not affect.
	var differences, controls []float64
	for pair := range len(t.Blocks) / 2 {
		baseline, candidate := pairOf(t, pair)
		differences = append(differences, m.value(candidate)-m.value(baseline))
		controls = append(controls, float64(candidate.Arrived-baseline.Arrived))
	}
	return Adjusted(differences, controls)
}

// pairOf returns the sums of the versions in a pair of blocks.
func pairOf(t *model.PolicyTrial, pair int) (baseline, candidate *model.PolicySums) {
	first, second := &t.Blocks[2*pair], &t.Blocks[2*pair+1]
	if first.Candidate {
		return &second.Sums, &first.Sums
	}
	return &first.Sums, &second.Sums
}

package trial

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

// ErrorRate is the probability, at most, that a trial of two versions with equal effects
// reports a difference in any measure that its conditions read, at any time.
const ErrorRate = 0.05

// A Summary holds the measures of a trial over its complete pairs of blocks.
type Summary struct {
	Pairs    int
	Measures []Measure
}

// A Measure compares the versions of a trial. Baseline and Candidate are means of a block.
type Measure struct {
	Name                string // as in comparisons: victims, wastedWork.cpu
	Baseline, Candidate float64
	Difference          Interval // candidate minus baseline
}

// A measure is a figure of one block.
type measure struct {
	name  string
	value func(*model.PolicySums) float64
}

// measures are named as the metrics of comparisons, and have their units.
var measures = []measure{
	{"victims", func(s *model.PolicySums) float64 { return float64(s.Victims) }},
	{"wastedWork.cpu", func(s *model.PolicySums) float64 { return float64(s.LostCPU) }},
	{"wastedWork.memory", func(s *model.PolicySums) float64 { return float64(s.LostMemory) }},
	{"budgetViolations", func(s *model.PolicySums) float64 { return float64(s.BudgetViolations) }},
	{"queueDelay.mean", func(s *model.PolicySums) float64 { return seconds(s.Waited) / math.Max(1, float64(s.Placed)) }},
	{"placed", func(s *model.PolicySums) float64 { return float64(s.Placed) }},
}

func seconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e9 }

// Names returns the names of all measures, in the order of a Summary.
func Names() []string {
	names := make([]string, len(measures))
	for i, m := range measures {
		names[i] = m.name
	}
	return names
}

// Measure returns the measure with the name, or nil if there is none.
func (s *Summary) Measure(name string) *Measure {
	for i := range s.Measures {
		if s.Measures[i].Name == name {
			return &s.Measures[i]
		}
	}
	return nil
}

// Summarize returns the measures of a trial. Its cost is proportional to the number of
// blocks: some milliseconds for a hundred.
func Summarize(t *model.PolicyTrial) *Summary {
	s := &Summary{Pairs: len(t.Blocks) / 2}
	for _, m := range measures {
		out := Measure{Name: m.name}
		for pair := range s.Pairs {
			baseline, candidate := pairOf(t, pair)
			out.Baseline += m.value(baseline) / float64(s.Pairs)
			out.Candidate += m.value(candidate) / float64(s.Pairs)
		}
		out.Difference = Estimate(m.adjusted(t), rate(int(t.Plan.Measures)))
		s.Measures = append(s.Measures, out)
	}
	return s
}

package condition

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/statistics"
	"github.com/cede-scheduler/cede/core/trial"
)

// The names of the versions in the conditions of a trial.
const (
	Active    = "active" // the version that was active before the trial
	Candidate = "candidate"
)

// Trials evaluates the conditions of trials. The zero value is ready for use.
type Trials struct{}

// Check returns the measures that a condition reads. It returns a *SyntaxError if the
// condition is malformed, and another error if trials do not measure one of its metrics.
func (Trials) Check(text string) ([]string, error) {
	e, err := parse(text, []string{Active, Candidate}, true)
	if err != nil {
		return nil, err
	}
	read, known := e.Metrics(), trial.Names()
	for _, name := range read {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("trials do not measure %s; they measure %s", name, strings.Join(known, ", "))
		}
	}
	if len(read) == 0 {
		return nil, fmt.Errorf("the condition reads no metric")
	}
	return read, nil
}

// Holds evaluates a condition, and returns the values of its operands as the reason. While
// the pairs of blocks are too few for the intervals that it reads, it does not hold.
func (Trials) Holds(text string, s *trial.Summary) (holds bool, reason string, err error) {
	e, err := parse(text, []string{Active, Candidate}, true)
	if err != nil {
		return false, "", err
	}
	holds, operands, err := e.Holds(trialData{s})
	if errors.Is(err, ErrAbsent) {
		return false, "", nil
	}
	return holds, text + ": " + strings.Join(operands, "; "), err
}

// trialData are the measures of a trial. The interval of the candidate is the mean of the
// active version plus the interval of the difference, because only differences within
// pairs have an interval that holds at all times.
type trialData struct{ *trial.Summary }

// Metrics implements Data.
func (trialData) Metrics() []string { return trial.Names() }

// Interval implements Data.
func (d trialData) Interval(metric, policy string) (statistics.Interval, bool) {
	m := d.Measure(metric)
	switch {
	case m == nil || !isFinite(m.Difference):
		return statistics.Interval{}, false
	case policy == Active:
		return statistics.Interval{Median: m.Baseline, Low: m.Baseline, High: m.Baseline}, true
	}
	return statistics.Interval{Median: m.Candidate, Low: m.Baseline + m.Difference.Low, High: m.Baseline + m.Difference.High}, true
}

// Difference implements Data.
func (d trialData) Difference(metric, p, q string) (statistics.Difference, bool) {
	m := d.Measure(metric)
	if m == nil || !isFinite(m.Difference) {
		return statistics.Difference{}, false
	}
	i := statistics.Interval{Median: m.Difference.Mean, Low: m.Difference.Low, High: m.Difference.High}
	switch p {
	case q:
		i = statistics.Interval{}
	case Active:
		i = statistics.Interval{Median: -i.Median, Low: -i.High, High: -i.Low}
	}
	return statistics.Difference{Interval: i, Pairs: m.Difference.Pairs}, true
}

func isFinite(i trial.Interval) bool { return !math.IsInf(i.Low, 0) && !math.IsInf(i.High, 0) }

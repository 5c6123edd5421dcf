package condition

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/trial"
)

func TestTrials_ConditionsReadMeasures(t *testing.T) {
	s := &trial.Summary{Pairs: 20, Measures: []trial.Measure{
		{Name: "victims", Baseline: 10, Candidate: 12, Difference: trial.Interval{Mean: 2, Low: 1, High: 3, Pairs: 20}},
		{Name: "wastedWork.cpu", Baseline: 50, Candidate: 49, Difference: trial.Interval{Mean: -1, Low: -4, High: 2, Pairs: 20}},
		{Name: "placed", Difference: trial.Interval{Low: math.Inf(-1), High: math.Inf(1), Pairs: 20}},
	}}
	for text, want := range map[string]bool{
		"worse(victims, candidate, active)":                                       true,
		"better(victims, active, candidate)":                                      true,
		"better(victims, candidate, active)":                                      false,
		"worse(victims, active, active)":                                          false,
		"worse('wastedWork.cpu', candidate, active)":                              false,
		"high(wastedWork.cpu(candidate)) < 1.05 * wastedWork.cpu(active)":         true,
		"high(wastedWork.cpu(candidate)) < 1.03 * wastedWork.cpu(active)":         false,
		"low(victims(candidate)) == 11 && victims(candidate) == 12":               true,
		"placed(candidate) >= 0":                                                  false, // too few pairs
		"worse(placed, candidate, active) || worse(victims, candidate, active)":   true,
		"!worse('wastedWork.cpu', candidate, active) && placed(candidate) == 0.0": false,
	} {
		if read, err := (Trials{}).Check(text); err != nil || len(read) == 0 {
			t.Errorf("%s: %v, %v", text, read, err)
		}
		got, reason, err := Trials{}.Holds(text, s)
		if err != nil || got != want || got && !strings.HasPrefix(reason, text+": ") {
			t.Errorf("%s: %t, %q, %v", text, got, reason, err)
		}
	}
}

func TestTrials_RejectUnusableConditions(t *testing.T) {
	for text, want := range map[string]string{
		"worse(victims, candidate, other)":  "unknown policy other",
		"worse(goodput, candidate, active)": "trials do not measure goodput; they measure victims",
		"1 < 2":                             "reads no metric",
		"victims(candidate)":                "expected a condition",
		"victims(":                          "column",
	} {
		if _, err := (Trials{}).Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	read, err := Trials{}.Check("worse(victims, candidate, active) || low(placed(candidate)) > victims(active)")
	if err != nil || !slices.Equal(read, []string{"victims", "placed"}) {
		t.Errorf("%v, %v", read, err)
	}
}

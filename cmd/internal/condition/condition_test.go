package condition

import (
	"errors"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// comparison returns five seeds of three policies. The second has fewer victims.
func comparison() *compare.Document {
	var runs []compare.Run
	for seed := uint64(1); seed <= 5; seed++ {
		for _, p := range []struct {
			name    string
			victims int
		}{{"default", 10*int(seed) + 8}, {"nomad", 10 * int(seed)}, {"least-waste", 4}, {"../p?x=1", 4}} {
			goodput := 0.95
			runs = append(runs, compare.Run{Scenario: "contended", Policy: p.name, Seed: seed, Metrics: &metrics.Metrics{
				Victims: p.victims, Goodput: &goodput, QueueDelay: map[string]metrics.Quantiles{"75": {P99: 30}},
				Waste: metrics.Waste{WastedWork: map[string]float64{"cpu": 50_000 + float64(seed%3), "nvidia.com/gpu": 7200}},
			}})
		}
	}
	return compare.New(runs)
}

func TestExpression_Holds(t *testing.T) {
	t.Parallel()
	d := comparison() // victims: default 38, nomad 30
	for text, want := range map[string]bool{
		"victims(nomad) > victims(default)":                                              false,
		"victims(default) > 1.02 * victims(nomad)":                                       true,
		"victims( nomad )==30 && !(victims(default)!=38)":                                true,
		"metric('wastedWork.nvidia.com/gpu', nomad) == 7200":                             true,
		"metric('queueDelay.75.p99', nomad) - metric('queueDelay.75.p99', default) <= 0": true,
		"metric(victims, nomad) == 30":                                                   true,
		"wastedWork.cpu(nomad) > 1e4":                                                    true,
		"worse(victims, default, nomad)":                                                 true,
		"worse(victims, nomad, default)":                                                 false,
		"better(victims, nomad, default)":                                                true,
		"worse(wastedWork.cpu, nomad, default)":                                          false,
		"worse('wastedWork.nvidia.com/gpu', nomad, default)":                             false,
		"low(victims(nomad)) < 30 && high(victims(nomad)) > 30":                          true,
		"low(metric('victims', nomad)) < 30":                                             true,
		"median(victims(nomad)) >= -30 * -1":                                             true,
		"budgetViolations(nomad).orValue(3) > 2":                                         true,
		"(budgetViolations(nomad) * 2).orValue(victims(nomad)) == 30":                    true,
		"victims(nomad).orValue(3) == 30":                                                true,
		"goodput(nomad) > 0.9":                                                           true,
		"victims('nomad') < 1e2 || 1/0 > 2":                                              true,
		"1/0 > 2 || victims('nomad') < 1e2":                                              true,
		"2 + 3 * 4 == 14 && (2 + 3) * 4 == 20 && 10 - 4 - 3 == 3":                        true,
		"!(victims(nomad) > 1) || victims(nomad) == 30":                                  true,
		"victims(least-waste) < victims(default)":                                        true,
		"victims('../p?x=1') == 4 && better(victims, least-waste, default)":              true,
		"(victims(nomad) > 5 ? min(1, 2) : max(3, 4)) == abs(-1)":                        true,
		"7 / 2 == 3.5": true,
	} {
		e, err := Parse(text, d.Policies)
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		for range 2 {
			got, _, err := e.Holds(d)
			if err != nil || got != want {
				t.Errorf("%s is %v (%v), want %v", text, got, err, want)
			}
		}
	}
}

func TestParse_ReportsPositionAndRemedy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "column 1: syntax error",
		"victims(nomad)":                      "column 1: expected a condition, found a number",
		"victims":                             "column 1: expected METRIC(POLICY) or a number, found victims",
		"victms(nomad) > 1":                   "column 1: unknown metric victms\n  victms(nomad) > 1\n  ^\n  did you mean victims?",
		"1 < wastedWrk.cpu(nomad)":            "column 5: unknown metric wastedWrk.cpu\n  1 < wastedWrk.cpu(nomad)\n      ^\n  did you mean wastedWork",
		"victims(nomd) > 1":                   "column 9: unknown policy nomd\n  victims(nomd) > 1\n          ^\n  did you mean nomad?",
		"victims('P') > 1":                    "column 9: unknown policy P",
		"victims(3) > 1":                      "column 9: expected a policy",
		"worse(3, nomad, default)":            "column 7: expected a metric",
		"worse(victms, nomad, default)":       "column 7: unknown metric victms",
		"victims(nomad > 1":                   "syntax error",
		"victims(nomad) > (1 < 2)":            "column 16: > cannot be applied to (double, bool)",
		"1 && victims(nomad) > 2":             "expected type",
		"worse(victims, nomad)":               "worse cannot be applied to (string, string)",
		"low(3) > 1":                          "column 5: expected METRIC(POLICY)",
		"[1] == [1]":                          "column 1: this form of CEL is not available in conditions",
		"size('x') > 1":                       "unknown metric size",
		"1 < wastedWork(nomad)":               "column 5: metric wastedWork has several values\n  1 < wastedWork(nomad)\n      ^\n  write wastedWork.RESOURCE, such as wastedWork.cpu",
		"worse(queueDelay, nomad, default)":   "column 7: metric queueDelay has several values",
		"queueDelay(nomad).orValue(0) > 1":    "write queueDelay.BAND.PART, where PART is mean, p50, p90, p99 or max",
		"victims(nomad, default) > 1":         "column 1: expected victims(POLICY)",
		"goodput(nomad) < 90%":                "write 0.9 in place of 90%",
		"victims(nomad) > 1 and 1 > 2":        "column 20: syntax error: unexpected 'and'\n  victims(nomad) > 1 and 1 > 2\n                     ^\n  write && in place of and",
		"not victims(nomad) > 1":              "write ! in place of not",
		"(budgetViolations(nomad) ?? 3) > 2":  "write x.orValue(y) in place of x ?? y",
		"queueDelay.75.p99(nomad) > 1":        "quote a metric or policy with other characters",
		strings.Repeat("(", 1000) + "1":       "an expression has at most",
		strings.Repeat("1 + ", 600) + "1 > 2": "an expression has at most",
	} {
		_, err := Parse(text, []string{"default", "nomad"})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %s", text, err, want)
		}
	}
}

func TestExpression_FailsIfMetricIsAbsent(t *testing.T) {
	t.Parallel()
	d := comparison()
	for text, want := range map[string]string{
		"budgetViolations(nomad) > 0": "budgetViolations(nomad): metric not present in the runs; set a default, as in budgetViolations(nomad).orValue(0)",
		"wastedWork.disk(nomad) > 0":  "wastedWork.cpu, wastedWork.nvidia.com/gpu",
	} {
		e, err := Parse(text, d.Policies)
		if err != nil {
			t.Fatal(err)
		}
		_, seen, err := e.Holds(d)
		if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), want) || len(seen) != 1 {
			t.Errorf("%s: %v, seen %v", text, err, seen)
		}
	}
	for _, text := range []string{"1 / (victims(nomad) - 30) > 0", "(1 / (victims(nomad) - 30)).orValue(1) > 0"} {
		e, err := Parse(text, d.Policies)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Holds(d); err == nil || !strings.Contains(err.Error(), ": division by zero") || !strings.Contains(err.Error(), "column ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestExpression_ReturnsOperands(t *testing.T) {
	t.Parallel()
	d := comparison()
	e, err := Parse("victims(nomad) < victims(default) && worse(victims, default, nomad)", d.Policies)
	if err != nil {
		t.Fatal(err)
	}
	_, seen, _ := e.Holds(d)
	want := "victims(nomad) = 30|victims(default) = 38|victims: default minus nomad = +8"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"victims(nomad) > 1.02 * victims(default)", "worse(victims, nomad, default) || !(1 < 2)", "low(victims('nomad')).orValue(0.5) >= -1e-3",
		"((", "a b(c", "'", "..(", "é(", "1..2", "victims(", "low(low(victims(nomad)))", "{'a': 1}", "a.b.c-d(e)", "x.map(y, y)",
	} {
		f.Add(seed)
	}
	d := comparison()
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text, d.Policies)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Problem.Offset < 0 || syntax.Problem.Offset > len([]rune(text)) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, _, err := e.Holds(d); err != nil && err.Error() == "" {
			t.Fatal("empty error message")
		}
	})
}

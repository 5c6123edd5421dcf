package compare

import (
	"errors"
	"strings"
	"testing"
)

func TestExpression_Holds(t *testing.T) {
	t.Parallel()
	d := comparison() // victims: default 38, nomad 30
	for text, want := range map[string]bool{
		"victims(nomad) > victims(default)":                          false,
		"victims(default) > 1.02 * victims(nomad)":                   true,
		"victims( nomad )=30 && !(victims(default)!=38)":             true,
		"wastedWork.nvidia.com/gpu(nomad) == 7200":                   true,
		"queueDelay.75.p99(nomad) - queueDelay.75.p99(default) <= 0": true,
		"worse(victims, default, nomad)":                             true,
		"worse(victims, nomad, default)":                             false,
		"better(victims, nomad, default)":                            true,
		"worse(wastedWork.cpu, nomad, default)":                      false,
		"low(victims(nomad)) < 30 and high(victims(nomad)) > 30":     true,
		"median(victims(nomad)) >= -30 * -1":                         true,
		"(budgetViolations(nomad) ?? 3) > 2":                         true,
		"goodput(nomad) > 90%":                                       true,
		"victims('nomad') < 1e2 or 1/0 > 2":                          true,
		"2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 10 - 4 - 3 == 3":  true,
		"not victims(nomad) > 1 or victims(nomad) == 30":             true,
	} {
		e, err := ParseExpression(text, d.Policies)
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		got, _, err := e.Holds(d)
		if err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
}

func TestExpression_ReportsPositionOfSyntaxErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "column 1: expected METRIC(POLICY) or a number, found the end",
		"victims(nomad)":                    "column 1: expected a condition, found a number",
		"victms(nomad) > 1":                 "did you mean victims?",
		"victims(nomd) > 1":                 "did you mean nomad?",
		"victims(nomad > 1":                 "column 9: unknown policy nomad > 1",
		"victims(nomad) > (1 < 2)":          "column 18: expected a number, found a condition",
		"1 and victims(nomad) > 2":          "column 1: expected a condition, found a number",
		"1 < 2 < 3":                         "column 7: expected an operator or the end, found <",
		"victims(nomad) > 1.2.3":            "column 18: invalid number 1.2.3",
		"victims(nomad) $ 1":                "column 16: unexpected character '$'",
		"victims('nomad) > 1":               "column 9: unterminated quote",
		"worse(victims, nomad)":             "column 21: expected ,, found )",
		strings.Repeat("(", 1000) + "1":     "nested too deeply",
		"worse(victims, nomad, default) +1": "expected a number, found a condition",
	} {
		_, err := ParseExpression(text, []string{"default", "nomad"})
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
		"budgetViolations(nomad) > 0": "??",
		"wastedWork(nomad) > 0":       "wastedWork.cpu, wastedWork.nvidia.com/gpu",
	} {
		e, err := ParseExpression(text, d.Policies)
		if err != nil {
			t.Fatal(err)
		}
		_, seen, err := e.Holds(d)
		if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), want) || len(seen) != 1 {
			t.Errorf("%s: %v, seen %v", text, err, seen)
		}
	}
	e, _ := ParseExpression("1 / (victims(nomad) - 30) > 0", d.Policies)
	if _, _, err := e.Holds(d); err == nil || !strings.Contains(err.Error(), "column 3: division by zero") {
		t.Error(err)
	}
}

func TestExpression_ReturnsOperands(t *testing.T) {
	t.Parallel()
	d := comparison()
	e, err := ParseExpression("victims(nomad) < victims(default) and worse(victims, default, nomad)", d.Policies)
	if err != nil {
		t.Fatal(err)
	}
	_, seen, _ := e.Holds(d)
	want := "victims(nomad) = 30|victims(default) = 38|victims: default minus nomad = +8"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"victims(nomad) > 1.02 * victims(default)", "worse(victims, nomad, default) or not (1 < 2)", "low(victims('nomad')) ?? 5% >= -1e-3", "((", "a b(c", "'", "..(", "é(", "1..2", "victims(",
	} {
		f.Add(seed)
	}
	d := comparison()
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpression(text, d.Policies)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Column < 1 || syntax.Column > len([]rune(text))+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, _, err := e.Holds(d); err != nil && err.Error() == "" {
			t.Fatal("empty error message")
		}
	})
}

package rules_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/rules/rulestest"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The interpreter has the value that cel-go has, wherever both have one. Rules have fewer:
// times are limited to 64 bits, and resources that the cluster lacks are 0.
func TestInterpreter_AgreesWithCEL(t *testing.T) {
	env, err := cel.NewEnv(rules.Declarations(schema.Eligible)...)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	g := rulestest.Generator{Rand: r, Scope: schema.Eligible, Standard: true}
	both, none, fewer := 0, 0, 0
	for range soak.Count(800, 100_000) {
		text := g.Expression(schema.Bool, 4)
		source, err := rules.ParseInline("tested", "eligible: "+text)
		if err != nil {
			t.Fatal(err)
		}
		source.Limits.FuelPerRow = policy.MaxLimits.FuelPerRow
		program, err := rules.Check(source)
		if isRefused(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		p, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		q := hosttest.RandomCase(r)
		if q.Candidates.Rows.Len() == 0 {
			continue
		}
		e := rulestest.Candidate(q.Candidates, optionOf(q, 0), 0)
		ours, ok := e.Eval(program.Eligible)
		theirs, _, err := p.Eval(withAllResources(e.Activation()))
		switch {
		case err == nil && ok:
			if both++; theirs.Value() != (ours.N != 0) {
				t.Fatalf("%s: cel-go has %v, the interpreter %v", text, theirs.Value(), ours.N != 0)
			}
		case err != nil && !ok:
			none++
		case err == nil:
			fewer++
		default:
			t.Fatalf("%s: cel-go has no value (%v), the interpreter %v", text, err, ours.N != 0)
		}
	}
	t.Logf("%d values, %d without a value, %d with one in cel-go alone", both, none, fewer)
	if both < fewer || none == 0 {
		t.Error("too few comparisons")
	}
}

// withAllResources adds the keys of the generator to the maps in which an absent key is 0.
func withAllResources(values map[string]any) map[string]any {
	for _, m := range schema.Maps {
		of := values[m.Name].(map[string]any)
		for _, key := range []string{"cpu", "memory", "disk", "tier", "cost", "absent"} {
			if _, ok := of[key]; !ok && !m.Optional {
				of[key] = 0.0
			}
		}
	}
	return values
}

// optionOf returns the option of a row.
func optionOf(q hosttest.Case, row int32) int {
	for i := range q.Candidates.Len() {
		if row < q.Candidates.FirstRow[i+1] {
			return i
		}
	}
	panic("no such row")
}

// Arithmetic on whole numbers has the results of cel-go at its limits.
func TestInterpreter_LimitsAreThoseOfCEL(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("preemptor.ports", cel.IntType), cel.Variable("now", cel.TimestampType))
	if err != nil {
		t.Fatal(err)
	}
	numbers := []string{"0", "1", "-1", "2", "-2", "3037000500", "-3037000500", "9223372036854775807", "-9223372036854775807", "(-9223372036854775807 - 1)"}
	for _, x := range numbers {
		for _, y := range numbers {
			for _, op := range []string{"+", "-", "*", "/", "%"} {
				checkLimit(t, env, x+" "+op+" ("+y+" + preemptor.ports)")
			}
		}
	}
	for _, x := range []string{"9223372036854774784.0", "9223372036854775807.0", "-9223372036854775808.0", "1e300", "0.0 / 0.0", "-1.0 / 0.0", "-1.9", "1.9"} {
		checkLimit(t, env, "int("+x+" * double(1 + preemptor.ports))")
	}
}

func checkLimit(t *testing.T, env *cel.Env, text string) {
	t.Helper()
	source, err := rules.ParseInline("tested", "order: "+text)
	if err != nil {
		t.Fatal(err)
	}
	program, err := rules.Check(source)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	p, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := p.Eval(map[string]any{"preemptor.ports": 0, "now": time.Unix(0, 0)})
	ours, ok := (&rulestest.Env{}).Eval(program.Order[0])
	if ok != (err == nil) || ok && theirs.Value() != ours.N {
		t.Errorf("%s: cel-go has %v, %v; the interpreter %v, %v", text, theirs, err, ours.N, ok)
	}
}

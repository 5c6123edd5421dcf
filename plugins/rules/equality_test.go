package rules_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/rulestest"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// examples use every kind of expression.
var examples = []string{
	"eligible: preemptor.priority - victim.priority >= 10 && victim.age > duration('10m'); order: [victim.priority, victim.lostWork * victim.share]; option: [option.highestPriority, option.lostWork]",
	"order: victim.priority",
	"order: [-victim.age, victim.priority, victim.share]",
	"order: [victim.use['cpu'] / cluster.capacity['cpu'], victim.namespaceShare]",
	"eligible: victim.labels['tier'] != 'gold' || preemptor.priority >= 90",
	"eligible: has(victim.labels.tier) && victim.namespace in ['a', 'b'] && victim.budgetSlack > 0",
	"eligible: victim.mustLeave || victim.evictions < victim.evictionLimit || victim.evictionLimit == 0; order: [has(victim.annotations.cost) ? victim.annotations.cost : 1.0]",
	"option: [option.victims > 2, option.rank * -1.0, option.age, node.name.startsWith('n')]",
	"eligible: victim.age - preemptor.waiting * 2 >= duration('1h') || victim.lostWork <= duration('3s'); delta: 7",
	"order: [option.need['memory'] - option.freed['memory'], node.free['cpu'], victim.job == 'job-1', victim.start]",
	"order: [victim.priority, victim.relocation, victim.displacedPriority, victim.displacedLostWork]; option: [option.stranded, option.displacing, option.displacedPriority + 1, option.displacedLostWork / duration('1h')]",
	"option: [option.expectedLostWork, option.cascadeDepth - 1, option.expectedDelay / duration('1m')]",
	"order: exp(-double(victim.priority)) + pow(victim.share, 0.5) * log(2.0 + victim.share)",
}

// TestModule_AnswersAsInterpreter compares modules of examples and of random expressions
// with the interpreter, to the bit.
func TestModule_AnswersAsInterpreter(t *testing.T) {
	host := newHost(t)
	for i, text := range examples {
		t.Run(fmt.Sprintf("example %d", i), func(t *testing.T) {
			if !compare(t, host, text, soak.Count(100, 10_000)) {
				t.Error("the rules are refused")
			}
		})
	}
	t.Run("random", func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for range soak.Count(120, 5000) {
			compare(t, host, randomRules(r), soak.Count(8, 40))
		}
	})
}

func newHost(t *testing.T) *wasm.Host {
	t.Helper()
	host, err := wasm.NewHost(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return host
}

// randomRules returns rules of random expressions.
func randomRules(r *rand.Rand) string {
	generator := func(s schema.Scope) *rulestest.Generator { return &rulestest.Generator{Rand: r, Scope: s} }
	kinds := []schema.Type{schema.Int, schema.Double, schema.Duration, schema.Timestamp, schema.Bool}
	list := func(s schema.Scope) string {
		var all []string
		for range 1 + r.IntN(3) {
			all = append(all, generator(s).Expression(kinds[r.IntN(len(kinds))], 3))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return "eligible: " + generator(schema.Eligible).Expression(schema.Bool, 4) + "\norder: " + list(schema.Order) + "\noption: " + list(schema.Option)
}

// isRefused reports whether an error is about valid rules: they may run out of fuel, or never
// have a value.
func isRefused(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "ticks of fuel") || strings.Contains(err.Error(), "never has a value"))
}

// checked checks rules with the most fuel that a policy can have. The program is nil if they
// are refused.
func checked(t *testing.T, text string) (*rules.Source, *ir.Program) {
	t.Helper()
	source, err := rules.ParseInline("tested", text)
	if err != nil {
		t.Fatal(err)
	}
	source.Limits.FuelPerRow = policy.MaxLimits.FuelPerRow
	program, err := rules.Check(source)
	if err != nil && !isRefused(err) {
		t.Fatalf("%s\n%v", text, err)
	}
	return source, program
}

// compare compares the module of rules with the interpreter, and reports false if the rules
// are refused.
func compare(t *testing.T, host *wasm.Host, text string, cases int) bool {
	t.Helper()
	source, program := checked(t, text)
	if program == nil {
		return false
	}
	in := start(t, host, source)
	reference := &rulestest.Policy{Program: program}
	if diff := cmp.Diff(reference.Info(), in.Info()); diff != "" {
		t.Fatal(diff)
	}
	r := rand.New(rand.NewPCG(1, 42))
	for i := range cases {
		q := hosttest.RandomCase(r)
		disturb(r, q)
		want, got := interpreted(reference, q), hosttest.CallHooks(t, in, q).Answers
		if diff := cmp.Diff(want, got, hosttest.SameBits); diff != "" {
			t.Fatalf("case %d of\n%s\ninterpreter (-) and module (+) differ:\n%s", i, text, diff)
		}
	}
	return true
}

// Texts and labels beyond their limits have the values that the interpreter defines, and
// texts at the ends of words are found.
func TestModule_LimitsTexts(t *testing.T) {
	host := newHost(t)
	labels := map[string]string{"long": strings.Repeat("x", schema.MaxText+1), "full": strings.Repeat("x", schema.MaxText), "app.kubernetes.io/name": "web", "app.kubernetes.io/names": ""}
	for i := range schema.MaxLabels {
		labels[fmt.Sprintf("%c%03d", 'a'+i%26, i)] = strings.Repeat("y", i%40)
	}
	c := &policytest.Case{Preemptor: sdk.Preemptor{Namespace: "ns", Job: strings.Repeat("p", 300) + "-end", Labels: labels, Priority: 9}}
	o := policytest.Option{Name: strings.Repeat("node", 100)}
	for n := range 40 {
		o.Rows = append(o.Rows, policytest.Row{Name: "r", Namespace: strings.Repeat("n", n), Job: strings.Repeat("ab", n/2) + "nightly", Group: "g" + strings.Repeat("0", 10*n), Labels: maps.Clone(labels)})
		delete(labels, fmt.Sprintf("%c%03d", 'a'+n%26, n))
	}
	c.Options = []policytest.Option{o}
	q := hosttest.Case{Candidates: c.Candidates(), Options: c.OptionsOf([][]int{{0}})}
	for _, condition := range []string{
		"victim.labels.long == ''", "has(victim.labels.long)", "has(victim.labels.full)", "victim.labels['app.kubernetes.io/name'] == 'web'",
		"'app.kubernetes.io/names' in victim.labels", "'app.kubernetes.io/nam' in victim.labels", "has(victim.labels.z510)", "has(victim.labels.z025)", "has(preemptor.labels.a000)",
		"preemptor.job.endsWith('-end')", "preemptor.job.startsWith('p')", "preemptor.job == victim.job", "victim.group.startsWith('g')", "victim.group.endsWith('0000000')",
		"victim.job.contains('nightly')", "victim.job.contains('bnightly')", "victim.job.contains('babnightly')", "victim.job.contains('y')", "victim.job.contains('')",
		"victim.job.contains('nightlyx')", "victim.job.endsWith('abnightly')", "victim.job.startsWith('abababab')", "victim.job.startsWith('ababababab')",
		"victim.namespace == 'nnnnnnn'", "victim.namespace == 'nnnnnnnn'", "victim.namespace in ['nnnnnnnnn', 'nnnnnnnnnnnnnnnn', 'nnnnnnnnnnnnnnnnn']",
		"victim.namespace.contains(preemptor.namespace)", "'nnnnnnnnnnnnnnnnnnnnnn'.contains(victim.namespace)", "victim.job.contains(victim.namespace)",
	} {
		program, in := startUnlimited(t, host, "eligible: "+condition+"\norder: "+condition)
		want, got := interpreted(&rulestest.Policy{Program: program}, q), hosttest.CallHooks(t, in, q).Answers
		if diff := cmp.Diff(want, got, hosttest.SameBits); diff != "" {
			t.Errorf("%s: interpreter (-) and module (+) differ:\n%s", condition, diff)
		}
	}
}

// disturb replaces some values by extreme ones.
func disturb(r *rand.Rand, q hosttest.Case) {
	whole := []int64{0, math.MinInt64, math.MaxInt64, -1}
	doubles := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat64}
	rows := &q.Candidates.Rows
	for range r.IntN(3) {
		if n := rows.Len(); n > 0 {
			rows.Start[r.IntN(n)] = whole[r.IntN(len(whole))]
			rows.LostWork[r.IntN(n)] = whole[r.IntN(len(whole))]
			rows.Use[r.IntN(len(rows.Use))][r.IntN(n)] = doubles[r.IntN(len(doubles))]
		}
		if n := q.Options.Len(); n > 0 {
			q.Options.LostWork[r.IntN(n)] = whole[r.IntN(len(whole))]
			q.Options.FitAfter[r.IntN(n)] = doubles[r.IntN(len(doubles))]
		}
	}
}

// start returns an instance of the module of rules.
func start(t testing.TB, host *wasm.Host, source *rules.Source) policy.Instance {
	t.Helper()
	return startWith(t, host, source, policy.DefaultLimits)
}

func startWith(t testing.TB, host *wasm.Host, source *rules.Source, limits policy.Limits) policy.Instance {
	t.Helper()
	code, err := rules.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	again, err := rules.Compile(source)
	if err != nil || !slices.Equal(code, again) {
		t.Fatalf("the same rules compiled to other bytes: %v", err)
	}
	m, err := host.Load(t.Context(), code, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	in, err := m.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// interpreted returns the answers of the interpreter.
func interpreted(p *rulestest.Policy, q hosttest.Case) (a hosttest.Answers) {
	var recheck sdk.Recheck
	n := q.Candidates.Rows.Len()
	if p.Program.Eligible != nil {
		a.Gap = make([]int32, n)
		_ = p.PriorityDelta(q.Candidates, a.Gap, &recheck)
		a.Recheck[0] = recheck.Time()
	}
	if len(p.Program.Order) > 0 {
		out := sdk.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
		_ = p.ScoreVictims(q.Candidates, &out)
		a.Victims = hosttest.Scores{Tiers: [4][]int64{out.Tier}, Score: out.Score}
	}
	if len(p.Program.Option) > 0 {
		out := policytest.NewScores(q.Options.Len())
		_ = p.ScoreOptions(q.Options, out)
		a.Options = hosttest.Scores{Tiers: out.Tiers, Score: out.Score}
	}
	return a
}

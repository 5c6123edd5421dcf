package rules_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/link"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// longText is the text that takes most to search and to compare.
var longText = strings.Repeat("a", schema.MaxText)

// hostileCase returns options with rows each. Texts are as long, and labels are as many as
// rules read. The keys of labels begin alike.
func hostileCase(options, rows int) hosttest.Case {
	labels := map[string]string{"long": longText, "needle": longText[:127] + "b", "one": "a", "none": "", "tier": "gold"}
	for i := range schema.MaxLabels - len(labels) {
		labels[fmt.Sprintf("%s%04d", longText[:60], i)] = longText
	}
	c := &policytest.Case{Now: 1_700_000_000_000_000_000}
	amounts := func(x float64) (list []float64) {
		for range 16 {
			list = append(list, x)
		}
		return list
	}
	for d := range 16 {
		c.Dims = append(c.Dims, fmt.Sprintf("dim-%02d", d))
	}
	c.Totals = amounts(1e6)
	c.Preemptor = sdk.Preemptor{
		Namespace: longText, Job: longText, Group: longText[:7], JobType: "service", Priority: 90, Delta: 10, Waiting: 5e12,
		Ask: amounts(3), Labels: labels, Annotations: map[string]float64{"cost": 1.5},
	}
	for i := range 16 {
		c.Budgets = append(c.Budgets, policytest.Budget{Name: fmt.Sprint("budget", i), Slack: int32(40 - i)})
	}
	var victims [][]int
	for i := range options {
		o := policytest.Option{Name: longText, Node: int32(i), Free: amounts(0), FitBefore: 0.3, FitAfter: 0.7, Components: [3]float64{-0.1, 0.2, 0.3}, Present: 7}
		for range rows {
			row := policytest.Row{
				Priority: 20, Use: amounts(77), Evictions: 2, EvictionLimit: 1, Age: math.MaxInt32 * 1000, LostWork: 1e12,
				Namespace: longText, Job: longText, Group: longText, Labels: labels, Annotations: map[string]float64{"cost": 0.1},
				Relocation: policytest.Relocation{Where: sdk.RelocationEvicts, Priority: 3, LostWork: 1e9},
			}
			for k := range c.Budgets {
				row.Budgets = append(row.Budgets, c.Budgets[k].Name)
			}
			o.Rows = append(o.Rows, row)
		}
		c.Options = append(c.Options, o)
		victims = append(victims, []int{0})
	}
	return hosttest.Case{Candidates: c.Candidates(), Options: c.OptionsOf(victims)}
}

// hostileCases returns cases with some rows and twice as many: of one option, and of one row
// for each option.
var hostileCases = sync.OnceValue(func() [4]hosttest.Case {
	return [4]hosttest.Case{hostileCase(1, perCase), hostileCase(1, 2*perCase), hostileCase(perCase, 1), hostileCase(2*perCase, 1)}
})

const perCase = 128

// perElement returns the ticks that a hook takes for each element more of the second case.
func perElement(t *testing.T, in policy.Instance, hook int, few, many hosttest.Case) float64 {
	t.Helper()
	a, b := hosttest.CallHooks(t, in, few), hosttest.CallHooks(t, in, many)
	if b.Err != [5]string{} {
		t.Fatal(b.Err)
	}
	return (float64(b.Fuel[hook]) - float64(a.Fuel[hook])) / perCase
}

// Each operation takes the fuel that is counted for it at most, and not much less with the
// values for which it takes most.
func TestFuel_BoundsEveryOperation(t *testing.T) {
	host := newHost(t)
	a := func(n int) string { return "'" + strings.Repeat("a", n) + "'" }
	key := strings.Repeat("a", 60)
	for _, tt := range []struct {
		text   string
		factor float64 // by which the bound may exceed what is measured
	}{
		{"eligible: victim.priority > 1", 1},
		{"order: victim.priority", 1},
		{"order: victim.share", 1.3},
		{"order: victim.namespaceShare", 1.6},
		{"order: victim.budgetSlack", 1.3},
		{"order: pow(victim.share, 1.7)", 1.2},
		{"order: pow(victim.use['dim-01'], -3.0)", 1.2},
		{"order: exp(victim.share)", 1.4},
		{"order: exp(-705.3 - victim.share)", 1.3},
		{"order: log(victim.share)", 1.2},
		{"order: log(victim.share * 1e-310)", 1.2},
		{"order: victim.job == 'x'", 1.1},
		{"eligible: victim.namespace == preemptor.namespace", 1.4},
		{"eligible: victim.job != victim.group", 1.1},
		{"eligible: victim.job.startsWith(" + a(7) + ")", 1.1},
		{"eligible: victim.job.startsWith(" + a(20) + ")", 1.1},
		{"eligible: victim.job.endsWith(" + a(255) + ")", 1.2},
		{"eligible: victim.job.contains('aaaaaaab')", 1.2},
		{"eligible: victim.job.contains('" + strings.Repeat("a", 100) + "b')", 1.5},
		{"eligible: victim.labels.long.contains('b')", 1.3},
		{"eligible: victim.labels.long.contains(preemptor.labels.needle)", 1.5},
		{"eligible: " + a(500) + ".contains('" + strings.Repeat("a", 240) + "b')", 1.5},
		{"eligible: victim.job.contains('')", 12},
		{"eligible: has(victim.labels.tier)", 1.8},
		{"eligible: has(victim.labels.aaaaaaab)", 1.3},
		{"eligible: 'zzz' in victim.labels", 1.8},
		{"eligible: has(preemptor.labels.tier)", 1.8},
		{"eligible: '" + key + "0077' in victim.labels", 1.4},
		{"eligible: '" + key + "0510b' in victim.labels", 1.4},
		{"eligible: victim.namespace in ['a', 'b', 'c', 'd', 'e', 'f']", 2.3},
		{"eligible: victim.namespace in [" + a(256) + ", '" + strings.Repeat("a", 255) + "b']", 1.4},
		{"eligible: victim.labels.one in ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q']", 1.8},
		{"eligible: victim.labels.none in ['', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '']", 2},
		{"eligible: victim.labels.tier in ['gole', 'golf', 'gols', 'golt', 'goln', 'golm', 'golk', 'gola', 'golb', 'golc']", 1.5},
		{"eligible: false" + strings.Repeat(" || preemptor.group == (victim.mustLeave ? 'aaaaaaaa' : 'aaaaaab')", 30), 1.5},
		{"eligible: false" + strings.Repeat(" || preemptor.group.startsWith(victim.mustLeave ? 'aaaaaaaa' : 'aaaaaab')", 30), 1.5},
		{"eligible: victim.priority in [1, 2, 3, 4]", 1},
		{"order: victim.priority / 7", 1},
		{"order: victim.priority % 3", 1},
		{"order: abs(-victim.priority)", 1},
		{"order: int(victim.share * 1e9)", 1.3},
		{"order: victim.lostWork * victim.share", 1.3},
		{"order: victim.lostWork * victim.priority", 1.4},
		{"order: victim.age / victim.lostWork", 1},
		{"order: victim.age.getHours()", 1},
		{"order: sqrt(victim.share)", 1.3},
		{"order: floor(victim.share)", 1.3},
		{"order: min(victim.share, 3.0)", 1.3},
		{"order: victim.mustLeave ? 1.0 : pow(victim.share, 2.5)", 1.2},
		{"order: [victim.priority, victim.start, victim.evictions]", 2.4},
		{"order: [victim.priority, 9007199254741093 - victim.priority]", 2.4},
		{"order: [1, 2, 3, 4, 5, 6, 7, victim.priority]", 2.9},
		{"order: node.free['dim-07']", 1},
		{"order: [option.need['dim-03'] - option.freed['dim-03'], victim.use['none']]", 1},
		{"eligible: victim.age > duration('9000h') || now < victim.start", 1.4},
		{"eligible: victim.age * 2 == duration('90h')", 1.4},
		{"option: option.rank", 2},
		{"option: [option.highestPriority, option.victims, option.lostWork, option.age]", 1.5},
		{"option: node.name.contains('aab')", 1.3},
	} {
		t.Run(fmt.Sprintf("%.60s", tt.text), func(t *testing.T) {
			program, in := startUnlimited(t, host, tt.text)
			bound, err := link.FuelOf(program)
			if err != nil {
				t.Fatal(err)
			}
			cases := hostileCases()
			for k, hook := range []int{0, 1, 3} {
				measured, counted := perElement(t, in, hook, cases[2], cases[3]), bound[k].Row+bound[k].Option
				if measured > float64(counted) {
					t.Errorf("hook %d takes %.1f ticks for an option with one row, more than the %d that are counted", hook, measured, counted)
				}
				if hook != 3 {
					measured, counted = perElement(t, in, hook, cases[0], cases[1]), bound[k].Row
				}
				switch {
				case measured > float64(counted):
					t.Errorf("hook %d takes %.1f ticks for a row, more than the %d that are counted", hook, measured, counted)
				case measured > 0 && float64(counted) > 250+measured*tt.factor:
					t.Errorf("%d ticks are counted for hook %d, which takes %.1f", counted, hook, measured)
				}
			}
		})
	}
}

// startUnlimited returns checked rules and an instance with the highest limits.
func startUnlimited(t *testing.T, host *wasm.Host, text string) (*ir.Program, policy.Instance) {
	t.Helper()
	source, err := rules.ParseInline("tested", text)
	if err != nil {
		t.Fatal(err)
	}
	source.Limits = policy.Limits{FuelPerRow: policy.MaxLimits.FuelPerRow}
	program, err := rules.Check(source)
	if err != nil {
		t.Fatal(err)
	}
	return program, startWith(t, host, source, policy.MaxLimits)
}

// powers is an expression with n powers.
func powers(n int) string {
	return "victim.share" + strings.Repeat(" + pow(victim.share, 1.5)", n)
}

func TestCheck_RejectsRulesThatMayRunOutOfFuel(t *testing.T) {
	eight := func(entry string) string { return "order:" + strings.Repeat("\n  - "+entry, 8) }
	for _, tt := range []struct{ name, limits, rules, want string }{
		{"one expression", "", "eligible: " + powers(50) + " > 1.0", "policy.yaml:3:13: eligible: up to 25865 ticks of fuel for each candidate; a call has 20000 for each\n"},
		{"the remedy", "", "eligible: " + powers(50) + " > 1.0", "^\n  shorten the rules, or set limits: {fuelPerRow: 26000} in the manifest"},
		{"the remedy helps", "limits: {fuelPerRow: 26000}", "eligible: " + powers(50) + " > 1.0", ""},
		{"one remedy for two hooks", "", "eligible: " + powers(50) + " > 1.0\n  order: " + powers(55), "set limits: {fuelPerRow: 29000} in the manifest\npolicy.yaml:4:10: order: up to 28"},
		{"one remedy helps two hooks", "limits: {fuelPerRow: 29000}", "eligible: " + powers(50) + " > 1.0\n  order: " + powers(55), ""},
		{"eight entries", "", eight(powers(40)), "policy.yaml:4:5: order[0]: all entries take up to 168159 ticks of fuel for each candidate, this one 20301; a call has 20000 for each\n"},
		{"eight entries with fuel", "limits: {fuelPerRow: 170000}", eight(powers(40)), ""},
		{"the entry that takes most", "", "order: [1, 2, '" + powers(50) + "', victim.share]", "policy.yaml:3:18: order[2]: all entries take up to "},
		{"more than any policy has", "limits: {fuelPerRow: 1000000}", eight(balanced(98)), "a call has 238037 for each\n"},
		{"no remedy but to shorten", "", eight(balanced(98)), "shorten the rules: no policy has more than 238037 ticks for each candidate"},
		{"less fuel than usual", "limits: {fuelPerRow: 200}", "order: pow(victim.share, 1.5)", "a call has 200 for each"},
		{"options have their own", "limits: {fuelPerRow: 400}", "option: 'option.victims > 1 ? pow(option.fitAfter, 1.5) : 0.0'", "option: up to 702 ticks of fuel for each option; a call has 400 for each\n"},
		{"too little time", "limits: {fuelPerRow: 170000, time: 100ms}", eight(powers(40)), "policy.yaml:4:5: order[0]: a call with 8192 candidates may take 344ms; limits.time is 100ms\n"},
		{"the remedy for too little time", "limits: {fuelPerRow: 170000, time: 100ms}", eight(powers(40)), "shorten the rules, or set limits.time to at least 344ms"},
		{"enough time", "limits: {fuelPerRow: 170000, time: 344ms}", eight(powers(40)), ""},
		{"too little for a call", "limits: {fuel: 1000}", "order: victim.priority", "policy.yaml:3:10: order: a call has 1000 ticks of fuel besides those for each candidate; rules need 10000000\n"},
		{"too many keys", "", "order:\n  - " + keys(0, 40) + "\n  - " + keys(40, 80), "too many keys in brackets or texts: 80 and "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source, err := rules.ParseManifest("policy.yaml", "p", []byte(tt.limits+"\nrules:\n  "+tt.rules+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = rules.Check(source)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%.2000v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// Rules near their limit of fuel answer about the most candidates, given time on a busy machine. If
// they exceed their time, the error names the policy, the limit and the remedy.
func TestCall_OfRulesNearTheirLimitEndsAtTheTimeLimit(t *testing.T) {
	source, err := rules.ParseManifest("policy.yaml", "heavy", []byte("limits: {fuelPerRow: 238000}\nrules:\n  order:"+strings.Repeat("\n  - "+balanced(90), 4)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := rules.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	c := &policytest.Case{Dims: []string{"cpu"}, Totals: []float64{1e6}, Preemptor: sdk.Preemptor{Priority: 90, Delta: 10, Ask: []float64{4e5}}, Options: []policytest.Option{{Free: []float64{0}}}}
	for i := range rules.MaxCandidates {
		c.Options[0].Rows = append(c.Options[0].Rows, policytest.Row{Priority: 20, Use: []float64{float64(i % 97)}})
	}
	in := c.Candidates()
	for _, limit := range []time.Duration{time.Minute, time.Millisecond} {
		module, err := newHost(t).Load(t.Context(), code, policy.Limits{FuelPerRow: 238_000, Time: limit})
		if err != nil {
			t.Fatal(err)
		}
		v, err := policy.NewVersion(policy.Source{Name: "heavy", Module: module})
		if err != nil {
			t.Fatal(err)
		}
		instance, err := v.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		out := sdk.VictimScores{Tier: make([]int64, in.Rows.Len()), Score: make([]float64, in.Rows.Len())}
		err = v.RecordCall("ScoreVictims", instance.ScoreVictims(in, &out))
		v.Release(instance)
		if limit == time.Minute {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		fault, ok := errors.AsType[*policy.Error](err)
		if !ok || fault.Fault != policy.FaultTimeout || fault.Policy != "heavy" {
			t.Fatalf("%v", err)
		}
		for _, want := range []string{"heavy", "took longer than 1ms"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in %v", want, err)
			}
		}
		if !strings.Contains(fault.Hint, "raise the time of a call in the policy's limits") {
			t.Errorf("hint %q", fault.Hint)
		}
	}
}

// Rules without a valid entry have no fuel to check.
func TestParseManifest_ReportsOtherProblemsWithLittleFuel(t *testing.T) {
	_, err := rules.ParseManifest("policy.yaml", "p", []byte("limits: {fuel: 1}\nrules: {delta: -1}\n"))
	if err == nil || !strings.Contains(err.Error(), "invalid value") {
		t.Error(err)
	}
}

// The remedy for rules of the command line is a manifest.
func TestCheck_NamesTheManifestThatInlineRulesNeed(t *testing.T) {
	err := problems("rules: order: " + powers(50))
	if want := "line 1, column 8: order: up to 25857 ticks of fuel for each candidate"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if want := "or write them to a policy.yaml with limits: {fuelPerRow: 26000}"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// balanced is a sum of n powers that is not nested as deep as they are many.
func balanced(n int) string {
	if n == 1 {
		return "pow(victim.share, 1.5)"
	}
	return "(" + balanced(n/2) + "+" + balanced(n-n/2) + ")"
}

// keys is a sum of amounts with different keys.
func keys(from, to int) string {
	text := "0.0"
	for i := from; i < to; i++ {
		text += fmt.Sprintf(" + victim.use['key-%d']", i)
	}
	return text
}

// A call of rules that were checked takes no more fuel than is counted, whatever is in its
// frame: the longest texts, the most labels, and extreme numbers.
func TestFuel_BoundsRandomRules(t *testing.T) {
	host := newHost(t)
	r := rand.New(rand.NewPCG(11, 12))
	cases, least := []hosttest.Case{hostileCase(1, 300), hostileCase(40, 3)}, hostileCase(1, 1)
	rejected := 0
	for range soak.Count(60, 1000) {
		text := randomRules(r)
		source, program := checked(t, text)
		if program == nil {
			rejected++
			continue
		}
		bound, err := link.FuelOf(program)
		if err != nil {
			t.Fatal(err)
		}
		in := startWith(t, host, source, policy.MaxLimits)
		fixed := hosttest.CallHooks(t, in, least).Fuel
		for range 4 {
			q := cases[r.IntN(len(cases))]
			if r.IntN(2) == 0 {
				q = hosttest.RandomCase(r)
			}
			for range r.IntN(60) {
				disturb(r, q)
			}
			got := hosttest.CallHooks(t, in, q)
			rows, options := q.Candidates.Rows.Len(), q.Candidates.Len()
			for k, hook := range []int{0, 1, 3} {
				if hook == 3 {
					rows = 0
				}
				const growth = 4 * 8192 // of memory, by pages
				if most := growth + int(fixed[hook]) + rows*bound[k].Row + options*bound[k].Option; got.Err[hook] != "" || got.Fuel[hook] > uint64(most) {
					t.Fatalf("%s\nhook %d takes %d ticks for %d rows of %d options, at most %d are counted; %s", text, hook, got.Fuel[hook], rows, options, most, got.Err[hook])
				}
			}
		}
	}
	if count := soak.Count(60, 1000); rejected > count/2 {
		t.Errorf("%d of %d rules were rejected", rejected, count)
	}
}

// A call whose values are expensive for all rows together stays within link.FixedFuel.
func TestFuel_FixedPartSuffices(t *testing.T) {
	q := hostileCase(1, 8)
	rows, shared := &q.Candidates.Rows, q.Candidates.Shared
	for i := range 10_000 {
		shared.Namespaces.Name = append(shared.Namespaces.Name, int32(len(q.Candidates.Strings)))
		shared.Namespaces.Weight = append(shared.Namespaces.Weight, 2)
		for d := range shared.Namespaces.Use {
			shared.Namespaces.Use[d] = append(shared.Namespaces.Use[d], float64(i))
		}
		q.Candidates.Strings = append(q.Candidates.Strings, fmt.Sprint("namespace-", i))
	}
	key := longText[:100]
	rows.Annotations = &sdk.AnnotationTable{}
	for i := range 2000 {
		rows.Annotations.Names = append(rows.Annotations.Names, fmt.Sprintf("%s%04d", key, i))
		rows.Annotations.Values = append(rows.Annotations.Values, make([]float64, rows.Len()))
	}
	var entries []string
	for from := 0; from < 60; from += 10 {
		text := "victim.namespaceShare"
		for i := range 10 {
			text += fmt.Sprintf(" + victim.annotations['%s%04d']", key, 30*(from+i))
		}
		entries = append(entries, text)
	}
	program, in := startUnlimited(t, newHost(t), "order: ["+strings.Join(entries, ", ")+"]")
	got := hosttest.CallHooks(t, in, q)
	bound, err := link.FuelOf(program)
	if err != nil || got.Err[1] != "" {
		t.Fatal(err, got.Err)
	}
	if most := link.FixedFuel + rows.Len()*bound[1].Row; got.Fuel[1] > uint64(most) || got.Fuel[1] < 2e6 {
		t.Errorf("%d ticks, at most %d are counted", got.Fuel[1], most)
	}
}

// The most that Check accepts for the usual limits, and for the highest ones, runs with them.
func TestFuel_SufficesForFullCalls(t *testing.T) {
	host := newHost(t)
	cases := []hosttest.Case{hostileCase(1, 4100), hostileCase(4096, 1)}
	for _, tt := range []struct {
		name   string
		limits policy.Limits
		rules  string
	}{
		{"usual limits", policy.DefaultLimits, "eligible: " + powers(38) + " > 1.0; order: " + powers(38)},
		{"just enough", policy.Limits{Fuel: link.FixedFuel, FuelPerRow: 20_000}, "eligible: " + powers(38) + " > 1.0; order: " + powers(38)},
		{"long texts", policy.DefaultLimits, "eligible: victim.job.contains('aaaaaaab') || victim.group.contains('aaaaaaab') || victim.namespace.contains('aaaaaaab')"},
		{"the highest limits", policy.MaxLimits, "order: [" + strings.TrimSuffix(strings.Repeat(balanced(30)+", ", 7), ", ") + "]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source, err := rules.ParseInline("tested", tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			source.Limits = tt.limits
			in := startWith(t, host, source, tt.limits)
			for _, c := range cases {
				if got := hosttest.CallHooks(t, in, c); got.Err != [5]string{} {
					t.Error(got.Err)
				}
			}
		})
	}
}

// Rules at all limits of the language load, and have answers.
func TestModule_LargestRulesRun(t *testing.T) {
	host := newHost(t)
	nested := func(of string, n int) string { return strings.Repeat("("+of, n) + "1" + strings.Repeat(")", n) }
	list := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+", ", n), ", ") }
	var fields, texts []string
	for _, f := range schema.Fields {
		if f.Scope&schema.Order != 0 && f.Type == schema.Int {
			fields = append(fields, f.Name)
		}
		if f.Scope&schema.Order != 0 && f.Type == schema.String {
			texts = append(texts, f.Name+".startsWith('x')")
		}
	}
	turns := "(now - victim.start > duration('1h'))" + strings.Repeat(" != (victim.lostWork * 3 > duration('7m'))", 20)
	for name, text := range map[string]string{
		"many operations":     "order: [" + list(8, strings.ReplaceAll(balanced(98), "pow(victim.share, 1.5)", "victim.share / 3.0")) + "]",
		"whole products":      "order: [" + list(8, "victim.evictions"+strings.Repeat(" * victim.evictions", 50)) + "]",
		"deep whole products": "order: [" + list(8, nested("victim.displacedLostWork.getSeconds() * ", 24)) + "]",
		"deep conditions":     "order: [" + list(8, strings.Repeat("victim.priority > 1 ? 2 : (", 24)+"1"+strings.Repeat(")", 24)) + "]",
		"all fields":          "order: [" + list(8, strings.Join(fields, " + ")) + "]; eligible: " + strings.Join(texts[:3], " || "),
		"many texts":          "eligible: victim.namespace in [" + list(480, "'abc'") + "]",
		"many keys":           "order: [" + keys(0, 32) + ", " + keys(32, 64) + "]",
		"comparisons of time": "eligible: " + turns,
		"nested comparisons":  "eligible: " + strings.Repeat("((victim.age > duration('1h') ? victim.lostWork : victim.age) + (", 12) + "victim.age" + strings.Repeat("))", 12) + " > duration('1h')",
		"durations at limits": "order: [" + list(8, strings.Repeat("abs(", 20)+"victim.lostWork * 9223372036854775807"+strings.Repeat(")", 20)) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			_, in := startUnlimited(t, host, text)
			r := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				q := hosttest.RandomCase(r)
				disturb(r, q)
				if got := hosttest.CallHooks(t, in, q); got.Err != [5]string{} {
					t.Error(got.Err)
				}
			}
		})
	}
}

package docstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/link"
	ruleschema "github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

const rulesIntroduction = `# Rules

A policy can be a few expressions in [CEL](https://cel.dev), in the manifest of the policy:

` + "```yaml" + `
name: gentle
rules:
  eligible: preemptor.priority - victim.priority >= 10 && victim.age > duration('10m')
  order: [victim.priority, victim.lostWork * victim.share]
  option: [option.highestPriority, option.lostWork]
` + "```" + `

[Write a policy without a compiler](../tutorials/policy-without-a-compiler.md) introduces them. ` + "`cede policy build`" + ` compiles rules to a
WebAssembly module, which is signed, tested, shadowed and loaded as any other. On the command line, ` + "`rules: order: victim.age`" + ` can stand in
the place of a policy; several rules are separated by semicolons or line ends.

## Rules of a policy

| rule | type | decides |
|--|--|--|
| ` + "`eligible`" + ` | condition | whether a candidate may be evicted. It replaces the gap of the operator, which is ` + "`preemptor.delta`" + `. Candidates whose priority is not lower than the preemptor's are never evicted. |
| ` + "`order`" + ` | up to %d values | which candidate is evicted first: the one with the lowest value. Further entries break ties, then the order of the candidates: by priority. |
| ` + "`option`" + ` | up to %d values | which node is best: the one with the lowest value. Further entries break ties. |
| ` + "`delta`" + ` | whole number | the gap that candidates require if the operator sets none and there is no ` + "`eligible`" + `; 10 if it is not given |

The rules named ` + "`default`" + ` decide what a policy leaves open. A value is an int, double, duration, timestamp or bool. False precedes true.
Victims that turn out to be redundant are spared, as for every policy. Bindings of member clusters are evicted by ` + "`default`" + `.

In YAML, quote an expression that contains a colon followed by a space, or begins with a character such as ` + "`!`, `[` or `'`" + `.
In a list in brackets, also quote one that contains a comma, a bracket or a quote, or write each entry on a line of its own after ` + "`- `" + `.

## An expression without a value

Some expressions have no value for some candidates: an int that exceeds 64 bits, a division by zero, a label or annotation that is
absent, the order of a number and NaN. As in CEL, ` + "`false && x` and `true || x`" + ` have a value all the same. Otherwise:

| where | result |
|--|--|
| ` + "`eligible`" + ` | the candidate is not eligible |
| an entry of ` + "`order` or `option`" + ` | the entry counts as higher than every value: the candidate is evicted last, the node chosen last, of those with equal earlier entries. NaN counts as no value. |

A double beyond the finite range is compared as infinite. If ` + "`order`" + ` has exactly two entries and the second is a double, infinite values
compare as the largest finite ones. A missing value does not end a call.

An expression is an error if whole numbers or durations of constants never have a value, as ` + "`1 / 0`" + `. Arithmetic of doubles always has a
value, which may be NaN, and is not computed in advance: ` + "`order: 0.0 / 0.0`" + ` is accepted, and orders no candidates.

## Time

If the result of ` + "`eligible`" + ` changes as time passes, the server evaluates the job again at that time. A comparison of durations or timestamps
yields the exact time, and so does one of ` + "`getHours()`" + ` and its like with a constant. For one that is not linear in time, such as a comparison
of doubles or ` + "`victim.age.getHours() * 2 > 3`" + `, the job is evaluated again each minute while it waits: prefer a form with an exact time.

## Limits

An expression has at most 4,096 bytes and %d operations, names and constants, nested at most %d deep. All rules together have at most 64 keys in brackets,
and about 15,000 bytes of texts. Keys are written in quotes.

Of a name of more than %d bytes, the last %d count. A label with a longer value counts as absent, and of the labels of one candidate the
first %d count, in the order of their keys.

A call has 50,000,000 ticks of fuel and 20,000 for each candidate or option. Rules that may take more for one candidate or option are an
error, so that no call runs out of fuel. A policy can raise the limit: ` + "`limits.fuelPerRow`" + ` in ` + "`policy.yaml`" + `. What counts is the
text, label or branch that takes most, and the sorting of three or more entries of ` + "`order`" + `, or of two if the second is not a double:

%s
` + "`cede policy bench`" + ` shows the fuel that calls take. The limits hold for up to %s candidates or %s options in one
call, %d disruption budgets for each candidate, and 10,000 namespaces. If an operator sets ` + "`policy.limits.fuel`" + ` to less than %s, rules
may run out of fuel all the same.

A call also has a time, 2 s unless ` + "`limits.time`" + ` states another. Rules that cannot finish a call of that size in this time at
4,000,000,000 ticks a second are an error. On a slower machine, a call that exceeds its time ends with an error that names the policy and the limit.

`

// rulesPage documents the language of rules.
func rulesPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, rulesIntroduction, ir.MaxOrderEntries, ir.MaxOptionEntries, syntax.MaxNodes, syntax.MaxDepth,
		ruleschema.MaxText, ruleschema.MaxText, ruleschema.MaxLabels, fuelTable(t),
		cmdutil.Thousands(rules.MaxCandidates), cmdutil.Thousands(rules.MaxOptions), link.MaxBudgets, cmdutil.Thousands(link.FixedFuel))
	b.WriteString("## Names\n\nA name is known in the rules of the third column. The columns of the SDK that it requires are derived.\n\n")
	b.WriteString("| name | type | in | meaning |\n|--|--|--|--|\n")
	fmt.Fprintf(&b, "| `%s` | timestamp | all | the time of the decision |\n", ruleschema.Now)
	for _, s := range ruleschema.Spans {
		fmt.Fprintf(&b, "| `%s` | duration | %s | %s |\n", s.Name, scopeOf(ruleschema.Fields[ruleschema.Lookup(s.Of)].Scope), s.Doc)
	}
	for _, f := range ruleschema.Fields {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, scopeOf(f.Scope), f.Doc)
	}
	b.WriteString("\n## Names with a key\n\nWrite `victim.use['cpu']`, or `victim.labels.tier` if the key is an identifier.\n\n")
	b.WriteString("| name | type | in | meaning | absent key |\n|--|--|--|--|--|\n")
	for _, m := range ruleschema.Maps {
		absent := "0"
		if m.Optional {
			absent = "no value"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, scopeOf(m.Scope), m.Doc, absent)
	}
	b.WriteString("\n## Operators and functions\n\n| form | example | meaning |\n|--|--|--|\n")
	for _, f := range ruleschema.Functions {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", pipes(f.Form), pipes(f.Example), f.Doc)
	}
	return b.String()
}

// fuelTable lists expressions with the ticks that are counted for them.
func fuelTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| expression | ticks at most |\n|--|--|\n")
	for _, text := range []string{
		"victim.priority", "victim.age > duration('10m')", "victim.lostWork * victim.share", "victim.mustLeave ? exp(victim.share) : 0.0",
		"exp(victim.share)", "log(victim.share)", "pow(victim.share, 0.5)",
		"victim.namespace == 'batch'", "victim.namespace in ['batch', 'test', 'build']", "victim.job == 'index'", "victim.job == preemptor.job",
		"victim.job.startsWith('nightly-')", "victim.job.contains('nightly')", "victim.job.contains('nightly-build')",
		"victim.job.contains('aaaaaaaaaaaa')", "victim.job.contains(preemptor.job)",
		"[victim.priority, victim.share]", "[victim.priority, victim.evictions]", "[victim.priority, victim.evictions, victim.share]",
		"has(victim.labels.tier)", "victim.labels['app.kubernetes.io/name'] == 'web'",
	} {
		source, err := rules.ParseInline("example", "order: "+text)
		if err != nil {
			t.Fatal(err)
		}
		source.Limits.FuelPerRow = policy.MaxLimits.FuelPerRow
		program, err := rules.Check(source)
		if err != nil {
			t.Fatal(err)
		}
		fuel, err := link.FuelOf(program)
		if err != nil {
			t.Fatal(err)
		}
		ticks := fuel[1].Entries[0]
		if strings.HasPrefix(text, "[") {
			ticks = fuel[1].Row
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", pipes(text), cmdutil.Thousands(ticks))
	}
	return b.String()
}

func pipes(code string) string { return strings.ReplaceAll(code, "|", `\|`) }

func scopeOf(s ruleschema.Scope) string {
	switch s {
	case ruleschema.All:
		return "all"
	case ruleschema.Order:
		return "order"
	case ruleschema.Victims:
		return "eligible, order"
	}
	return "option"
}

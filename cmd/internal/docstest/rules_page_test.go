package docstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
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

## An expression without a value

Some expressions have no value for some candidates: an int that exceeds 64 bits, a division by zero, a label or annotation that is
absent, the order of a number and NaN. As in CEL, ` + "`false && x` and `true || x`" + ` have a value all the same. Otherwise:

| where | result |
|--|--|
| ` + "`eligible`" + ` | the candidate is not eligible |
| an entry of ` + "`order` or `option`" + ` | the entry counts as higher than every value: the candidate is evicted last, the node chosen last, of those with equal earlier entries. NaN counts as no value. |

A double beyond the finite range is compared as infinite. If ` + "`order`" + ` has exactly two entries and the second is a double, infinite values
compare as the largest finite ones. No value ends a call; rules that use up the [fuel](#limits) of a call do.

## Time

If the result of ` + "`eligible`" + ` changes as time passes, the server evaluates the job again at that time. A comparison of durations or timestamps
yields the exact time; one that is not linear in time, such as a comparison of doubles, is evaluated again each minute.

## Limits

An expression has at most 4,096 bytes and %d operations, nested at most %d deep. All rules together have at most 64 keys in brackets,
and about 15,000 bytes of texts. Keys are written in quotes.

A call has 50,000,000 ticks of fuel and 20,000 for each candidate or option. Most operations take 5 to 30 ticks, ` + "`exp`" + ` about 90, ` + "`log`" + ` 170 and ` + "`pow`" + `
480; comparisons and searches of short texts take a few hundred. Rules that take less than 20,000 for each candidate never use it up. ` + "`cede policy bench`" + ` shows
the fuel of each call.

`

// rulesPage documents the language of rules.
func rulesPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, rulesIntroduction, ir.MaxOrderEntries, ir.MaxOptionEntries, syntax.MaxNodes, syntax.MaxDepth)
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

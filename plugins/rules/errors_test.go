package rules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

func TestCheck_ReportsPositionAndRemedy(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"a misspelled name",
			"eligible: preemptor.priority - victim.priorty >= 10",
			"line 1, column 32: eligible: unknown name \"victim.priorty\"\n  eligible: preemptor.priority - victim.priorty >= 10\n" + strings.Repeat(" ", 33) + "^\n  did you mean victim.priority?",
		},
		{"a name of another rule", "option: victim.age", "victim.age cannot be used here\n  option: victim.age\n          ^\n  it can be used in eligible and order"},
		{"an unknown function", "order: median(victim.age)", "unknown function \"median\""},
		{"int and double", "order: victim.share * 2", "* cannot be applied to (double, int)\n  order: victim.share * 2\n                      ^\n  write whole numbers with a fraction, such as 2.0"},
		{"a duration and a number", "eligible: victim.age > 10", "write a duration as duration('10m')"},
		{"a condition is required", "eligible: victim.age", "the type is duration; expected a condition (bool)"},
		{"a text has no order", "order: victim.namespace", "the type is string; expected a value that can be sorted"},
		{"an invalid duration", "eligible: victim.age > duration('10 minutes')", "invalid duration \"10 minutes\""},
		{"a duration out of range", "eligible: victim.age > duration('9999999h')", "invalid duration \"9999999h\""},
		{"an unfinished expression", "eligible: victim.age >", "line 1, column 23: eligible: syntax error: unexpected end of the expression\n"},
		{"an open parenthesis", "order: (1", "syntax error: unexpected end of the expression, expected ')'"},
		{"an open text", "eligible: victim.job == 'abc", "the text 'abc has no end"},
		{"a duration without quotes", "eligible: victim.age > 10m", "syntax error: unexpected 'm'\n  eligible: victim.age > 10m\n                           ^\n  write a duration as duration('10m')"},
		{"a duration as a text", "eligible: victim.age > '10m'", "write a duration as duration('10m')"},
		{"another language", "eligible: victim.mustLeave and not victim.job == ' or '", "write && in place of and"},
		{"an assignment", "eligible: victim.priority = 20", "unexpected '='\n  eligible: victim.priority = 20\n                            ^\n  write == in place of ="},
		{"a tuple", "eligible: victim.priority in (1, 2)", "write a list in brackets"},
		{"a text without quotes", "eligible: victim.namespace == batch", "write a text in quotes: 'batch'"},
		{"choices of two types", "order: victim.mustLeave ? 1 : 1.0", "? : cannot be applied to (bool, int, double)"},
		{"has without a key", "eligible: has(victim.labels)", "has(victim.labels) has no key\n  eligible: has(victim.labels)\n                ^\n  write has(victim.labels.tier)"},
		{"an int out of range", "order: 9223372036854775808", "at most 9223372036854775807"},
		{"too many operations", "order: [" + strings.Repeat("1+", 40) + "(" + balanced(120) + ")]", "order[0]: 679 operations, names and constants; at most 500 are allowed\n"},
		{"the place of rules is a prefix", "rules:  order: victim.agee", "line 1, column 8: order: unknown name \"victim.agee\"\n  order: victim.agee\n         ^"},
		{"a division by zero", "order: [1, victim.priority / 0]", "line 1, column 12: order[1]: the expression never has a value\n"},
		{"a constant beyond 64 bits", "eligible: -(9223372036854775807 + 1) > victim.priority", "eligible: the expression never has a value"},
		{"a constant that cannot be converted", "option: int(-1e300)", "option: the expression never has a value"},
		{"no negation", "eligible: victim.priority in [-(-9223372036854775808)]", "eligible: the expression never has a value"},
		{"a sum of many terms", "order: " + strings.Repeat("1+", 70) + "1", "the expression is nested too deeply"},
		{"a rule on the same line", "order: victim.age; eligible: victim.aeg > 1", "line 1, column 30: eligible: unknown name \"victim.aeg\"\n  order: victim.age; eligible: victim.aeg > 1\n" + strings.Repeat(" ", 31) + "^"},
		{"an unknown rule is marked itself", "order: victim.age; victims: 1", "line 1, column 20: unknown rule \"victims\""},
		{"a list of YAML", "order:\n  - victim.age", "line 2, column 3: expected NAME: EXPRESSION"},
		{"a rule without an expression", "order: ", "expected an expression\n  order:\n        ^\n  write order: EXPRESSION"},
		{"a computed key", "order: victim.use[victim.namespace]", "a key must be written in quotes"},
		{"a map without a key", "eligible: victim.labels == victim.labels", "victim.labels needs a key"},
		{"an unknown rule", "victims: victim.age", "unknown rule \"victims\""},
		{"too many entries", "option: [1, 2, 3, 4, 5]", "5 entries; at most 4 are allowed"},
		{"nothing", "delta: 5", "there are no rules"},
		{"an invalid delta", "delta: -1; order: victim.age", "invalid value \"-1\": must be a whole number between 0 and 2147483647"},
		{"a list by itself", "eligible: [1, 2] == [1, 2]", "a list is allowed only after in"},
		{"a macro that rules lack", "eligible: [1].all(x, x > 0)", "unknown"},
		{"a regular expression", "eligible: victim.namespace.matches('a+')", "matches is not available in rules"},
		{"texts are not added", "eligible: victim.namespace + 'x' == 'ax'", "the concatenation of texts is not available"},
		{"unsigned numbers", "order: 1u", "not available in rules"},
		{"a character that terminals do not show", "order: victim.priority\u200b", "unexpected 'U+200B'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := problems(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
			if invalid, ok := errors.AsType[*rules.Error](err); !ok || len(invalid.Problems) == 0 {
				t.Errorf("%T is not a list of problems", err)
			}
		})
	}
}

// problems returns the error of inline rules.
func problems(text string) error {
	source, err := rules.ParseInline("tested", text)
	if err == nil {
		_, err = rules.Check(source)
	}
	return err
}

func TestCheck_ReportsAllProblemsAtOnce(t *testing.T) {
	err := problems("eligible: victim.prio > 1 && victim.aeg > 2\norder: [victim.age, nothing]\noption: option.victims + 1.0")
	invalid, ok := errors.AsType[*rules.Error](err)
	if !ok || len(invalid.Problems) != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{"eligible", "eligible", "order[1]", "option"} {
		if invalid.Problems[i].Entry != want {
			t.Errorf("problem %d is about %s, not %s", i, invalid.Problems[i].Entry, want)
		}
	}
}

// An expression with a problem of one kind is searched for those of the other kinds, and so is
// the text after a quote without an end.
func TestCheck_ReportsProblemsOfAllKindsAtOnce(t *testing.T) {
	expensive := "victim.job.contains('aaaaaaaaaaaa')"
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"eligible: victim.agee > 10m && victim.job.startsWith('victim.x') && victim.prio.getHours() > 1", []string{
			`column 11: eligible: unknown name "victim.agee"`, "column 27: eligible: syntax error", `column 69: eligible: unknown name "victim.prio"`,
		}},
		{"option: (victim.age + option.victims", []string{"column 10: option: victim.age cannot be used here", "column 37: option: syntax error"}},
		{"eligible: victim.agee > duration('10 minutes') || victim.labels[victim.job] == 'a' || now > timestamp('x')", []string{
			`column 11: eligible: unknown name "victim.agee"`, `invalid duration "10 minutes"`, "a key must be written in quotes", `invalid timestamp "x"`,
		}},
		{"eligible: victim.job == 'a; order: victim.agee; option: option.x", []string{
			"column 25: eligible: syntax error: the text 'a has no end", `column 36: order: unknown name "victim.agee"`, `column 57: option: unknown name "option.x"`,
		}},
		{"eligible: victim.job == 'a; b' && victim.y; delta: -1", []string{`column 35: eligible: unknown name "victim.y"`, "column 52: delta: invalid value"}},
		{"eligible: " + expensive + "; order: [victim.agee, " + expensive + "]", []string{
			"column 11: eligible: up to", `column 56: order[0]: unknown name "victim.agee"`, "column 69: order[1]: up to",
		}},
	} {
		err := problems(tt.text)
		invalid, ok := errors.AsType[*rules.Error](err)
		if !ok || len(invalid.Problems) != len(tt.want) {
			t.Errorf("%s: want %d problems:\n%v", tt.text, len(tt.want), err)
			continue
		}
		for i, want := range tt.want {
			if have := invalid.Problems[i].String(); !strings.Contains(have, want) {
				t.Errorf("%s: problem %d:\n%s\nwant %s", tt.text, i, have, want)
			}
		}
	}
}

func TestParseManifest_ReadsAliases(t *testing.T) {
	for _, text := range []string{
		"rules:\n  eligible: &e victim.age > duration('1m')\n  order: [*e, victim.agee]\n",
		"shared: &r {eligible: victim.age > duration('1m'), order: [1, victim.agee]}\nrules: *r\n",
	} {
		source, err := rules.ParseManifest("policy.yaml", "p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = rules.Check(source)
		if invalid, ok := errors.AsType[*rules.Error](err); !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Entry != "order[1]" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := rules.ParseManifest("policy.yaml", "p", []byte("rules: &r\n  order: [*r]\n")); err == nil {
		t.Error("an alias of itself is accepted")
	}
}

// A comma ends an entry of a YAML list in brackets, also within parentheses.
func TestParseManifest_ReportsEntriesThatACommaEnds(t *testing.T) {
	const hint = "in a list in brackets a comma ends the entry: quote an expression that contains one"
	for _, tt := range []struct {
		order string
		want  int // problems with the hint
	}{
		{"[max(victim.share, 0.01), victim.priority]", 2},
		{"['max(victim.share, 0.01)', victim.priority]", 0},
		{"['max(victim.share', victim.priority]", 0},
		{"[victim.agee, victim.priority]", 0},
		{"\n  - max(victim.share, 0.01)", 0},
	} {
		source, err := rules.ParseManifest("policy.yaml", "p", []byte("rules:\n  order: "+tt.order+"\n"))
		if err == nil {
			_, err = rules.Check(source)
		}
		if n := strings.Count(fmt.Sprint(err), hint); n != tt.want {
			t.Errorf("%s: %d hints, want %d, in\n%v", tt.order, n, tt.want, err)
		}
	}
}

func TestCheck_ReportsNoConsequences(t *testing.T) {
	for _, text := range []string{
		"order: 'abc", "order: @", "order: ++1", "eligible: victim.priority = 1 and victim.age",
		"order: [1].size()",
		"eligible: now > timestamp('9999-01-01T00:00:00Z')", "eligible: victim.age > duration('1d')", "eligible: victim.job.size() > 1",
	} {
		if invalid, ok := errors.AsType[*rules.Error](problems(text)); !ok || len(invalid.Problems) != 1 {
			t.Errorf("%s: %v", text, invalid)
		}
	}
	if invalid, ok := errors.AsType[*rules.Error](problems("order: 1; nothing: 1; nothing: 2")); !ok || len(invalid.Problems) != 2 {
		t.Errorf("an unknown rule that is given twice: %v", invalid)
	}
}

func TestCheck_SortsProblemsByPosition(t *testing.T) {
	err := problems("order: [victim.agee, 1 / x]; eligible: 1; nothing\noption: victim.age\n")
	invalid, ok := errors.AsType[*rules.Error](err)
	if !ok || len(invalid.Problems) != 5 {
		t.Fatalf("%v", err)
	}
	for i, want := range []rules.Place{{Line: 1, Column: 9}, {Line: 1, Column: 26}, {Line: 1, Column: 40}, {Line: 1, Column: 43}, {Line: 2, Column: 9}} {
		if have := invalid.Problems[i].Place; have.Line != want.Line || have.Column != want.Column {
			t.Errorf("problem %d is at %d:%d, want %d:%d", i, have.Line, have.Column, want.Line, want.Column)
		}
	}
}

func TestParseInline_SplitsOutsideOfTexts(t *testing.T) {
	for _, tt := range []struct {
		text    string
		entries []string
	}{
		{"eligible: victim.job == 'a;b'; order: [1, 2]", []string{"1", "2"}},
		{`eligible: victim.job == 'a\\'; order: 3`, []string{"3"}},
		{`order: [victim.job == 'a\',]b' ? 1 : 2, min(3, 4),]`, []string{`victim.job == 'a\',]b' ? 1 : 2`, "min(3, 4)"}},
		{"order: 1 in [2] || 3 in [4]", []string{"1 in [2] || 3 in [4]"}},
		{"order: [1][0] + [2][0]", []string{"[1][0] + [2][0]"}},
	} {
		source, err := rules.ParseInline("tested", tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		var have []string
		for _, e := range source.Order {
			have = append(have, e.Text)
		}
		if !slices.Equal(have, tt.entries) {
			t.Errorf("%s: %q, want %q", tt.text, have, tt.entries)
		}
	}
}

func TestParseManifest_LocatesExpressionsInYAML(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "name: p\nrules:\n  order: victim.agee\n", "policy.yaml:3:10: order: unknown name \"victim.agee\"\n  order: victim.agee\n         ^"},
		{"quoted", "name: p\nrules:\n  order: \"victim.agee\"\n", "policy.yaml:3:11: order: "},
		{"in a list", "name: p\nrules: {order: [victim.age, victim.agee]}\n", "policy.yaml:2:29: order[1]: "},
		{"in a block", "name: p\nrules:\n  eligible: |\n    victim.age > duration('1h')\n    && victim.agee > duration('1h')\n", "policy.yaml:5:8: eligible: "},
		{"in a folded block", "name: p\nrules:\n  eligible: >-\n    victim.age >\n    duration('1h')\n\n    && victim.agee > duration('1h')\n", "policy.yaml:7:8: eligible: unknown name \"victim.agee\"\n  && victim.agee > duration('1h')\n     ^"},
		{"on several lines", "name: p\nrules:\n  eligible: victim.priority > 1\n    &&\n    victim.agee > duration('1h')\n", "policy.yaml:5:5: eligible: "},
		{"on lines with CR", "name: p\r\nrules:\r\n  order: >\r\n    victim.age\r\n    + victim.agee\r\n", "policy.yaml:5:7: order: "},
		{"in single quotes", "name: p\nrules:\n  eligible: 'victim.job == ''a'' &&\n    victim.agee > 1'\n", "policy.yaml:4:5: eligible: "},
		{"after escapes", "name: p\nrules:\n  eligible: \"victim.job == \\\"\\u0061\\x62\\\"\\n && \\\n    victim.agee > 1\"\n", "policy.yaml:4:5: eligible: "},
		{"after an anchor", "name: p\nrules:\n  order: &a !!str victim.age + victim.agee\n", "policy.yaml:3:32: order: "},
		{"a text of which YAML removes the quotes", "name: p\nrules:\n  order: 'abc'\n", `YAML removes quotes around an expression: write a text as "'abc'"`},
		{"a text without quotes in single quotes", "name: p\nrules:\n  eligible: 'victim.namespace == batch'\n", "write a text in quotes, doubled within those of YAML: ''batch''"},
		{"a text without quotes in double quotes", "name: p\nrules:\n  eligible: \"victim.namespace == batch\"\n", "; write a text in quotes: 'batch'"},
		{"at the end of a block", "name: p\nrules:\n  order: >\n    victim.age +\n", "policy.yaml:4:17: order: syntax error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source, err := rules.ParseManifest("policy.yaml", "p", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			_, err = rules.Check(source)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// An expression of which a part has no value is accepted if another part may have one.
func TestCheck_AcceptsWhatMayHaveAValue(t *testing.T) {
	for _, text := range []string{
		"order: victim.mustLeave ? 0 : 1 / 0", "eligible: victim.mustLeave || 1 / 0 == 1", "order: 1 / victim.priority",
		"order: -9223372036854775807 - victim.priority", "order: 0.0 / 0.0", "order: int(1e300 * victim.share)",
	} {
		if err := problems(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Hostile texts result in an error or a module, within limits.
func TestCheck_BoundsHostileExpressions(t *testing.T) {
	repeat := strings.Repeat
	for name, text := range map[string]string{
		"deep parentheses":      "order: " + repeat("(", 5000) + "1" + repeat(")", 5000),
		"deep parentheses, few": "order: " + repeat("(", 300) + "1" + repeat(")", 300),
		"deep negation":         "eligible: " + repeat("!", 3000) + "true",
		"deep conditions":       "order: " + repeat("true ? 1 : ", 300) + "1",
		"a long sum":            "order: " + repeat("1+", 1500) + "1",
		"a huge list":           "eligible: preemptor.priority in [" + repeat("1,", 1900) + "1]",
		"a huge text":           "eligible: victim.namespace == '" + repeat("x", 4000) + "'",
		"many keys":             "order: " + repeat("victim.use['a']+", 100) + "1.0",
		"a large number":        "order: 99999999999999999999",
		"invalid UTF-8":         "eligible: victim.namespace == '\xff\xfe'",
		"too long":              "order: " + repeat(" ", 5000) + "1",
		"only a quote":          "order: '",
		"only a bracket":        "order: [",
		"zero bytes":            "eligible: victim.namespace == '\\000'",
	} {
		t.Run(name, func(t *testing.T) {
			source, err := rules.ParseInline("tested", text)
			if err == nil {
				_, err = rules.Compile(source)
			}
			t.Logf("%.300v", err)
		})
	}
}

// Every documented example compiles.
func TestFunctions_ExamplesCompile(t *testing.T) {
	for _, f := range schema.Functions {
		entry := "order: "
		if err := problems(entry + f.Example); err != nil {
			t.Errorf("%s: %v", f.Form, err)
		}
	}
}

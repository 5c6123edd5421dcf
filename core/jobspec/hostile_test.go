package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// TestLoad_BoundsHostileFiles checks that files made to exhaust the stack, memory or
// time are rejected quickly.
func TestLoad_BoundsHostileFiles(t *testing.T) {
	t.Parallel()
	many := 50_000
	if soak.Full() {
		many = 300_000
	}
	job := func(text string) string { return "job \"x\" {\n group \"g\" {\n  count = " + text + "\n }\n}\n" }
	doubling := `variable "s" { default = "` + strings.Repeat("x", 100_000) + "\" }\n" + job(`"`+strings.Repeat("${var.s}", 4000)+`"`)
	chain := "x0"
	for range 30 {
		chain = fmt.Sprintf("replace(%s, \"x\", \"xxxxxxxxxxxxxxxxxxxxxxxx\")", chain)
	}
	// Each local value is twice the size of the previous one, or part of a cycle.
	locals := func(n int, value string) string {
		text := "locals {\n l0 = \"xxxxxxxx\"\n"
		for i := 1; i < n; i++ {
			text += fmt.Sprintf(" l%d = %s\n", i, strings.ReplaceAll(value, "PREV", fmt.Sprintf("local.l%d", i-1)))
		}
		return text + "}\n" + job(fmt.Sprintf("local.l%d", n-1))
	}
	circle := "locals {\n"
	for i := range 4000 {
		circle += fmt.Sprintf(" l%d = local.l%d\n", i, (i+1)%4000)
	}
	files := map[string]string{
		"twice.hcl":  locals(60, `"${PREV}${PREV}"`),
		"lists.hcl":  locals(60, `[PREV, PREV]`),
		"maps.hcl":   locals(60, `{ a = PREV, b = PREV }`),
		"row.hcl":    locals(4000, `PREV`),
		"circle.hcl": circle + "}\n" + job("local.l0"),
		"manylocals.hcl": "locals {\n" + func() (s string) {
			for i := range 40_000 {
				s += fmt.Sprintf("a%d=1\n", i)
			}
			return
		}() + "}\n" + job(`"${local.a1}x"`),
		"brackets.hcl":   job(strings.Repeat("[", many)),
		"parens.hcl":     job(strings.Repeat("(", many)),
		"templates.hcl":  job(strings.Repeat(`"${`, many)),
		"signs.hcl":      job(strings.Repeat("!", many) + "true"),
		"minus.hcl":      job(strings.Repeat("-", many) + "1"),
		"choices.hcl":    job(strings.Repeat("true ? 1 : ", many/3) + "1"),
		"sum.hcl":        job("1" + strings.Repeat("+1", many)),
		"index.hcl":      job("x" + strings.Repeat("[0]", many/3)),
		"blocks.hcl":     strings.Repeat("job \"x\" {\n", many/30),
		"loops.hcl":      job("[for a in [1,2]: [for b in [1,2]: b]]"),
		"doubling.hcl":   doubling,
		"functions.hcl":  job(strings.ReplaceAll(chain, "x0", `"x"`)),
		"format.hcl":     job(`format("%999999999d", 1)`),
		"join.hcl":       job(`join("` + strings.Repeat("x", 60_000) + `", [` + strings.Repeat(`"",`, 4000) + `])`),
		"exponent.hcl":   job("1e999999999"),
		"digits.hcl":     job("1e300000000"),
		"zeros.hcl":      job(`"${1e-300000000}"`),
		"formatted.hcl":  job(`format("%d", 1e300000000)`),
		"operand.hcl":    job(`"${"1e300000000" * 1}"`),
		"sign.hcl":       job(`"${-"1e300000000"}"`),
		"argument.hcl":   job(`"${max("1e300000000", 1)}"`),
		"numeric.hcl":    job(`format("%d", "1e300000000")`),
		"variable.hcl":   "variable \"n\" {\n type = number\n default = \"1e300000000\"\n}\n" + job(`"${var.n}"`),
		"elements.hcl":   "variable \"n\" {\n type = list(number)\n default = [\"1e300000000\"]\n}\n" + job(`"${var.n[0]}"`),
		"squares.hcl":    strings.Replace(locals(24, `PREV * PREV`), `"xxxxxxxx"`, "1e300", 1),
		"brackets.yaml":  strings.Repeat("[", many),
		"brackets.json":  `{"id":` + strings.Repeat("[", many),
		"aliases.yaml":   "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nid: [*e,*e,*e,*e,*e,*e,*e,*e]\n",
		"merges.yaml":    "a: &a {x: 1}\nb: &b {<<: [" + strings.TrimSuffix(strings.Repeat("*a,", 60_000), ",") + "]}\nid: x\n<<: [" + strings.TrimSuffix(strings.Repeat("*b,", 60_000), ",") + "]\n",
		"itself.yaml":    "id: &a [*a]\n",
		"fields.yaml":    strings.Repeat("x: 1\n", 100_000),
		"values.json":    `{"id":[` + strings.TrimSuffix(strings.Repeat("1,", many), ",") + "]}",
		"large.yaml":     "id: " + strings.Repeat("x", maxSize),
		"binary.hcl":     "job \"\x00\"",
		"latin.yaml":     "id: caf\xe9",
		"groups.json":    `{"id":"x","groups":[` + strings.TrimSuffix(strings.Repeat(`{},`, 20_000), ",") + "]}",
		"repeated.hcl":   "job \"x\" {\n" + strings.Repeat("group \"g\" {}\n", 1000) + "}",
		"name.yaml":      "id: " + strings.Repeat("x", 5000) + "\ngroups: [{name: g}]",
		"pattern.yaml":   "id: x\ngroups: [{name: g, constraints: [{attribute: a, operator: regexp, value: '" + strings.Repeat("(a{1,900}){1,900}", 100) + "'}]}]",
		"resources.yaml": "id: x\ngroups: [{name: g, resources: {cpu: 1e30, memory: \"1e9999\", disk: \"9999999999999P\"}}]",
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			f, err := Load(name, []byte(text), Options{})
			if err == nil {
				_, err = f.Model()
			}
			if err == nil {
				t.Fatal("accepted")
			}
			checkProblems(t, err)
			if n := len(err.Error()); n > 60_000 {
				t.Errorf("%d bytes of message", n)
			}
		})
	}
}

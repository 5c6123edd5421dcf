package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/tune"
)

// The grammar of rules. A policy has a condition for candidates, up to three entries by which
// victims are ordered, and up to three by which nodes are. WEIGHT is a value of the axis of
// that name. docs/guides/tune-policies.md lists it.
var (
	gaps   = []string{"preemptor.delta", "1", "5", "20", "40"}
	guards = []string{
		"", "victim.age >= duration('1m')", "victim.age >= duration('2m')", "victim.age >= duration('5m')", "victim.age >= duration('10m')",
		"victim.age >= duration('20m')", "victim.evictions < 1", "victim.budgetSlack > 0",
	}
	orders = []string{
		"", "victim.priority", "victim.priority / 5", "victim.priority / 10", "victim.priority / 20",
		"victim.lostWork", "victim.lostWork * victim.share", "victim.age", "-victim.age", "victim.share", "-victim.share",
		"-victim.namespaceShare", "victim.relocation", "!victim.mustLeave",
		"double(victim.priority) + WEIGHT * (victim.lostWork / duration('1h'))",
		"double(victim.priority) + WEIGHT * (victim.lostWork / duration('1h')) * victim.share",
	}
	options = []string{
		"", "option.highestPriority", "option.highestPriority / 10", "option.victims", "option.prioritySum", "option.lostWork", "option.age",
		"-option.rank", "option.budgetViolations", "option.stranded", "option.displacedLostWork",
		"double(option.victims) + WEIGHT * (option.lostWork / duration('1h'))",
	}
	weights = []string{"0.01", "0.03", "0.1", "0.3", "1.0", "3.0", "10.0", "30.0", "100.0"}
)

// rulesSpace returns the space of the grammar. The search starts with rules that resemble
// those of default.
func rulesSpace() *tune.Space {
	axes := []tune.Axis{{Name: "gap", Values: gaps}, {Name: "guard", Values: guards}}
	for i := range 3 {
		axes = append(axes, tune.Axis{Name: fmt.Sprintf("order[%d]", i), Values: orders})
	}
	for i := range 3 {
		axes = append(axes, tune.Axis{Name: fmt.Sprintf("option[%d]", i), Values: options})
	}
	axes = append(axes, tune.Axis{Name: "weight", Values: weights, Ordered: true})
	start := make(tune.Point, len(axes))
	start[2], start[5] = slices.Index(orders, "victim.priority"), slices.Index(options, "option.highestPriority")
	start[6] = slices.Index(options, "option.lostWork")
	start[8] = slices.Index(weights, "1.0")
	return &tune.Space{Axes: axes, Start: start, Render: renderRules}
}

// renderRules returns the rules of a point as they are written on a command line.
func renderRules(p tune.Point) string {
	weight := weights[p[8]]
	var entries []string
	if gap, guard := gaps[p[0]], guards[p[1]]; p[0] > 0 || guard != "" {
		condition := "preemptor.priority - victim.priority >= " + gap
		if guard != "" {
			condition += " && " + guard
		}
		entries = append(entries, "eligible: "+condition)
	}
	list := func(entry string, values []string, at []int) {
		var terms []string
		for _, i := range at {
			if term := strings.ReplaceAll(values[i], "WEIGHT", weight); term != "" && !slices.Contains(terms, term) {
				terms = append(terms, term)
			}
		}
		if len(terms) > 0 {
			entries = append(entries, entry+": ["+strings.Join(terms, ", ")+"]")
		}
	}
	list("order", orders, p[2:5])
	list("option", options, p[5:8])
	if len(entries) == 0 {
		entries = append(entries, "order: [victim.priority]")
	}
	return "rules: " + strings.Join(entries, "; ")
}

package cli

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/sdk/client"
)

// What a priority class may say of whether its work evicts.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// readClasses reads a file of priority classes, strictly, and checks them.
func readClasses(file string, text []byte) ([]*client.PriorityClass, error) {
	ps := &entryProblems{}
	var list []*client.PriorityClass
	seen := map[string]bool{}
	for _, n := range ps.entries(text, entryKind{one: "a priority class", many: "priorityClasses", example: "{name: high, value: 90}"}) {
		c := decodeClass(ps, n)
		if seen[c.Name] && c.Name != "" {
			ps.add(n.Line, "%q is there already; name each class once", c.Name)
		}
		seen[c.Name] = true
		list = append(list, c)
	}
	return list, ps.err(file, "`cede priority-class apply --help` describes the file")
}

// decodeClass reads one class.
func decodeClass(ps *entryProblems, n *yaml.Node) *client.PriorityClass {
	c := &client.PriorityClass{}
	given := ps.fields(n, "a priority class", []entryField{
		{"name", intoText(&c.Name)},
		{"value", intoPriority(&c.Value)},
		{"globalDefault", into(&c.GlobalDefault, "write true or false")},
		{"preemptionPolicy", intoOneOf(&c.PreemptionPolicy, preemptLower, preemptNever)},
		{"description", intoText(&c.Description)},
	})
	if c.Name == "" {
		ps.add(n.Line, "%s", nameMissing)
	}
	if !given["value"] {
		ps.add(n.Line, "value is missing; add a whole number: higher goes first")
	}
	return c
}

// intoPriority reads a priority.
func intoPriority(to *int) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Decode(to) != nil || *to < math.MinInt32 || *to > math.MaxInt32 {
			return "is no priority; write a whole number from -2147483648 to 2147483647"
		}
		return ""
	}
}

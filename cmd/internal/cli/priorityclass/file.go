package priorityclass

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Values of preemptionPolicy in a priority class.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// readClasses reads and validates a file of priority classes. Unknown fields are
// errors.
func readClasses(file string, text []byte) ([]*client.PriorityClass, error) {
	kind := cmdutil.FileKind{Command: "priority-class", Singular: "a priority class", Plural: "priorityClasses", Example: "{name: high, value: 90}"}
	return cmdutil.ReadEntries(file, text, kind, decodeClass, func(c *client.PriorityClass) (name, scope string) { return c.Name, "" })
}

// decodeClass decodes a priority class.
func decodeClass(ps *cmdutil.FileProblems, n *yaml.Node) *client.PriorityClass {
	c := &client.PriorityClass{}
	given := ps.ParseFields(n, []cmdutil.FileField{
		{Name: "name", Read: cmdutil.StringInto(&c.Name)},
		{Name: "value", Read: intoPriority(&c.Value)},
		{Name: "globalDefault", Read: cmdutil.DecodeInto(&c.GlobalDefault, "true or false")},
		{Name: "preemptionPolicy", Read: cmdutil.OneOfInto(&c.PreemptionPolicy, preemptLower, preemptNever)},
		{Name: "description", Read: cmdutil.StringInto(&c.Description)},
	})
	if c.Name == "" {
		ps.Add(n.Line, "%s", cmdutil.NameRequired)
	}
	if !given["value"] {
		ps.Add(n.Line, "value is required: an integer, where higher means more important")
	}
	return c
}

// intoPriority returns a parser of a priority.
func intoPriority(to *int) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Decode(to) != nil || *to < math.MinInt32 || *to > math.MaxInt32 {
			return "expected an integer from -2147483648 to 2147483647"
		}
		return ""
	}
}

package priorityclass

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
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
	var globalDefault string // the first class that is the global default
	decode := func(ps *cmdutil.FileProblems, n *yaml.Node) *client.PriorityClass {
		c := decodeClass(ps, n)
		switch {
		case c.GlobalDefault && globalDefault != "":
			ps.AddField(n, "globalDefault", fieldcheck.Problem{Text: "globalDefault: the global default is already " + globalDefault, Remedy: "omit it here"})
		case c.GlobalDefault:
			globalDefault = c.Name
		}
		return c
	}
	return cmdutil.ReadEntries(file, text, kind, decode, func(c *client.PriorityClass) (name, scope string) { return c.Name, "" })
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
	} else {
		ps.AddField(n, "name", fieldcheck.ClassName(c.Name))
	}
	if given["value"] && c.Value == int(int32(c.Value)) {
		class := model.PriorityClass{
			Name: c.Name, Value: int32(c.Value), GlobalDefault: c.GlobalDefault, NeverPreempts: c.PreemptionPolicy == preemptNever,
		}
		for _, p := range class.Problems() {
			ps.AddField(n, p.Field, fieldcheck.Problem{Text: p.Field + ": " + p.Message, Remedy: p.Remedy})
		}
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

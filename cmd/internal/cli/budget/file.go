package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/sdk/client"
)

// readBudgets reads and validates a file of disruption budgets. Unknown fields are
// errors.
func readBudgets(file string, text []byte) ([]*client.Budget, error) {
	kind := cmdutil.FileKind{
		Command: "budget", Singular: "a disruption budget", Plural: "budgets", Example: "{name: web, labels: {app: web}, minAvailable: 1}",
		UniqueIn: " in a namespace",
	}
	return cmdutil.ReadEntries(file, text, kind, decodeBudget, func(b *client.Budget) (name, scope string) { return b.Name, b.Namespace })
}

// decodeBudget decodes a budget in the format of scenarios.
func decodeBudget(ps *cmdutil.FileProblems, n *yaml.Node) *client.Budget {
	b := &client.Budget{}
	given := ps.ParseFields(n, []cmdutil.FileField{
		{Name: "name", Read: cmdutil.StringInto(&b.Name)},
		{Name: "namespace", Read: cmdutil.StringInto(&b.Namespace)},
		{Name: "labels", Read: cmdutil.DecodeInto(&b.Labels, "a mapping of strings such as {app: web}")},
		{Name: "minAvailable", Read: intoBound(&b.MinAvailable)},
		{Name: "maxUnavailable", Read: intoBound(&b.MaxUnavailable)},
		{Name: "maxEvictions", Read: intoEvictions(&b.MaxEvictions)},
		{Name: "window", Read: intoWindow(&b.Window)},
		{Name: "enforcement", Read: cmdutil.OneOfInto(&b.Enforcement, client.EnforceBestEffort, client.EnforceStrict)},
	})
	if b.Name == "" {
		ps.Add(n.Line, "%s", cmdutil.NameRequired)
	} else {
		ps.AddField(n, "name", fieldcheck.BudgetName("name", b.Name))
	}
	if given["namespace"] && b.Namespace != "" {
		ps.AddField(n, "namespace", fieldcheck.BudgetName("namespace", b.Namespace))
	}
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		ps.AddField(n, "labels", fieldcheck.BudgetLabel(key, b.Labels[key]))
	}
	if !given["labels"] && !given["maxEvictions"] {
		ps.Add(n.Line, "labels are required; use those of the task groups, such as {app: web}")
	}
	if !given["maxEvictions"] && given["minAvailable"] == given["maxUnavailable"] {
		ps.Add(n.Line, "exactly one of minAvailable and maxUnavailable is required")
	}
	if given["maxEvictions"] && (given["minAvailable"] || given["maxUnavailable"]) {
		ps.Add(n.Line, "maxEvictions cannot be combined with other bounds; use two budgets")
	}
	if given["maxEvictions"] != given["window"] {
		ps.Add(n.Line, "maxEvictions and window are required together, such as maxEvictions: 5 and window: 1h")
	}
	return b
}

// intoBound returns a parser of a number or a percentage of the desired count.
func intoBound(to *client.Bound) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		digits, percent := strings.CutSuffix(value.Value, "%")
		n, err := strconv.ParseInt(digits, 10, 32)
		if value.Kind != yaml.ScalarNode || err != nil || n < 0 || percent && n > 100 {
			return `expected a number such as 2, or a percentage from "0%" to "100%"`
		}
		*to = client.Bound(value.Value)
		return ""
	}
}

func intoEvictions(to **int) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		n := 0
		if value.Decode(&n) != nil || n < 0 {
			return "expected the number of evictions per window, such as 5"
		}
		*to = &n
		return ""
	}
}

func intoWindow(to *time.Duration) func(*yaml.Node) string {
	return func(value *yaml.Node) (wrong string) {
		var err error
		if *to, err = time.ParseDuration(value.Value); err != nil || *to <= 0 {
			return "expected a duration such as 1h or 90s"
		}
		return ""
	}
}

// keeps returns the bound of a budget in tables.
func keeps(b *client.Budget) string {
	switch {
	case b.MinAvailable != "":
		return "at least " + string(b.MinAvailable)
	case b.MaxEvictions != nil:
		return fmt.Sprintf("at most %s in %s", cmdutil.Count(*b.MaxEvictions, "eviction", "evictions"), b.Window)
	}
	return "at most " + string(b.MaxUnavailable) + " missing"
}

// selector returns the labels of a budget in tables.
func selector(b *client.Budget) string {
	if len(b.Labels) == 0 {
		return "all of the namespace"
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		list = append(list, key+"="+b.Labels[key])
	}
	return strings.Join(list, ",")
}

// enforcement returns the enforcement of a budget, with its default.
func enforcement(b *client.Budget) string {
	if b.Enforcement == "" && b.MaxEvictions != nil {
		return client.EnforceStrict
	}
	return cmp.Or(b.Enforcement, client.EnforceBestEffort)
}

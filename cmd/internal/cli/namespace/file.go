package namespace

import (
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/sdk/client"
)

// readNamespaces reads and validates a file of namespaces. Unknown fields are errors.
func readNamespaces(file string, text []byte) ([]*client.Namespace, error) {
	kind := cmdutil.FileKind{Command: "namespace", Singular: "a namespace", Plural: "namespaces", Example: "{name: team-a, weight: 3}"}
	return cmdutil.ReadEntries(file, text, kind, decodeNamespace, func(n *client.Namespace) (name, scope string) { return n.Name, "" })
}

// decodeNamespace decodes a namespace.
func decodeNamespace(ps *cmdutil.FileProblems, n *yaml.Node) *client.Namespace {
	space := &client.Namespace{}
	ps.ParseFields(n, []cmdutil.FileField{
		{Name: "name", Read: cmdutil.StringInto(&space.Name)},
		{Name: "weight", Read: intoWeight(&space.Weight)},
		{Name: "description", Read: cmdutil.StringInto(&space.Description)},
	})
	if space.Name == "" {
		ps.Add(n.Line, "%s", cmdutil.NameRequired)
	} else {
		ps.AddField(n, "name", fieldcheck.NamespaceName(space.Name))
	}
	ps.AddField(n, "description", fieldcheck.NamespaceText(space.Description))
	return space
}

// intoWeight returns a parser of a weight.
func intoWeight(to **float64) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		var w float64
		if value.Decode(&w) != nil || fieldcheck.NamespaceWeight(w).Found() {
			return "expected a positive number; omit it for the default"
		}
		*to = &w
		return ""
	}
}

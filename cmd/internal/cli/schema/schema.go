// Package schema holds `cede schema`, which prints the JSON Schemas of the files that users
// write. The readers of the files define them.
package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// kinds lists the kinds of files.
var kinds = []struct {
	name, title, description string
	schema                   func() *jsonschema.Schema
}{
	{"scenario", "Scenario of cede", "A cluster, its workload and the events that follow, for cede sim run.", scenario.Schema},
	{"job", "Job file of cede", "A job in YAML or JSON, for cede job run.", jobspec.Schema},
	{"budget", "Disruption budgets of cede", "One or more budgets, for cede budget apply.", budgets},
	{"policy", "Manifest of a policy", "The file policy.yaml of a policy.", func() *jsonschema.Schema { return bundle.Schema(rules.Schema()) }},
	{"rules", "Rules of a policy", "The field rules of policy.yaml, as a file of its own.", rules.Schema},
	{"config", "Configuration of cede", "The file of cede agent -c.", config.Schema},
}

// budgets returns the schema of a file of budgets: one, a list, or a mapping that holds it.
func budgets() *jsonschema.Schema {
	one := scenario.BudgetSchema()
	list := jsonschema.List(one)
	outer := jsonschema.Object()
	outer.Set("budgets", list)
	outer.Required = []string{"budgets"}
	return jsonschema.AnyOf(one, list, outer)
}

// Names returns the names of the schemas.
func Names() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

// Text returns a schema as indented JSON, or nil if there is none of that name.
func Text(name string) ([]byte, error) {
	for i := range kinds {
		if k := &kinds[i]; k.name == name {
			text, err := json.MarshalIndent(jsonschema.Document(k.title, k.description, k.schema()), "", "  ")
			return append(text, '\n'), err
		}
	}
	return nil, nil
}

// NewCommand returns `cede schema`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema NAME",
		Short: "Print the JSON Schema of a kind of file",
		Long: `Print the JSON Schema (draft 7) of a kind of file: ` + strings.Join(Names(), ", ") + `.
An editor that reads it completes field names and marks mistakes. A file selects its
schema for the YAML language server by the line

  # yaml-language-server: $schema=PATH

A schema describes fields and their types. Rules between fields are checked by the
commands that read the files, such as cede sim run and cede job validate.
No server is contacted.`,
		Example: `  cede schema scenario
  cede schema job > job.schema.json`,
		ValidArgs: Names(),
		Args:      cmdutil.PositionalArgs(1, 1, "the name of a schema: "+cmdutil.JoinOr(Names())),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(Names(), args[0]) {
				return cmdutil.Usagef("use "+cmdutil.JoinOr(Names()), "unknown schema %q", args[0])
			}
			text, err := Text(args[0])
			if err != nil {
				return err
			}
			_, err = env.Stdout.Write(text)
			return cmdutil.WriteError("standard output", err)
		},
	}
}

package namespace

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede namespace` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	namespaces := cmdutil.Resource{
		Command: "namespace", Singular: "namespace", Plural: "namespaces",
		EmptyHint: "`cede namespace apply FILE` creates them",
	}
	return namespaces.Group(&cobra.Command{
		Short: "List, describe and edit namespaces",
		Long: `List, describe and edit namespaces and their weights.

A namespace partitions the names of jobs, bindings and budgets. Its weight is its share
of the cluster relative to the others, which policies such as fair-share read.

Jobs may use a namespace that was not created: it has weight 1, and is listed while it
contains objects.`,
		Example: "  cede namespace list\n  cede namespace apply namespaces.yaml",
	},
		cmdutil.NewListCmd(env, namespaces, cmdutil.ListSpec[*client.Namespace]{
			Short: "List namespaces with their weights",
			Get:   func(api *client.Client) cmdutil.Lister[*client.Namespace] { return api.Namespaces().List },
			Name:  func(n *client.Namespace) string { return n.Name }, Table: namespaceTable,
		}),
		newNamespaceApplyCmd(env), newNamespaceStatusCmd(env, namespaces), newNamespaceDeleteCmd(env, namespaces))
}

func namespaceTable(_ cmdutil.Page, list []*client.Namespace) *term.Table {
	t := cmdutil.NewTable("NAME", "WEIGHT>", "JOBS>", "BINDINGS>", "BUDGETS>", "DESCRIPTION")
	for _, n := range list {
		t.Row(n.Name, weightText(n.Weight), fmt.Sprint(n.Jobs), fmt.Sprint(n.Bindings), fmt.Sprint(n.Budgets), n.Description)
	}
	return t
}

// weightText returns a weight as text. A write without a weight does not change it.
func weightText(w *float64) string {
	if w == nil {
		return "unchanged"
	}
	return fmt.Sprint(*w)
}

// applied is a namespace as it was written.
type applied struct {
	Name        string
	Weight      *float64 `json:",omitempty"` // absent: not changed
	Description string
	Index       uint64
}

func newNamespaceApplyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Create or update namespaces from a file",
		Long: `Create or update namespaces. FILE is YAML or JSON: one namespace, a list of namespaces,
or the namespaces of a scenario:

  - {name: team-a, weight: 3, description: ""}

weight is a positive number. If it is omitted, it remains as it is, and a new namespace
has weight 1. Namespaces that FILE does not contain are not changed.`,
		Example: "  cede namespace apply namespaces.yaml\n  echo '{name: team-a, weight: 3}' | cede namespace apply -",
	}
	return cmdutil.NewApplyCmd(env, cmd, cmdutil.ApplySpec[*client.Namespace, *applied]{
		Read: readNamespaces,
		Put: func(ctx context.Context, c *cmdutil.Connection, n *client.Namespace) (*applied, error) {
			answer, err := c.Client.Namespaces().Put(ctx, n, nil)
			if err != nil {
				return nil, err
			}
			return &applied{n.Name, n.Weight, n.Description, answer.Index}, nil
		},
		Name: func(n *applied) string { return n.Name },
		Table: func(_ cmdutil.Page, list []*applied) *term.Table {
			t := cmdutil.NewTable("NAME", "WEIGHT>", "DESCRIPTION")
			for _, n := range list {
				t.Row(n.Name, weightText(n.Weight), n.Description)
			}
			return t
		},
	})
}

func newNamespaceStatusCmd(env *cmdutil.Env, namespaces cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{Use: "status NAME", Short: "Describe a namespace", Example: "  cede namespace status team-a"}
	return namespaces.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, name string) (cmdutil.Document, error) {
		n, _, err := c.Client.Namespaces().Get(ctx, name, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: n, Names: []string{n.Name}, Page: func(p cmdutil.Page) {
			p.Properties("name", n.Name, "weight", weightText(n.Weight), "description", n.Description, "created", cmdutil.YesNo(n.CreateIndex != 0),
				"jobs", fmt.Sprint(n.Jobs), "bindings", fmt.Sprint(n.Bindings), "budgets", fmt.Sprint(n.Budgets))
		}}, nil
	})
}

func newNamespaceDeleteCmd(env *cmdutil.Env, namespaces cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Delete an empty namespace",
		Long: `Delete a namespace. A namespace that contains a job, a binding, a budget or a token is
not deleted, and neither is the namespace default.`,
		Example: "  cede namespace delete team-a",
	}
	return namespaces.DeleteCommand(env, cmd, func(ctx context.Context, api *client.Client, name string) (*client.IndexResponse, error) {
		return api.Namespaces().Delete(ctx, name, nil)
	})
}

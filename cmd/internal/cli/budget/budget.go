package budget

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede budget` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	budgets := cmdutil.Resource{
		Command: "budget", Singular: "disruption budget", Plural: "disruption budgets",
		EmptyHint: "`cede budget apply FILE` creates them", Namespaced: true,
	}
	return budgets.Group(&cobra.Command{
		Short: "List, describe and edit disruption budgets",
		Long: `List, describe and edit disruption budgets, which limit how many allocations may be
evicted.

A budget selects the allocations of a namespace whose task groups have its labels. A
strict budget is never exceeded. A bestEffort budget is exceeded only if no other
allocations can be evicted. cede help budgets describes the fields.`,
		Example: "  cede budget list\n  cede budget apply budgets.yaml\n  cede budget status web",
	},
		cmdutil.NewListCmd(env, budgets, cmdutil.ListSpec[*client.BudgetStub]{
			Short: "List disruption budgets and their status",
			Get:   func(api *client.Client) cmdutil.Lister[*client.BudgetStub] { return api.Budgets().List },
			Name:  func(b *client.BudgetStub) string { return b.Name },
			Table: budgetStatusTable,
		}),
		newBudgetApplyCmd(env), newBudgetStatusCmd(env, budgets), newBudgetDeleteCmd(env, budgets))
}

// budgetStatusTable lists budgets with their status.
func budgetStatusTable(_ cmdutil.Page, list []*client.BudgetStub) *term.Table {
	t := cmdutil.NewTable("NAME", "NAMESPACE", "LABELS", "KEEPS", "ENFORCEMENT", "HEALTHY>", "NEEDED>", "ALLOWED>")
	for _, b := range list {
		t.Row(b.Name, b.Namespace, selector(&b.Budget), keeps(&b.Budget), b.Enforcement, fmt.Sprint(b.Healthy), fmt.Sprint(b.Needed), fmt.Sprint(b.Allowed))
	}
	return t
}

func newBudgetApplyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Create or update disruption budgets from a file",
		Long: `Create or update disruption budgets. FILE is YAML or JSON: one budget, a list of
budgets, or the budgets of a scenario:

  - {name: web, namespace: default, labels: {app: web}, minAvailable: 2,
     enforcement: strict}

Instead of minAvailable, the number of instances that must remain, a budget can have
maxUnavailable, the number that may be missing. Either is a number, or a percentage
of the desired instances such as "50%", rounded up. enforcement is bestEffort (the
default) or strict.

A budget can also limit the evictions in any window of time, regardless of how many
instances remain. Without labels it applies to the whole namespace, and enforcement
is strict by default:

  - {name: slowly, namespace: default, maxEvictions: 5, window: 1h}

The default namespace is that of --namespace. Budgets that FILE does not contain are not
changed.`,
		Example: "  cede budget apply budgets.yaml\n  echo '{name: web, labels: {app: web}, minAvailable: 1}' | cede budget apply -",
	}
	return cmdutil.NewApplyCmd(env, cmd, cmdutil.ApplySpec[*client.Budget, *client.Budget]{
		Read: readBudgets,
		Put: func(ctx context.Context, c *cmdutil.Connection, b *client.Budget) (*client.Budget, error) {
			b.Namespace = c.ResolveNamespace(b.Namespace)
			_, err := c.Client.Budgets().Put(ctx, b, nil)
			return b, err
		},
		Name:  func(b *client.Budget) string { return b.Name },
		Table: budgetTable,
	})
}

func budgetTable(_ cmdutil.Page, list []*client.Budget) *term.Table {
	t := cmdutil.NewTable("NAME", "NAMESPACE", "LABELS", "KEEPS", "ENFORCEMENT")
	for _, b := range list {
		t.Row(b.Name, b.Namespace, selector(b), keeps(b), enforcement(b))
	}
	return t
}

func newBudgetStatusCmd(env *cmdutil.Env, budgets cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a disruption budget and its allocations",
		Long: `Describe a disruption budget: how many of its allocations are healthy, how many may be
evicted now, and which allocations it selects.`,
		Example: "  cede budget status web",
	}
	return budgets.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, name string) (cmdutil.Document, error) {
		found, err := findBudget(ctx, c, budgets, name)
		if err != nil {
			return cmdutil.Document{}, err
		}
		b, _, err := c.Client.Budgets().Get(ctx, found.Name, &client.QueryOptions{Namespace: found.Namespace})
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: b, Names: []string{b.Name}, Page: func(p cmdutil.Page) { budgetPage(p, env, b) }}, nil
	})
}

func budgetPage(p cmdutil.Page, env *cmdutil.Env, b *client.BudgetStatus) {
	p.Properties(
		"name", b.Name, "namespace", b.Namespace, "labels", selector(&b.Budget), "keeps", keeps(&b.Budget), "enforcement", b.Enforcement,
		"healthy", fmt.Sprint(b.Healthy), "needed", fmt.Sprint(b.Needed), "may be evicted", fmt.Sprint(b.Allowed),
	)
	if b.MaxEvictions != nil {
		p.Properties("recent evictions", fmt.Sprint(b.Evicted))
	}
	if len(b.Allocations) == 0 {
		p.Printf("\nThe budget selects no allocations\n")
		return
	}
	p.Title("Allocations")
	apiview.AllocTable(p, env, b.Allocations, false)
}

// findBudget returns the budget with this name, or the only one whose name has it as
// a prefix.
func findBudget(ctx context.Context, c *cmdutil.Connection, budgets cmdutil.Resource, name string) (*client.BudgetStub, error) {
	list, err := cmdutil.ListAll(ctx, &client.QueryOptions{Prefix: name}, c.Client.Budgets().List)
	if err != nil {
		return nil, err
	}
	if exact := slices.DeleteFunc(slices.Clone(list), func(b *client.BudgetStub) bool { return b.Name != name }); len(exact) > 0 {
		list = exact
	}
	switch len(list) {
	case 0:
		return nil, budgets.NotFound(name, nil)
	case 1:
		return list[0], nil
	}
	return nil, cmdutil.Ambiguous(budgets.Singular, name, cmdutil.NamesOf(list, func(b *client.BudgetStub) string { return b.Namespace + "/" + b.Name }))
}

func newBudgetDeleteCmd(env *cmdutil.Env, budgets cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a disruption budget",
		Long:    `Delete a disruption budget. It no longer limits evictions; allocations are not affected.`,
		Example: "  cede budget delete web",
	}
	return budgets.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, name string) (cmdutil.Document, error) {
		b, err := findBudget(ctx, c, budgets, name)
		if err != nil {
			return cmdutil.Document{}, err
		}
		answer, err := c.Client.Budgets().Delete(ctx, b.Name, &client.WriteOptions{Namespace: b.Namespace})
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.MessageDocument(struct {
			Name, Namespace string
			Index           uint64
		}{b.Name, b.Namespace, answer.Index}, b.Name, "Budget %s of namespace %s is deleted", b.Name, b.Namespace), nil
	})
}

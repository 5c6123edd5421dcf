package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newBudgetCmd(env *Env) *cobra.Command {
	budgets := noun{
		command: "budget", one: "disruption budget", many: "disruption budgets",
		origin: "`cede budget apply FILE` makes them", spaced: true,
	}
	return budgets.holder(&cobra.Command{
		Short: "Say how many allocations evictions must leave: disruption budgets",
		Long: `Say how many allocations evictions must leave: disruption budgets.

A budget is about the allocations of a namespace whose groups have its labels. A
strict one is never overrun; one that is kept as well as can be (bestEffort) is
where nobody else can be evicted.
` + "`cede help budgets`" + ` tells more.`,
		Example: "  cede budget list\n  cede budget apply budgets.yaml\n  cede budget status web",
	},
		listCmd(env, budgets, listVerb[*client.BudgetStub]{
			short: "List disruption budgets and how they stand",
			get:   func(api *client.Client) lister[*client.BudgetStub] { return api.Budgets().List },
			name:  func(b *client.BudgetStub) string { return b.Name },
			table: standingTable,
		}),
		newBudgetApplyCmd(env), newBudgetStatusCmd(env, budgets), newBudgetDeleteCmd(env, budgets))
}

// standingTable lists budgets with how they stand.
func standingTable(_ page, list []*client.BudgetStub) *term.Table {
	t := columns("NAME", "NAMESPACE", "LABELS", "KEEPS", "ENFORCEMENT", "HEALTHY>", "NEEDED>", "ALLOWED>")
	for _, b := range list {
		t.Row(b.Name, b.Namespace, selector(&b.Budget), keeps(&b.Budget), b.Enforcement, fmt.Sprint(b.Healthy), fmt.Sprint(b.Needed), fmt.Sprint(b.Allowed))
	}
	return t
}

func newBudgetApplyCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Make or change disruption budgets",
		Long: `Make or change disruption budgets. FILE is YAML or JSON: one budget, a list of
them, or a scenario's budgets:

  - {name: web, namespace: default, labels: {app: web}, minAvailable: 2,
     enforcement: strict}

In place of minAvailable, how many stay, a budget may have maxUnavailable, how
many may be missing. Either is a number, or a share of the instances that are
wanted, such as "50%", rounded up. enforcement is bestEffort (when absent) or
strict.

Or it bounds how many are evicted in any window of time, however many are left;
without labels that is about all of a namespace, and enforcement is strict when
absent:

  - {name: slowly, namespace: default, maxEvictions: 5, window: 1h}

Where there is no namespace it is that of --namespace.`,
		Example: "  cede budget apply budgets.yaml\n  echo '{name: web, labels: {app: web}, minAvailable: 1}' | cede budget apply -",
	}
	return applyCmd(env, cmd, applyVerb[*client.Budget, *client.Budget]{
		read: readBudgets,
		put: func(ctx context.Context, c *connection, b *client.Budget) (*client.Budget, error) {
			b.Namespace = c.namespaceOf(b.Namespace)
			_, err := c.client.Budgets().Put(ctx, b, nil)
			return b, err
		},
		name:  func(b *client.Budget) string { return b.Name },
		table: budgetTable,
	})
}

func budgetTable(_ page, list []*client.Budget) *term.Table {
	t := columns("NAME", "NAMESPACE", "LABELS", "KEEPS", "ENFORCEMENT")
	for _, b := range list {
		t.Row(b.Name, b.Namespace, selector(b), keeps(b), enforcement(b))
	}
	return t
}

func newBudgetStatusCmd(env *Env, budgets noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a disruption budget: how many are healthy, how many may be evicted, and who counts",
		Example: "  cede budget status web",
	}
	return budgets.verb(env, cmd, func(ctx context.Context, c *connection, name string) (document, error) {
		found, err := c.findBudget(ctx, budgets, name)
		if err != nil {
			return document{}, err
		}
		b, _, err := c.client.Budgets().Get(ctx, found.Name, &client.QueryOptions{Namespace: found.Namespace})
		if err != nil {
			return document{}, err
		}
		return document{data: b, names: []string{b.Name}, page: func(p page) { p.budget(env, b) }}, nil
	})
}

func (p page) budget(env *Env, b *client.BudgetStatus) {
	p.facts(
		"name", b.Name, "namespace", b.Namespace, "labels", selector(&b.Budget), "keeps", keeps(&b.Budget), "enforcement", b.Enforcement,
		"healthy", fmt.Sprint(b.Healthy), "needed", fmt.Sprint(b.Needed), "may be evicted", fmt.Sprint(b.Allowed),
	)
	if b.MaxEvictions != nil {
		p.facts("evicted lately", fmt.Sprint(b.Evicted))
	}
	if len(b.Allocations) == 0 {
		p.printf("\nNo allocation is under it: it protects nothing\n")
		return
	}
	p.title("Allocations")
	p.allocTable(env, b.Allocations, false)
}

// findBudget is the budget of a name, or the only one whose name begins so.
func (c *connection) findBudget(ctx context.Context, budgets noun, name string) (*client.BudgetStub, error) {
	list, err := all(ctx, &client.QueryOptions{Prefix: name}, c.client.Budgets().List)
	if err != nil {
		return nil, err
	}
	if exact := slices.DeleteFunc(slices.Clone(list), func(b *client.BudgetStub) bool { return b.Name != name }); len(exact) > 0 {
		list = exact
	}
	switch len(list) {
	case 0:
		return nil, budgets.none(name, nil)
	case 1:
		return list[0], nil
	}
	return nil, ambiguous(budgets.one, name, namesOf(list, func(b *client.BudgetStub) string { return b.Namespace + "/" + b.Name }))
}

func newBudgetDeleteCmd(env *Env, budgets noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a disruption budget: nothing is held back by it any more",
		Example: "  cede budget delete web",
	}
	return budgets.verb(env, cmd, func(ctx context.Context, c *connection, name string) (document, error) {
		b, err := c.findBudget(ctx, budgets, name)
		if err != nil {
			return document{}, err
		}
		answer, err := c.client.Budgets().Delete(ctx, b.Name, &client.WriteOptions{Namespace: b.Namespace})
		if err != nil {
			return document{}, err
		}
		return said(struct {
			Name, Namespace string
			Index           uint64
		}{b.Name, b.Namespace, answer.Index}, b.Name, "Budget %s of namespace %s is deleted", b.Name, b.Namespace), nil
	})
}

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPriorityClassCmd(env *Env) *cobra.Command {
	classes := noun{
		command: "priority-class", one: "priority class", many: "priority classes",
		origin: "`cede priority-class apply FILE` makes them",
	}
	return classes.holder(&cobra.Command{
		Short: "Name priorities: list them, make, change and delete them",
		Long: `Name priorities: list them, make, change and delete them.

A job names one in place of a number: priority_class = "high".`,
		Example: "  cede priority-class list\n  cede priority-class apply classes.yaml",
	},
		listCmd(env, classes, listVerb[*client.PriorityClass]{
			short: "List priority classes, the highest first",
			get:   func(api *client.Client) lister[*client.PriorityClass] { return api.PriorityClasses().List },
			order: func(a, b *client.PriorityClass) int { return b.Value - a.Value },
			name:  className, table: classTable,
		}),
		newPriorityClassApplyCmd(env), newPriorityClassStatusCmd(env, classes), newPriorityClassDeleteCmd(env, classes))
}

func className(c *client.PriorityClass) string { return c.Name }

func classTable(_ page, list []*client.PriorityClass) *term.Table {
	t := columns("NAME", "VALUE>", "DEFAULT", "PREEMPTION", "DESCRIPTION")
	for _, c := range list {
		t.Row(c.Name, fmt.Sprint(c.Value), yes(c.GlobalDefault), preemptionOf(c), c.Description)
	}
	return t
}

func preemptionOf(c *client.PriorityClass) string {
	if c.PreemptionPolicy == "" {
		return preemptLower
	}
	return c.PreemptionPolicy
}

func newPriorityClassApplyCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Make or change priority classes",
		Long: `Make or change priority classes. FILE is YAML or JSON: one class, a list of them,
or a scenario's priorityClasses:

  - {name: high, value: 1000, globalDefault: false,
     preemptionPolicy: PreemptLowerPriority, description: ""}

preemptionPolicy is PreemptLowerPriority (when absent) or Never.`,
		Example: "  cede priority-class apply classes.yaml\n  echo '{name: high, value: 90}' | cede priority-class apply -",
	}
	return applyCmd(env, cmd, applyVerb[*client.PriorityClass, *client.PriorityClass]{
		read: readClasses,
		put: func(ctx context.Context, c *connection, class *client.PriorityClass) (*client.PriorityClass, error) {
			_, err := c.client.PriorityClasses().Put(ctx, class)
			return class, err
		},
		name: className, table: classTable,
	})
}

func newPriorityClassStatusCmd(env *Env, classes noun) *cobra.Command {
	cmd := &cobra.Command{Use: "status NAME", Short: "Describe a priority class", Example: "  cede priority-class status high"}
	return classes.verb(env, cmd, func(ctx context.Context, c *connection, name string) (document, error) {
		class, _, err := c.client.PriorityClasses().Get(ctx, name, c.query())
		if err != nil {
			return document{}, err
		}
		return document{data: class, names: []string{class.Name}, page: func(p page) {
			p.facts("name", class.Name, "value", fmt.Sprint(class.Value), "default", yes(class.GlobalDefault),
				"preemption", preemptionOf(class), "description", class.Description)
		}}, nil
	})
}

func newPriorityClassDeleteCmd(env *Env, classes noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a priority class; jobs keep the priority that it gave them",
		Example: "  cede priority-class delete high",
	}
	return classes.verb(env, cmd, func(ctx context.Context, c *connection, name string) (document, error) {
		answer, err := c.client.PriorityClasses().Delete(ctx, name)
		if err != nil {
			return document{}, err
		}
		return said(struct {
			Name  string
			Index uint64
		}{name, answer.Index}, name, "Priority class %s is deleted", name), nil
	})
}

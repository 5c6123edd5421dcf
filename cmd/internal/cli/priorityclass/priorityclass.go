package priorityclass

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede priority-class` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	classes := cmdutil.Resource{
		Command: "priority-class", Singular: "priority class", Plural: "priority classes",
		EmptyHint: "`cede priority-class apply FILE` creates them",
	}
	return classes.Group(&cobra.Command{
		Short: "List, describe and edit priority classes",
		Long: `List, describe and edit priority classes.

A job names a class instead of a number: priority_class = "high".`,
		Example: "  cede priority-class list\n  cede priority-class apply classes.yaml",
	},
		cmdutil.NewListCmd(env, classes, cmdutil.ListSpec[*client.PriorityClass]{
			Short: "List priority classes, highest first",
			Get:   func(api *client.Client) cmdutil.Lister[*client.PriorityClass] { return api.PriorityClasses().List },
			Order: func(a, b *client.PriorityClass) int { return b.Value - a.Value },
			Name:  className, Table: classTable,
		}),
		newPriorityClassApplyCmd(env), newPriorityClassStatusCmd(env, classes), newPriorityClassDeleteCmd(env, classes))
}

func className(c *client.PriorityClass) string { return c.Name }

func classTable(_ cmdutil.Page, list []*client.PriorityClass) *term.Table {
	t := cmdutil.NewTable("NAME", "VALUE>", "DEFAULT", "PREEMPTION", "DESCRIPTION")
	for _, c := range list {
		t.Row(c.Name, fmt.Sprint(c.Value), cmdutil.YesNo(c.GlobalDefault), preemptionOf(c), c.Description)
	}
	return t
}

func preemptionOf(c *client.PriorityClass) string {
	if c.PreemptionPolicy == "" {
		return preemptLower
	}
	return c.PreemptionPolicy
}

func newPriorityClassApplyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Create or update priority classes from a file",
		Long: `Create or update priority classes. FILE is YAML or JSON: one class, a list of classes, or
the priorityClasses of a scenario:

  - {name: high, value: 1000, globalDefault: false,
     preemptionPolicy: PreemptLowerPriority, description: ""}

preemptionPolicy is PreemptLowerPriority (the default) or Never. Jobs that are registered
keep their priority, and classes that FILE does not contain are not changed.`,
		Example: "  cede priority-class apply classes.yaml\n  echo '{name: high, value: 90}' | cede priority-class apply -",
	}
	return cmdutil.NewApplyCmd(env, cmd, cmdutil.ApplySpec[*client.PriorityClass, *client.PriorityClass]{
		Read: readClasses,
		Put: func(ctx context.Context, c *cmdutil.Connection, class *client.PriorityClass) (*client.PriorityClass, error) {
			_, err := c.Client.PriorityClasses().Put(ctx, class)
			return class, err
		},
		Name: className, Table: classTable,
	})
}

func newPriorityClassStatusCmd(env *cmdutil.Env, classes cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{Use: "status NAME", Short: "Describe a priority class", Example: "  cede priority-class status high"}
	return classes.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, name string) (cmdutil.Document, error) {
		class, _, err := c.Client.PriorityClasses().Get(ctx, name, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: class, Names: []string{class.Name}, Page: func(p cmdutil.Page) {
			p.Properties("name", class.Name, "value", fmt.Sprint(class.Value), "default", cmdutil.YesNo(class.GlobalDefault),
				"preemption", preemptionOf(class), "description", class.Description)
		}}, nil
	})
}

func newPriorityClassDeleteCmd(env *cmdutil.Env, classes cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Short:   "Delete a priority class",
		Long:    `Delete a priority class. Jobs that were registered with it keep their priority.`,
		Example: "  cede priority-class delete high",
	}
	return classes.DeleteCommand(env, cmd, func(ctx context.Context, api *client.Client, name string) (*client.IndexResponse, error) {
		return api.PriorityClasses().Delete(ctx, name)
	})
}

package node

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newNodeRiskCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "risk ID",
		Short: "Show the allocations to be evicted next on a node",
		Long: `Show the allocations that would be evicted next on a node, for jobs of rising priority.

The server makes the decision about a hypothetical job that runs only there and needs one
unit more than is free, with the policies in force, at every priority at which the result
can change. Nothing is evicted. A job that needs more evicts more.`,
		Example: "  cede node risk n1\n  cede node risk n1 -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one node"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		api, err := c.Dial()
		if err != nil {
			return cmdutil.Document{}, err
		}
		risk, _, err := api.Nodes().Risk(ctx, args[0], c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, cmdutil.ReplaceNotFound(cmdutil.InterruptError(ctx, err), "node", args[0], "`cede node list` lists them")
		}
		var names []string
		for _, l := range risk.Levels {
			for _, v := range l.Victims {
				names = append(names, v.AllocID)
			}
		}
		return cmdutil.Document{Data: risk, Names: names, Page: func(p cmdutil.Page) { showRisk(p, risk) }}, nil
	})
}

func showRisk(p cmdutil.Page, risk *client.NodeRisk) {
	if risk.Reason != "" {
		p.Printf("Nothing would be evicted on %s: %s\n", p.ID(risk.NodeID), risk.Reason)
		return
	}
	p.Printf("A job that requests %s of %s on %s evicts:\n", cmdutil.Thousands(int(risk.Amount))+" "+model.UnitOf(risk.Amount, risk.Resource), risk.Resource, p.ID(risk.NodeID))
	t := cmdutil.NewTable("PRIORITY>", "ALLOC ID", "NAME", "NODE", "ITS PRIORITY>")
	for _, l := range risk.Levels {
		from := fmt.Sprintf("from %d", l.From)
		if len(l.Victims) == 0 {
			t.Row(from, "-", "nothing", "-", "-")
		}
		for _, v := range l.Victims {
			t.Row(from, p.ID(v.AllocID), v.Name, p.ID(v.NodeID), fmt.Sprint(v.Priority))
			from = ""
		}
	}
	p.Table(t)
}

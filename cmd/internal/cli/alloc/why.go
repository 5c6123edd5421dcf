package alloc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newAllocWhyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain why an allocation was evicted, or evicted others",
		Long: `Explain the decisions in which an allocation was evicted or was placed by evictions:
which job needed the capacity, which options were compared, and what the policy and
the rules of cede decided about each candidate. The newest decision comes first.

The reasons are those recorded with the decision, and nothing is evaluated again. They
are available on every server as long as its history reaches back. After the allocation
was garbage-collected, its full ID is required.

Verdicts: evicted; unneeded (the policy listed it after the victims that sufficed);
reprieved (the policy selected it, and the group fits without it); spared (the policy
excluded it); shielded (a strict disruption budget or its all-or-none job protects it).`,
		Example: "  cede alloc why 9d21\n  cede alloc why 9d21 -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		api, err := c.Dial()
		if err != nil {
			return cmdutil.Document{}, err
		}
		list, _, err := api.Allocations().Decisions(ctx, args[0], c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, cmdutil.ReplaceNotFound(cmdutil.InterruptError(ctx, err), "allocation", args[0], "`cede alloc list --all` lists them")
		}
		names := cmdutil.NamesOf(list, func(d *client.Decision) string { return d.AllocID })
		return cmdutil.Document{Data: list, Names: names, Page: func(p cmdutil.Page) {
			if len(list) == 0 {
				p.Printf("No recorded decision evicted this allocation, or others for it\n")
			}
			for i, d := range list {
				if i > 0 {
					p.Printf("\n")
				}
				apiview.ExplainDecision(p, env, d)
			}
		}}, nil
	})
}

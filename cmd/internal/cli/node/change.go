package node

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newNodeDrainCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "Drain a node, or end its drain",
		Long: `Drain a node: it becomes ineligible, and its allocations are migrated to other nodes.
With --off the drain ends; the node remains ineligible until cede node eligibility
changes that, or becomes eligible at once with --eligible.

The command does not wait until the allocations have moved.`,
		Example: "  cede node drain n1\n  cede node drain n1 --off --eligible",
		Args:    cmdutil.PositionalArgs(1, 1, "one node"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	off := cmd.Flags().Bool("off", false, "end the drain")
	eligible := cmd.Flags().Bool("eligible", false, "with --off: make the node eligible")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if *eligible && !*off {
			return cmdutil.Usagef("add --off, or remove --eligible", "--eligible requires --off: a draining node is ineligible")
		}
		return changeNode(conn, cmd, out, args[0], func(api *client.Client, id string) (*client.NodeUpdateResponse, string, error) {
			answer, err := api.Nodes().Drain(cmd.Context(), id, !*off, *eligible)
			if err == nil && !*off {
				apiview.WarnPaused(cmd.Context(), conn)
			}
			switch {
			case !*off:
				return answer, "is draining: its allocations are migrated", err
			case *eligible:
				return answer, "is no longer draining, and is eligible", err
			}
			return answer, "is no longer draining; `cede node eligibility " + id + " --on` makes it eligible", err
		})
	}
	return cmd
}

func newNodeEligibilityCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eligibility ID",
		Short: "Make a node eligible or ineligible",
		Long: `Make a node eligible or ineligible for new allocations. Allocations that run on it are
not affected; cede node drain migrates them.`,
		Example: "  cede node eligibility n1 --off\n  cede node eligibility n1 --on",
		Args:    cmdutil.PositionalArgs(1, 1, "one node"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	on := cmd.Flags().Bool("on", false, "make the node eligible")
	off := cmd.Flags().Bool("off", false, "make the node ineligible")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if *on == *off {
			return cmdutil.Usagef("add --on or --off", "missing --on or --off for node %s", args[0])
		}
		return changeNode(conn, cmd, out, args[0], func(api *client.Client, id string) (*client.NodeUpdateResponse, string, error) {
			answer, err := api.Nodes().Eligibility(cmd.Context(), id, *on)
			if *on {
				return answer, "is eligible", err
			}
			return answer, "is ineligible; allocations that run on it are not affected", err
		})
	}
	return cmd
}

// changeNode finds a node and changes it; change returns the updated node and a
// description of the result.
func changeNode(c *cmdutil.Connection, cmd *cobra.Command, out *cmdutil.Output, id string, change func(*client.Client, string) (*client.NodeUpdateResponse, string, error)) error {
	ctx := cmd.Context()
	n, err := apiview.FindNode(ctx, c, id)
	if err != nil {
		return err
	}
	answer, became, err := change(c.Client, n.ID)
	if err != nil {
		return cmdutil.InterruptError(ctx, err)
	}
	v := struct {
		NodeID string
		*client.NodeUpdateResponse
	}{n.ID, answer}
	return out.Show(cmdutil.Document{Data: v, Names: []string{n.ID}, Page: func(p cmdutil.Page) { p.Printf("Node %s %s\n", n.ID, became) }})
}

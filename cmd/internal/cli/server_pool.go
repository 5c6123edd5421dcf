package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newServerJoinCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "join ADDRESS...", Short: "Have a server join a pool",
		Long: `Have the server that --addr names join the pool of the servers that gossip at
these addresses; one that answers suffices. server.join in its configuration does
the same at every start.`,
		Example: "  cede server join 10.0.0.1:4648",
		Args:    arguments(1, 16, "addresses, HOST:PORT"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		r, err := c.client.Operator().Join(ctx, args...)
		if err != nil {
			return document{}, err
		}
		return document{data: r, names: []string{fmt.Sprint(r.Joined)}, page: func(p page) {
			p.printf("Joined through %d of %d addresses\n", r.Joined, len(args))
		}}, nil
	})
}

func newServerLeaveCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "leave", Short: "Have a server leave the pool for good, and stop",
		Long: `Have the server that --addr names hand its leadership over, leave replication and
the pool, and stop. To stop a server that is to come back, stop its process: it keeps
its place.`,
		Example: "  cede server leave --addr http://10.0.0.3:4646",
		Args:    arguments(0, 0, "no arguments"),
	}
	conn := serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := conn.dial()
		if err != nil {
			return err
		}
		return interruptedBy(cmd.Context(), api.Operator().Leave(cmd.Context()))
	}
	return cmd
}

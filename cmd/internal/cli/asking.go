package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// asking makes cmd a command that asks a server and shows what answer makes of
// that; the connection that answer gets has its client. Flags of the command's own
// are read in answer.
func asking(env *Env, cmd *cobra.Command, answer func(ctx context.Context, c *connection, args []string) (document, error)) *cobra.Command {
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		if _, err := conn.dial(); err != nil {
			return err
		}
		d, err := answer(cmd.Context(), conn, args)
		if err != nil {
			return interruptedBy(cmd.Context(), err)
		}
		return out.show(d)
	}
	return cmd
}

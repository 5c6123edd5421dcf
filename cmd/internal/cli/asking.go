package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// asking makes cmd a command that asks a server and shows what answer makes of
// that; the connection that answer gets has its client. Flags of the command's own
// are read in answer.
func asking(env *Env, cmd *cobra.Command, answer func(ctx context.Context, c *connection, args []string) (document, error)) *cobra.Command {
	return askingOnce(env, cmd, nil, answer)
}

// askingOnce is asking for what cannot be asked again, as a secret is shown once: a
// template is tried on a sample of the document before anything is done.
func askingOnce(env *Env, cmd *cobra.Command, sample func(c *connection) any, answer func(ctx context.Context, c *connection, args []string) (document, error)) *cobra.Command {
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		if out.template != nil && sample != nil {
			if err := executeTemplate(io.Discard, out.template, sample(conn)); err != nil {
				return err
			}
		}
		if _, err := conn.dial(); err != nil {
			return err
		}
		d, err := answer(cmd.Context(), conn, args)
		if spaced(cmd) && out.isRead() {
			defer conn.doubtNamespace(cmd.Context(), d, err)
		}
		if err != nil {
			return interruptedBy(cmd.Context(), err)
		}
		return out.show(d)
	}
	return cmd
}

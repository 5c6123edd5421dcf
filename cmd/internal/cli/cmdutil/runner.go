package cmdutil

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// ServerCommand makes cmd a command that sends requests to a server and prints the
// document that answer returns. The connection that answer receives has its client.
func ServerCommand(env *Env, cmd *cobra.Command, answer func(ctx context.Context, c *Connection, args []string) (Document, error)) *cobra.Command {
	return OneTimeCommand(env, cmd, nil, answer)
}

// OneTimeCommand is ServerCommand for results that cannot be requested again, such as
// secrets: a template is tested on a sample of the document first.
func OneTimeCommand(env *Env, cmd *cobra.Command, sample func(c *Connection) any, answer func(ctx context.Context, c *Connection, args []string) (Document, error)) *cobra.Command {
	out, conn := OutputFlags(cmd, env), ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if out.template != nil && sample != nil {
			if err := ExecuteTemplate(io.Discard, out.template, sample(conn)); err != nil {
				return err
			}
		}
		if _, err := conn.Dial(); err != nil {
			return err
		}
		d, err := answer(cmd.Context(), conn, args)
		if isNamespaced(cmd) && out.IsHumanReadable() {
			defer conn.warnEmptyNamespace(cmd.Context(), d, err)
		}
		if err != nil {
			return InterruptError(cmd.Context(), err)
		}
		return out.Show(d)
	}
	return cmd
}

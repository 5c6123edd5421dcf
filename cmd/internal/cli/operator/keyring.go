package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newOperatorKeyringCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keyring",
		Short: "Rotate the keys that encrypt gossip",
		Long: `Rotate the keys that encrypt gossip, on all servers at once. A rotation has three
steps, each of which must succeed on every server before the next: install the new
key, use it, remove the old key.

The change does not survive a restart: write the keys into gossip.keys of the
configuration of every server as well.`,
		Example: `  openssl rand -base64 32 > new.key
  cede operator keyring install new.key
  cede operator keyring use new.key
  cede operator keyring remove old.key
  cede operator keyring list`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		keyringCmd(env, "list", "List the keys, as digests", func(ctx context.Context, o client.Operator, _ string) (*client.KeyringResponse, error) {
			return o.Keyring(ctx)
		}),
		keyringCmd(env, "install", "Add a key for decryption on every server", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyInstall(ctx, key)
		}),
		keyringCmd(env, "use", "Select an installed key for encryption", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyUse(ctx, key)
		}),
		keyringCmd(env, "remove", "Remove a key that is not used for encryption", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyRemove(ctx, key)
		}),
	)
	return cmd
}

func keyringCmd(env *cmdutil.Env, verb, short string, do func(context.Context, client.Operator, string) (*client.KeyringResponse, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " FILE", Short: short, Args: cmdutil.PositionalArgs(1, 1, "one file that holds the key, base64"), Example: "  cede operator keyring " + verb + " new.key"}
	if verb == "list" {
		cmd.Use, cmd.Args, cmd.Example = verb, cmdutil.PositionalArgs(0, 0, "no arguments"), "  cede operator keyring list"
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		key := ""
		if len(args) > 0 {
			text, err := env.ReadSecret(args[0])
			if err != nil {
				return err
			}
			key = text
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), api.Operator(), key)
		if err != nil {
			return cmdutil.InterruptError(cmd.Context(), err)
		}
		return keyringShown(out, r)
	}
	return cmd
}

// keyringShown prints the response of every server. It returns an error if a server
// failed.
func keyringShown(out *cmdutil.Output, r *client.KeyringResponse) error {
	failed := 0
	for _, s := range r.Servers {
		if s.Error != "" {
			failed++
		}
	}
	err := out.Show(cmdutil.Document{Data: r, Names: cmdutil.NamesOf(r.Servers, func(s *client.ServerKeys) string { return s.Server }), Page: func(p cmdutil.Page) {
		t := cmdutil.NewTable("SERVER", "KEYS", "ERROR")
		for _, s := range r.Servers {
			t.Row(s.Server, strings.Join(s.Keys, " "), s.Error)
		}
		p.Table(t)
	}})
	if err == nil && failed > 0 {
		return &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("%d of %s failed to apply the change", failed, cmdutil.Count(len(r.Servers), "server", "servers")), Hint: "repeat the command until all servers succeed, before the next step"}
	}
	return err
}

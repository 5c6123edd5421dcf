package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newOperatorKeyringCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keyring",
		Short: "Change the keys that the servers' gossip is sealed with",
		Long: `Change the keys that the servers' gossip is sealed with, on all servers at once. A
new key goes round in three steps, each of which must succeed on every server before
the next: install, use, remove the old one. Write it into gossip.keys of every
server's configuration as well: that is what counts at a start.`,
		Example: `  openssl rand -base64 32 > new.key
  cede operator keyring install new.key
  cede operator keyring use new.key
  cede operator keyring remove old.key
  cede operator keyring list`,
	}
	group(cmd)
	cmd.AddCommand(
		keyringCmd(env, "list", "List the keys, as digests", func(ctx context.Context, o client.Operator, _ string) (*client.KeyringResponse, error) {
			return o.Keyring(ctx)
		}),
		keyringCmd(env, "install", "Have every server open what a key seals", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyInstall(ctx, key)
		}),
		keyringCmd(env, "use", "Have every server seal with a key that is installed", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyUse(ctx, key)
		}),
		keyringCmd(env, "remove", "Have every server forget a key that seals no more", func(ctx context.Context, o client.Operator, key string) (*client.KeyringResponse, error) {
			return o.KeyRemove(ctx, key)
		}),
	)
	return cmd
}

func keyringCmd(env *Env, verb, short string, do func(context.Context, client.Operator, string) (*client.KeyringResponse, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " FILE", Short: short, Args: arguments(1, 1, "one file that holds the key, base64"), Example: "  cede operator keyring " + verb + " new.key"}
	if verb == "list" {
		cmd.Use, cmd.Args, cmd.Example = verb, arguments(0, 0, "no arguments"), "  cede operator keyring list"
	}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		key := ""
		if len(args) > 0 {
			text, err := env.secret(args[0])
			if err != nil {
				return err
			}
			key = text
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), api.Operator(), key)
		if err != nil {
			return interruptedBy(cmd.Context(), err)
		}
		return keyringShown(out, r)
	}
	return cmd
}

// keyringShown shows what every server said; one that did not do it is an error.
func keyringShown(out *output, r *client.KeyringResponse) error {
	failed := 0
	for _, s := range r.Servers {
		if s.Error != "" {
			failed++
		}
	}
	err := out.show(document{data: r, names: namesOf(r.Servers, func(s *client.ServerKeys) string { return s.Server }), page: func(p page) {
		t := columns("SERVER", "KEYS", "ERROR")
		for _, s := range r.Servers {
			t.Row(s.Server, strings.Join(s.Keys, " "), s.Error)
		}
		p.table(t)
	}})
	if err == nil && failed > 0 {
		return &Error{Exit: ExitError, Code: codeError, Message: fmt.Sprintf("%d of %d servers did not do it", failed, len(r.Servers)), Hint: "begin no further step before all have: give the command again"}
	}
	return err
}

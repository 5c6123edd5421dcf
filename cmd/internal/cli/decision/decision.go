package decision

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede decision` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decision",
		Short: "Certify decisions to evict, and verify them",
		Long: `Write certificates of decisions to evict, and verify them without a server.

A certificate contains the calls of the policies with the frames that they received and
their answers, the code of the policies, and the record of the decision with its reasons.
The server signs it. cede alloc why explains a decision.`,
		Example: "  cede decision export 9d21 -w r1.cert\n  cede decision key -w server.pub\n  cede decision verify r1.cert --key server.pub",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newExportCmd(env), newVerifyCmd(env), newKeyCmd(env))
	return cmd
}

func newExportCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a certificate of a decision to evict",
		Long: `Write a certificate of the newest decision that evicted allocation ID, or others for it.

The server computes the state of then from its log and makes the decision again. It
refuses if the log no longer reaches back, if the policy that decided is no longer loaded
or is an executable, and if the decision has another result now. The certificate contains
the code of the policies, so that the token needs the role operate.`,
		Example: "  cede decision export 9d21 -w r1.cert",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "", "write the certificate to `FILE`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if *file == "" {
			return cmdutil.Usagef("add -w decision.cert", "-w is required")
		}
		if err := env.CheckWritable(*file); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		done := env.Waiting("repeating the decision")
		b, err := api.Allocations().Certificate(cmd.Context(), args[0])
		done()
		if err != nil {
			return exportError(cmd.Context(), conn, args[0], err)
		}
		d, key, err := certificate.Read(b)
		if err != nil {
			return err
		}
		err = env.Write(*file, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		})
		if err != nil || *file == cmdutil.Stdin {
			return err
		}
		v := describe(*file, d, certificate.KeyID(key))
		return out.Show(cmdutil.Document{Data: v, Names: []string{*file}, Page: func(p cmdutil.Page) {
			p.Printf("%s: %s of policies, signed by %s of server %s, %s\n", *file,
				cmdutil.Count(len(d.Calls), "call", "calls"), v.Key, d.ServerID, cmdutil.FormatBytes(int64(len(b))))
		}})
	}
	return cmd
}

// exportError returns the error of an export. If the allocation exists, a decision about it
// was not found.
func exportError(ctx context.Context, conn *cmdutil.Connection, id string, err error) error {
	err = cmdutil.InterruptError(ctx, err)
	if !client.IsNotFound(err) {
		return err
	}
	if _, missing := apiview.FindAlloc(ctx, conn, id); missing != nil {
		return missing
	}
	return err
}

func newKeyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Print the keys that verify a server's certificates",
		Long: `Print the public key that verifies the certificates of the server that answers, in PEM.
With --all, print the keys of all servers that the pool has had.

Each server has its own key, in its data directory. It publishes the public key in the
log, so that every server of the pool can return it, also when the server is gone. Store
the output of --all where you keep certificates: a pool that is gone returns no keys.`,
		Example: "  cede decision key -w server.pub\n  cede decision key --all -w pool.pub",
		Args:    cobra.NoArgs,
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "", "write the key to `FILE`")
	all := cmd.Flags().Bool("all", false, "print the keys of all servers that the pool has had")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		var data any
		var keys []*client.DecisionKey
		if *all {
			keys, _, err = api.Allocations().DecisionKeys(cmd.Context(), conn.QueryOptions())
			data = keys
		} else {
			keys = make([]*client.DecisionKey, 1)
			keys[0], _, err = api.Allocations().DecisionKey(cmd.Context(), conn.QueryOptions())
			data = keys[0]
		}
		if err != nil {
			return cmdutil.InterruptError(cmd.Context(), err)
		}
		text := joinKeys(keys)
		if *file != "" {
			return env.Write(*file, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		}
		names := cmdutil.NamesOf(keys, func(k *client.DecisionKey) string { return k.ID })
		return out.Show(cmdutil.Document{Data: data, Names: names, Page: func(p cmdutil.Page) { p.Printf("%s", text) }})
	}
	return cmd
}

// joinKeys returns keys in PEM. Those of a list are preceded by the key ID and the server,
// which readers of PEM ignore.
func joinKeys(keys []*client.DecisionKey) string {
	var text strings.Builder
	for _, k := range keys {
		if k.ServerID != "" {
			fmt.Fprintf(&text, "%s of server %s\n", k.ID, k.ServerID)
		}
		text.WriteString(k.PEM)
	}
	return text.String()
}

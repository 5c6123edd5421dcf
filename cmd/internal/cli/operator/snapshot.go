package operator

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newOperatorSnapshotCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "snapshot",
		Short:   "Save the whole state to a file, look at it, and restore it",
		Example: "  cede operator snapshot save cluster.snap\n  cede operator snapshot restore cluster.snap",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newSnapshotSaveCmd(env), newSnapshotRestoreCmd(env), newSnapshotInspectCmd(env))
	return cmd
}

// counted counts what passes through.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func newSnapshotSaveCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the whole state to a file",
		Long: `Save the whole state to a file: jobs, nodes, allocations, evaluations, classes,
policies with their modules, and tokens (their hashes alone). A file that exists is
replaced once the snapshot is whole. A new one is its owner's alone to read: what jobs
are given may be secret.`,
		Example: "  cede operator snapshot save cluster.snap",
		Args:    cmdutil.PositionalArgs(1, 1, "one file"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		var bytes int64
		var failed error // what the server said, whole
		err = env.WritePrivate(args[0], func(w io.Writer) error {
			c := &counted{w: w}
			failed = api.Operator().SnapshotSave(cmd.Context(), c)
			bytes = c.n
			return failed
		})
		if failed != nil {
			return cmdutil.InterruptError(cmd.Context(), failed)
		}
		if err != nil || args[0] == cmdutil.Stdin {
			return err
		}
		v := struct {
			File  string
			Bytes int64
		}{args[0], bytes}
		return out.Show(cmdutil.Document{Data: v, Names: []string{args[0]}, Page: func(p cmdutil.Page) { p.Printf("%s: %s\n", args[0], cmdutil.FormatBytes(bytes)) }})
	}
	return cmd
}

func newSnapshotRestoreCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the whole state of a cluster by a snapshot",
		Long: `Replace the whole state of a cluster by a snapshot. What was done since the
snapshot was saved is lost, so --yes has to be given.

The file may be of another cluster. The cluster then has that one's id, and everything in it:
jobs, nodes, allocations, policies and tokens. Agents of those nodes that are pointed at this
cluster go on with what they run, and nothing is placed twice; nodes that do not come are down
after their grace, and their work is placed elsewhere. End the other cluster first, or both
place the same work. A snapshot of a newer cluster version than this release understands is refused.`,
		Example: "  cede operator snapshot restore cluster.snap --yes",
		Args:    cmdutil.PositionalArgs(1, 1, "one file"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	sure := cmd.Flags().Bool("yes", false, "really replace everything")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if !*sure {
			return cmdutil.Usagef("add --yes; `cede operator snapshot save` keeps what is there now", "this replaces the whole state of the cluster")
		}
		if err := restoreSnapshot(cmd.Context(), conn, args[0]); err != nil {
			return err
		}
		v := struct{ File string }{args[0]}
		return out.Show(cmdutil.Document{Data: v, Names: []string{args[0]}, Page: func(p cmdutil.Page) { p.Printf("The state is that of %s\n", args[0]) }})
	}
	return cmd
}

func restoreSnapshot(ctx context.Context, c *cmdutil.Connection, file string) error {
	r, err := c.Env.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	api, err := c.Dial()
	if err != nil {
		return err
	}
	if err := api.Operator().SnapshotRestore(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", file, cmdutil.InterruptError(ctx, err))
	}
	return nil
}

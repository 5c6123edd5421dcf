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
		Short:   "Save, inspect and restore snapshots of the state",
		Long:    `Save, inspect and restore snapshots of the complete state of a cluster.`,
		Example: "  cede operator snapshot save cluster.snap\n  cede operator snapshot restore cluster.snap",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newSnapshotSaveCmd(env), newSnapshotRestoreCmd(env), newSnapshotInspectCmd(env))
	return cmd
}

// counted counts the bytes that it forwards.
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
		Short: "Save the complete state to a file",
		Long: `Save the complete state to a file: jobs, nodes, allocations, evaluations, classes,
policies with their modules, and hashes of tokens. An existing file is replaced when
the snapshot is complete. A new file is readable by its owner only, because jobs can
contain secrets.

Output of tasks and the history of decisions are not included.`,
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
		var failed error // complete error of the server
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
		Short: "Replace the state of a cluster by a snapshot",
		Long: `Replace the complete state of a cluster by a snapshot. Changes since the snapshot was
saved are lost, so --yes is required.

The snapshot may come from another cluster. Then this cluster adopts its ID, jobs,
nodes, allocations, policies and tokens. Nodes whose agents connect to this cluster
continue to run their allocations. Other nodes are marked down after the grace period,
and their allocations are rescheduled. Stop the other cluster first, or both run the
same jobs.

A snapshot of a newer cluster version than this release supports is refused.`,
		Example: "  cede operator snapshot restore cluster.snap --yes",
		Args:    cmdutil.PositionalArgs(1, 1, "one file"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	sure := cmd.Flags().Bool("yes", false, "confirm that the complete state is replaced")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if !*sure {
			return cmdutil.Usagef("add --yes; `cede operator snapshot save` saves the current state first", "--yes is required: restore replaces the complete state of the cluster")
		}
		if err := restoreSnapshot(cmd.Context(), conn, args[0]); err != nil {
			return err
		}
		v := struct{ File string }{args[0]}
		return out.Show(cmdutil.Document{Data: v, Names: []string{args[0]}, Page: func(p cmdutil.Page) { p.Printf("Restored the state of %s\n", args[0]) }})
	}
	return cmd
}

func restoreSnapshot(ctx context.Context, c *cmdutil.Connection, file string) error {
	r, err := c.Env.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // read-only
	api, err := c.Dial()
	if err != nil {
		return err
	}
	if err := api.Operator().SnapshotRestore(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", file, cmdutil.InterruptError(ctx, err))
	}
	return nil
}

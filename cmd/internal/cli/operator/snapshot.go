package operator

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
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

// counted counts the bytes that it forwards. total may be read concurrently.
type counted struct {
	w     io.Writer
	r     io.Reader
	total atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.total.Add(int64(n))
	return n, err
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.total.Add(int64(n))
	return n, err
}

// show shows the progress of a transfer of size bytes until done is called. size is 0 if it
// is unknown. A server may continue after the last byte.
func (c *counted) show(env *cmdutil.Env, file string, size int64) (done func()) {
	progress := env.Progress()
	progress.Repeat(func(elapsed time.Duration) string { return transferLine(file, c.total.Load(), size, elapsed) })
	return progress.Done
}

// sizeOf returns the size of a file in bytes, 0 if it is unknown.
func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

func transferLine(file string, n, size int64, elapsed time.Duration) string {
	share, text := -1.0, cmdutil.FormatBytes(n)
	if size > 0 {
		share, text = float64(n)/float64(size), text+" of "+cmdutil.FormatBytes(size)
	}
	return term.ProgressLine(share, elapsed, filepath.Base(file), text, elapsed.Round(time.Second).String())
}

func newSnapshotSaveCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the complete state to a file",
		Long: `Save the complete state to a file: jobs, nodes, allocations, evaluations, classes,
policies with their modules, and hashes of tokens. An older snapshot is replaced when
the new one is complete; any other existing file is refused. A new file is readable
by its owner only, because jobs can contain secrets.

Output of tasks and the history of decisions are not included.`,
		Example: "  cede operator snapshot save cluster.snap",
		Args:    cmdutil.PositionalArgs(1, 1, "one file"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if err := checkSnapshotOutput(env, args[0]); err != nil {
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
			defer c.show(env, args[0], 0)()
			failed = api.Operator().SnapshotSave(cmd.Context(), c)
			bytes = c.total.Load()
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

// checkSnapshotOutput returns an error if a file cannot be written, or exists and is not a
// snapshot: its name was probably mistyped, and its content would be lost.
func checkSnapshotOutput(env *cmdutil.Env, name string) error {
	if err := env.CheckWritable(name); err != nil || sizeOf(name) == 0 {
		return err
	}
	f, err := env.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read-only
	if !snapshot.IsSnapshot(f) {
		return cmdutil.Usagef("use another name, or remove the file", "%s exists and is not a snapshot", name)
	}
	return nil
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
	sent := &counted{r: r}
	defer sent.show(c.Env, file, sizeOf(file))()
	if err := api.Operator().SnapshotRestore(ctx, sent); err != nil {
		return fmt.Errorf("%s: %w", file, cmdutil.InterruptError(ctx, err))
	}
	return nil
}

package operator

import (
	"bufio"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
)

// snapshotView is the printed form of the contents of a snapshot.
type snapshotView struct {
	File        string
	ClusterID   string
	Version     uint32
	Index       uint64
	Bytes       int64
	Nodes       int
	Jobs        int
	Allocations int
	Evaluations int
	Policies    int // number of versions
	Modules     int
	StateHash   string
}

func newSnapshotInspectCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a snapshot and list its contents",
		Long: `Check a complete snapshot file and list its contents. The hash of its state equals that
of servers with the same state.

No server is contacted.`,
		Example: "  cede operator snapshot inspect cluster.snap",
		Args:    cmdutil.PositionalArgs(1, 1, "one file"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		r, err := env.Open(args[0])
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }() // read-only
		read := &counted{r: r}
		done := read.show(env, args[0], sizeOf(args[0]))
		info, err := snapshot.Inspect(bufio.NewReaderSize(read, 1<<20))
		done()
		if err != nil {
			return &cmdutil.Error{
				Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", args[0], err), Err: err,
				Hint: "the file is truncated, altered or not a snapshot; save a new one",
			}
		}
		v := &snapshotView{
			File: args[0], ClusterID: info.ClusterID, Version: info.Version, Index: info.Index, Bytes: info.Bytes,
			Nodes: info.Nodes, Jobs: info.Jobs, Allocations: info.Allocs, Evaluations: info.Evals, Policies: info.Policies,
			Modules: info.Mods, StateHash: hex.EncodeToString(info.Hash[:]),
		}
		return out.Show(cmdutil.Document{Data: v, Names: []string{v.ClusterID}, Page: func(p cmdutil.Page) {
			p.Properties("file", v.File, "cluster", v.ClusterID, "version", fmt.Sprint(v.Version), "index", fmt.Sprint(v.Index), "size", cmdutil.FormatBytes(v.Bytes),
				"nodes", cmdutil.Thousands(v.Nodes), "jobs", cmdutil.Thousands(v.Jobs), "allocations", cmdutil.Thousands(v.Allocations), "evaluations", cmdutil.Thousands(v.Evaluations),
				"policy versions", cmdutil.Thousands(v.Policies), "modules", cmdutil.Thousands(v.Modules), "state hash", v.StateHash)
		}})
	}
	return cmd
}

package cli

import (
	"bufio"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/replication"
)

// snapshotView is what a snapshot holds, as it is shown.
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
	Policies    int // versions
	Modules     int
	StateHash   string
}

func newSnapshotInspectCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a snapshot, and say what it holds",
		Long: `Check a snapshot whole, and say what it holds. No server is asked. The hash of its
state is that of every server with the same state.`,
		Example: "  cede operator snapshot inspect cluster.snap",
		Args:    arguments(1, 1, "one file"),
	}
	out := outputFlags(cmd, env)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		r, err := env.open(args[0])
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }() // it was only read
		info, err := replication.InspectSnapshot(bufio.NewReaderSize(r, 1<<20))
		if err != nil {
			return &Error{
				Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%s: %v", args[0], err), err: err,
				Hint: "it was altered, cut off, or is no snapshot; save another",
			}
		}
		v := &snapshotView{
			File: args[0], ClusterID: info.ClusterID, Version: info.Version, Index: info.Index, Bytes: info.Bytes,
			Nodes: info.Nodes, Jobs: info.Jobs, Allocations: info.Allocs, Evaluations: info.Evals, Policies: info.Policies,
			Modules: info.Mods, StateHash: hex.EncodeToString(info.Hash[:]),
		}
		return out.show(document{data: v, names: []string{v.ClusterID}, page: func(p page) {
			p.facts("file", v.File, "cluster", v.ClusterID, "version", fmt.Sprint(v.Version), "index", fmt.Sprint(v.Index), "size", size(v.Bytes),
				"nodes", thousands(v.Nodes), "jobs", thousands(v.Jobs), "allocations", thousands(v.Allocations), "evaluations", thousands(v.Evaluations),
				"policy versions", thousands(v.Policies), "modules", thousands(v.Modules), "state hash", v.StateHash)
		}})
	}
	return cmd
}

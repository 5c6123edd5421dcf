package operator

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// NewCommand returns `cede operator` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Operate a cluster: snapshots, Raft, scheduler, keys",
		Long: `Operate a cluster: replication, snapshots, scheduler settings, the evaluation broker,
gossip keys, data directories of stopped servers, and support bundles.`,
		Example: `  cede operator raft
  cede operator snapshot save cluster.snap
  cede operator scheduler set --preempt-service=true
  cede operator broker pause
  cede operator audit --since 24h
  cede operator doctor /var/lib/cede
  cede operator debug -w bundle.tar.gz`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newOperatorRaftCmd(env), newOperatorSnapshotCmd(env), newOperatorSchedulerCmd(env), newOperatorBrokerCmd(env),
		newOperatorDoctorCmd(env), newOperatorKeyringCmd(env), newOperatorDebugCmd(env), newOperatorAuditCmd(env))
	return cmd
}

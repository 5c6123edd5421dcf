package job

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Run jobs: write one, see what it would do, run it, follow it, stop it",
		Long: `Run jobs: write one, see what it would do, run it, follow it, stop it.

A job file is HCL in Nomad's dialect, YAML or JSON; cede help jobs describes it.
job plan shows whom a job would evict before anybody is, and gives a token with
which job run does exactly that.`,
		Example: `  cede job init web.hcl
  cede job plan web.hcl
  cede job run web.hcl
  cede job status web`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		newJobInitCmd(env), newJobValidateCmd(env), newJobPlanCmd(env), newJobRunCmd(env),
		newJobStatusCmd(env), newJobStopCmd(env), newJobHistoryCmd(env),
	)
	return cmd
}

package job

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// NewCommand returns `cede job` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Run, plan, describe and stop jobs",
		Long: `Run, plan, describe and stop jobs.

A job file is HCL in the form of Nomad, YAML or JSON; cede help jobs describes it.
cede job plan shows which allocations a job would evict, and returns a token with
which cede job run executes exactly that plan.`,
		Example: `  cede job init web.hcl
  cede job plan web.hcl
  cede job run web.hcl
  cede job status web`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		newJobInitCmd(env), newJobValidateCmd(env), newJobPlanCmd(env), newJobRunCmd(env),
		newJobStatusCmd(env), newJobStopCmd(env), newJobHistoryCmd(env), newJobForecastCmd(env),
	)
	return cmd
}

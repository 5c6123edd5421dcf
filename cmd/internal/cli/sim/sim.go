package sim

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// NewCommand returns `cede sim` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play, generate, import and record scenarios",
		Long: `Play scenarios, and create them from public traces, from a description, or from a
running server.

The simulator runs the packages of the server in virtual time: the same file, policy
and seed produce the same bytes on every machine. No task is started.`,
		Example: `  cede sim generate contended -w contended.yaml
  cede sim run contended.yaml`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newSimRunCmd(env), newSimImportCmd(env), newSimGenerateCmd(env), newSimRecordCmd(env), newSimReplayCmd(env), newSimCalibrateCmd(env), newSimStepCmd(env))
	return cmd
}

package sim

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play scenarios, and make them",
		Long: `Play scenarios, and make them: from public traces, from a small description, or
from what a running server decides.

The simulator runs the packages that the server runs, in virtual time: the same
file, policy and seed give the same bytes on every machine.`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newSimRunCmd(env), newSimImportCmd(env), newSimGenerateCmd(env), newSimRecordCmd(env), newSimReplayCmd(env))
	return cmd
}

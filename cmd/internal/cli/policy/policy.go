package policy

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write policies, and have servers decide by them",
		Long: `Write policies: start one, build it, test it, measure it, sign it. Have running
servers decide by them: load one, compare it in the shadow of what decides now,
activate it, roll it back.

A policy decides who is evicted for whom. It is an ordinary program in Go, Rust,
AssemblyScript or C, built as a WebAssembly module; Go ones also run as a process
of their own, or linked into cede.`,
		Example: `  cede policy init thrifty
  cede policy build thrifty
  cede policy test thrifty
  cede compare thrifty/scenario.yaml -p default -p thrifty
  cede policy load thrifty`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		newPolicyInitCmd(env), newPolicyBuildCmd(env), newPolicyTestCmd(env), newPolicyBenchCmd(env),
		newPolicyInspectCmd(env), newPolicySignCmd(env), newPolicyVerifyCmd(env),
		newPolicyLoadCmd(env), newPolicyListCmd(env), newPolicyStatusCmd(env), newPolicyShadowCmd(env), newPolicyFetchCmd(env),
		newPolicyActivateCmd(env), newPolicyRollbackCmd(env), newPolicyUnloadCmd(env),
	)
	return cmd
}

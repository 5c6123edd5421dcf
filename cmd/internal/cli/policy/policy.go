package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policy/debug"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policy/tune"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
)

// NewCommand returns `cede policy` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, test, load and activate policies",
		Long: `Write policies: create, build, test, measure and sign them. Run them on servers: load a
policy, compare it with the active one in a shadow run, activate it, and roll it back.

A policy decides which allocations are evicted. It is an ordinary program in Go, Rust,
AssemblyScript or C that is built as a WebAssembly module, a few expressions that need no
compiler (rules), or a composition of other policies. Policies in Go can also run as a
separate process, or be linked into cede.`,
		Example: `  cede policy init thrifty
  cede policy build thrifty
  cede policy test thrifty
  cede compare thrifty/scenario.yaml -p default -p thrifty
  cede policy load thrifty`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		newPolicyInitCmd(env), newPolicyBuildCmd(env), newPolicyTestCmd(env), newPolicyBenchCmd(env),
		newPolicyInspectCmd(env), tune.NewCommand(env, buildFolder(env)), debug.NewCommand(env), newPolicySignCmd(env), newPolicyVerifyCmd(env),
		newPolicyLoadCmd(env), newPolicyListCmd(env), newPolicyStatusCmd(env), newPolicyShadowCmd(env), newPolicyFetchCmd(env),
		newPolicyActivateCmd(env), newPolicyTrialCmd(env), newPolicyRollbackCmd(env), newPolicyUnloadCmd(env),
	)
	return cmd
}

// buildFolder returns a function that builds the policy in a folder as cede policy build does.
func buildFolder(env *cmdutil.Env) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		_, err := buildPolicy(ctx, env, dir, "", policies.NewBuilder())
		return err
	}
}

package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
)

func newPolicyUnloadCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unload N@V",
		Short: "Make the servers forget a version of a policy",
		Long: `Make the servers forget version V of policy N, and its module with the last version
of it. What is active, what a rollback returns to, and what runs in the shadow is
not forgotten.`,
		Example: `  cede policy unload thrifty@4f2a`,
		Args:    cmdutil.PositionalArgs(1, 1, "one version of a policy, N@V"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		name, version, err := namedVersion(cmd, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		st, err := c.Client.Policies().Unload(ctx, name, version)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		return changed(st, version, policyflags.VersionName(name, version)+" is forgotten"), nil
	})
}

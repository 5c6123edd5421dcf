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
		Short: "Unload a version of a policy",
		Long: `Unload version V of policy N from the servers, and its module if this was the last version
that uses it.

A version that is active, in a shadow run, or the target of a rollback is refused.`,
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

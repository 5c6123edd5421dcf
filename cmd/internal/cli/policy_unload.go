package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newPolicyUnloadCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unload N@V",
		Short: "Make the servers forget a version of a policy",
		Long: `Make the servers forget version V of policy N, and its module with the last version
of it. What is active, what a rollback returns to, and what runs in the shadow is
not forgotten.`,
		Example: `  cede policy unload thrifty@4f2a`,
		Args:    arguments(1, 1, "one version of a policy, N@V"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		name, version, err := namedVersion(cmd, args[0])
		if err != nil {
			return document{}, err
		}
		st, err := c.client.Policies().Unload(ctx, name, version)
		if err != nil {
			return document{}, ofPolicy(err)
		}
		return changed(st, version, versionName(name, version)+" is forgotten"), nil
	})
}

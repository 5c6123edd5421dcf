package cli

import (
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
	out := outputFlags(cmd, env)
	server := serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		name, version, err := namedVersion(cmd, args[0])
		if err != nil {
			return err
		}
		c, err := server.dial()
		if err != nil {
			return err
		}
		st, err := c.Policies().Unload(cmd.Context(), name, version)
		if err != nil {
			return ofPolicy(err)
		}
		return out.changed(st, version, func() string { return versionName(name, version) + " is forgotten" })
	}
	return cmd
}

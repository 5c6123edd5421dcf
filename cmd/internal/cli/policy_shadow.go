package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyShadowCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow N@V",
		Short: "Let a version decide beside the active one, to compare them",
		Long: `Let version V of policy N decide beside the active one: of whatever that decides,
V is asked too, on the same state, and nothing of its answer is applied. What it
would have done otherwise is in cede policy status N. --off ends it, as does
activating V.`,
		Example: `  cede policy shadow thrifty@4f2a
  cede policy status thrifty
  cede policy shadow thrifty --off`,
		Args: arguments(1, 1, "one version of a policy, N@V"),
	}
	out := outputFlags(cmd, env)
	server := serverFlags(cmd, env)
	off := cmd.Flags().Bool("off", false, "end the shadow run of N")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		name, version := args[0], ""
		if !*off {
			var err error
			if name, version, err = namedVersion(cmd, args[0]); err != nil {
				return err
			}
		}
		c, err := server.dial()
		if err != nil {
			return err
		}
		st, err := c.Policies().Shadow(cmd.Context(), name, version)
		if err != nil {
			return ofPolicy(err)
		}
		return out.changed(st, st.Shadow, func() string { return shadowed(st) })
	}
	return cmd
}

func shadowed(st *client.PolicyStatus) string {
	if st.Shadow == "" {
		return "no version of " + st.Name + " runs in the shadow any more"
	}
	beside := "the built-in policy"
	if st.Active != "" {
		beside = versionName(st.Name, st.Active)
	}
	return fmt.Sprintf("%s decides beside %s; cede policy status %s shows the difference", versionName(st.Name, st.Shadow), beside, st.Name)
}

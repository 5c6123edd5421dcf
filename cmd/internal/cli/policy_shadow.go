package cli

import (
	"context"
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
	off := cmd.Flags().Bool("off", false, "end the shadow run of N")
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		name, version := args[0], ""
		if !*off {
			var err error
			if name, version, err = namedVersion(cmd, args[0]); err != nil {
				return document{}, err
			}
		}
		st, err := c.client.Policies().Shadow(ctx, name, version)
		if err != nil {
			return document{}, ofPolicy(err)
		}
		return changed(st, st.Shadow, shadowed(st)), nil
	})
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

package policy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyShadowCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow N@V",
		Short: "Run a version in the shadow of the active one",
		Long: `Run version V of policy N in the shadow of the active version: V also receives each
decision, on the same state, and its results are recorded but not applied. cede policy
status N shows how they differ. --off ends the shadow run, as does activating V.`,
		Example: `  cede policy shadow thrifty@4f2a
  cede policy status thrifty
  cede policy shadow thrifty --off`,
		Args: cmdutil.PositionalArgs(1, 1, "one version of a policy, N@V"),
	}
	off := cmd.Flags().Bool("off", false, "end the shadow run of N")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		name, version := args[0], ""
		if !*off {
			var err error
			if name, version, err = namedVersion(cmd, args[0]); err != nil {
				return cmdutil.Document{}, err
			}
		}
		st, err := c.Client.Policies().Shadow(ctx, name, version)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		return changed(st, st.Shadow, shadowed(st)), nil
	})
}

func shadowed(st *client.PolicyStatus) string {
	if st.Shadow == "" {
		return "no version of " + st.Name + " runs in the shadow"
	}
	active := "the built-in policy"
	if st.Active != "" {
		active = policyflags.VersionName(st.Name, st.Active)
	}
	return fmt.Sprintf("%s is the shadow of %s; cede policy status %s shows the difference", policyflags.VersionName(st.Name, st.Shadow), active, st.Name)
}

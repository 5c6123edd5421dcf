package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyRollbackCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback N",
		Short: "Return to the previously active version of a policy",
		Long: `Activate the version that was active before the current one under the name N, on every
server at once, and print it. A second rollback reverts the first.

Older versions are not reached by a rollback: cede policy status lists those that are
loaded, and cede policy activate N@V activates one.`,
		Example: `  cede policy rollback thrifty`,
		Args:    cmdutil.PositionalArgs(1, 1, "one policy's name"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		st, err := c.Client.Policies().Rollback(ctx, args[0])
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		return changed(st, st.Active, rolledBack(st)), nil
	})
}

// rolledBack describes the change of versions and the effect of another rollback: the
// version that was active before is now the previous one.
func rolledBack(st *client.PolicyStatus) string {
	words := "rolled back"
	if st.Previous != "" {
		words += " from " + policyflags.VersionName(st.Name, st.Previous)
	}
	if st.Active == "" {
		return words + ": no version of " + st.Name + " is active any more"
	}
	words += " to " + policyflags.VersionName(st.Name, st.Active)
	if st.Previous != "" {
		words += "; another rollback goes forward again, to " + model.ShortVersion(st.Previous)
	}
	return words
}

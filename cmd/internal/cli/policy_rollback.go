package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newPolicyRollbackCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback N",
		Short: "Let the version decide that decided before",
		Long: `Let the version decide under the name N that did before the active one, on every
server at once. Another rollback takes that back.`,
		Example: `  cede policy rollback thrifty`,
		Args:    arguments(1, 1, "one policy's name"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		st, err := c.client.Policies().Rollback(ctx, args[0])
		if err != nil {
			return document{}, ofPolicy(err)
		}
		if st.Active == "" {
			return changed(st, st.Active, "no version of "+st.Name+" is active any more"), nil
		}
		return changed(st, st.Active, activated(st)), nil
	})
}

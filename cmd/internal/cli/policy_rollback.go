package cli

import "github.com/spf13/cobra"

func newPolicyRollbackCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback N",
		Short: "Let the version decide that decided before",
		Long: `Let the version decide under the name N that did before the active one, on every
server at once. Another rollback takes that back.`,
		Example: `  cede policy rollback thrifty`,
		Args:    arguments(1, 1, "one policy's name"),
	}
	out := outputFlags(cmd, env)
	server := serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		c, err := server.dial()
		if err != nil {
			return err
		}
		st, err := c.Policies().Rollback(cmd.Context(), args[0])
		if err != nil {
			return ofPolicy(err)
		}
		return out.changed(st, st.Active, func() string {
			if st.Active == "" {
				return "no version of " + st.Name + " is active any more"
			}
			return activated(st)
		})
	}
	return cmd
}

package cmdutil

import (
	"strings"

	"github.com/spf13/cobra"
)

// NewRoot completes cmd as the root of a command tree: its streams and arguments
// are those of env, it has --help, and an unknown flag is an error with a
// suggestion. Run prints errors, so cobra does not.
func NewRoot(env *Env, cmd *cobra.Command) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	cmd.SetIn(env.Stdin)
	cmd.SetOut(env.Stdout)
	cmd.SetErr(env.Stderr)
	cmd.SetArgs(env.Args)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := HelpHint(cmd)
		if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
			if near := suggestFlags(cmd, name); len(near) > 0 {
				hint = "did you mean " + JoinOr(near) + "?"
			}
		}
		return Usagef(hint, "%v", err)
	})
	cmd.PersistentFlags().BoolP("help", "h", false, "print help for the command")
	MakeGroup(cmd)
	return cmd
}

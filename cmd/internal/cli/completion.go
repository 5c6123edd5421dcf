package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletionCmd(env *cmdutil.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Print a shell completion script",
		Example: `  cede completion bash`,
		Long: `Print a script that completes the commands, flags and policies of cede.

  bash        source <(cede completion bash)
  zsh         cede completion zsh > "${fpath[1]}/_cede"
  fish        cede completion fish > ~/.config/fish/completions/cede.fish
  powershell  cede completion powershell | Out-String | Invoke-Expression

It installs nothing.`,
		Args:      cmdutil.PositionalArgs(1, 1, "the name of a shell"),
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(shells(), args[0]) {
				return cmdutil.Usagef("use "+cmdutil.JoinOr(shells()), "unsupported shell %q", args[0])
			}
			root := cmd.Root()
			write := map[string]func() error{
				"bash":       func() error { return root.GenBashCompletionV2(env.Stdout, true) },
				"zsh":        func() error { return root.GenZshCompletion(env.Stdout) },
				"fish":       func() error { return root.GenFishCompletion(env.Stdout, true) },
				"powershell": func() error { return root.GenPowerShellCompletionWithDesc(env.Stdout) },
			}[args[0]]
			return cmdutil.WriteError("standard output", write())
		},
	}
}

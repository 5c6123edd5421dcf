package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// newRootCmd is the whole grammar.
func newRootCmd(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "cede",
		Short: "A cluster scheduler whose preemption is a policy",
		Long: `cede schedules work on clusters. When one is full, lower-priority work cedes its
place to higher-priority work, and a policy decides whose.`,
		SilenceErrors: true, SilenceUsage: true, // Main prints them
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetArgs(env.Args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := helpHint(cmd)
		if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
			if near := nearFlags(cmd, name); len(near) > 0 {
				hint = "did you mean " + oneOf(near) + "?"
			}
		}
		return usagef(hint, "%v", err)
	})
	root.PersistentFlags().BoolP("help", "h", false, "describe the command")
	group(root)
	root.AddCommand(
		newAgentCmd(env),
		newJobCmd(env),
		newAllocCmd(env),
		newEvalCmd(env),
		newNodeCmd(env),
		newEventCmd(env),
		newPriorityClassCmd(env),
		newBudgetCmd(env),
		newClusterCmd(env),
		newBindingCmd(env),
		newServerCmd(env),
		newTokenCmd(env),
		newOperatorCmd(env),
		newBenchCmd(env),
		newConfigCmd(env),
		newSimCmd(env),
		newCompareCmd(env),
		newPolicyCmd(env),
		newVersionCmd(env),
		newCompletionCmd(env),
	)
	root.SetHelpCommand(newHelpCmd(env))
	aliases(root)
	return root
}

// aliases lets every list be asked for as ls, as other tools have it.
func aliases(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Name() == "list" && len(sub.Aliases) == 0 {
			sub.Aliases = []string{"ls"}
		}
		aliases(sub)
	}
}

func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("`%s --help` describes the command", cmd.CommandPath())
}

var longFlag = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// nearFlags are the flags of a command that may be meant by a name, as commands
// are suggested.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	var names []string
	for _, m := range longFlag.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, m[1])
	}
	for _, flag := range nearWords(name, names) {
		near = append(near, "--"+flag)
	}
	return near
}

// nearWords are those of several that may be meant by a word.
func nearWords(word string, words []string) []string {
	commands := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, w := range words {
		commands.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}}) // none without Run
	}
	return commands.SuggestionsFor(word)
}

// group makes cmd a mere holder of commands: alone it describes itself, and
// what it does not have is an error.
func group(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := helpHint(cmd)
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + oneOf(near) + "?"
		}
		return usagef(hint, "%s has no command %q", cmd.CommandPath(), args[0])
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// arguments checks how many there are; names are for the message.
func arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef(helpHint(cmd), "%s takes %s: %d given", cmd.CommandPath(), names, len(args))
		case most >= 0 && len(args) > most:
			return usagef(helpHint(cmd), "%s takes %s: what is %q?", cmd.CommandPath(), names, strings.Join(args[most:], " "))
		}
		return nil
	}
}

// complete makes a flag's values known to shells.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // there is no such flag: a slip of ours
	}
}

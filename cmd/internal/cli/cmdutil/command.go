package cmdutil

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/suggest"
)

// HelpHint returns the hint that names the --help of a command.
func HelpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("`%s --help` describes the command", cmd.CommandPath())
}

var longFlag = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// suggestFlags returns the flags of a command that are similar to name.
func suggestFlags(cmd *cobra.Command, name string) (near []string) {
	var names []string
	for _, m := range longFlag.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, m[1])
	}
	for _, flag := range Suggest(name, names) {
		near = append(near, "--"+flag)
	}
	return near
}

// Suggest returns the words that are similar to word.
func Suggest(word string, words []string) []string {
	commands := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, w := range words {
		commands.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}}) // cobra ignores commands without Run
	}
	return commands.SuggestionsFor(word)
}

// MakeGroup makes cmd a group of commands: alone it prints its help, and an unknown
// command is an error with suggestions.
func MakeGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := HelpHint(cmd)
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = suggest.Question(near...)
		}
		return Usagef(hint, "unknown command %q for %s", args[0], cmd.CommandPath())
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// PositionalArgs checks the number of arguments, from least to most; a negative most is
// unlimited. names describes them in errors.
func PositionalArgs(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef(HelpHint(cmd), "%s expects %s: %d given", cmd.CommandPath(), names, len(args))
		case most >= 0 && len(args) > most:
			return Usagef(HelpHint(cmd), "%s expects %s: unexpected %q", cmd.CommandPath(), names, strings.Join(args[most:], " "))
		}
		return nil
	}
}

// CompleteFlag registers the values of a flag for shell completion.
func CompleteFlag(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // programming error: the flag does not exist
	}
}

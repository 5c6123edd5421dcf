package cmdutil

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/suggest"
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
	cmd.SetFlagErrorFunc(flagError)
	cmd.PersistentFlags().BoolP("help", "h", false, "print help for the command")
	MakeGroup(cmd)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		width := env.Columns()
		if width == 0 {
			help(cmd, args)
			return
		}
		var text bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = io.WriteString(out, foldHelp(text.String(), width)) // as cobra, which ignores the error
	})
	return cmd
}

// foldHelp fits the help of a command into a terminal. Examples are unchanged: they work as
// typed.
func foldHelp(text string, width int) string {
	const heading = "\nExamples:\n"
	before, after, found := strings.Cut(text, heading)
	if !found {
		return term.Reflow(text, width)
	}
	examples, rest, _ := strings.Cut(after, "\n\n")
	return term.Reflow(before, width) + heading + examples + "\n\n" + term.Reflow(rest, width)
}

// flagError returns the error of an invalid flag.
func flagError(cmd *cobra.Command, err error) error {
	hint := HelpHint(cmd)
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		if near := suggestFlags(cmd, name); len(near) > 0 {
			hint = suggest.Question(near...)
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return Usagef(hint, "invalid --%s %q: expected %s", flag.Name, invalid.GetValue(), flagNoun(flag.Value.Type()))
	}
	return Usagef(hint, "%v", err)
}

// flagNoun describes the values of a type of flags.
func flagNoun(kind string) string {
	switch kind {
	case "int", "int32", "int64", "count":
		return "an integer"
	case "uint", "uint32", "uint64":
		return "an integer of 0 or more"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 10m"
	}
	return "a " + kind
}

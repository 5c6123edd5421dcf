package clitest

import (
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// maxShort is the limit on the length of Short, in characters.
const maxShort = 60

// CheckHelp checks the descriptions of all commands of a tree: Short is an imperative
// of at most 60 characters, Long is present, and every line of Example that starts
// the program is a valid command line. newRoot returns a new tree at each call,
// because flags keep the values of an earlier command line.
func CheckHelp(t *testing.T, newRoot func() *cobra.Command) {
	t.Helper()
	walk(newRoot(), func(cmd *cobra.Command) {
		t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "_"), func(t *testing.T) {
			checkTexts(t, cmd)
			for _, words := range exampleCommands(cmd) {
				checkCommandLine(t, newRoot(), words)
			}
		})
	})
}

// walk calls f for a command and all below it.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, f)
	}
}

func checkTexts(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	short := []rune(cmd.Short)
	switch {
	case len(short) == 0:
		t.Error("Short is missing")
	case len(short) > maxShort:
		t.Errorf("Short has %d characters, more than %d: %q", len(short), maxShort, cmd.Short)
	case !unicode.IsUpper(short[0]) || strings.HasSuffix(cmd.Short, "."):
		t.Errorf("Short is not an imperative without a full stop: %q", cmd.Short)
	}
	if cmd.Long == "" {
		t.Error("Long is missing")
	}
	for line := range strings.Lines(cmd.Long) {
		if prose := !strings.HasPrefix(line, " "); prose && len([]rune(line)) > 100 {
			t.Errorf("a line of Long has more than 100 characters: %q", line)
		}
	}
	if len(exampleCommands(cmd)) == 0 {
		t.Errorf("Example has no command line of %s", cmd.Root().Name())
	}
}

// exampleCommands returns the command lines of the program in the example of cmd, in
// words.
func exampleCommands(cmd *cobra.Command) (list [][]string) {
	for line := range strings.Lines(cmd.Example) {
		for _, words := range shellCommands(line) {
			if words[0] == cmd.Root().Name() {
				list = append(list, words[1:])
			}
		}
	}
	return list
}

// checkCommandLine checks that flags and arguments of a command line are accepted.
func checkCommandLine(t *testing.T, root *cobra.Command, words []string) {
	t.Helper()
	cmd, rest, err := root.Find(words)
	if err != nil {
		t.Errorf("%q: %v", words, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", words, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%q: %v", words, err)
	}
}

// shellCommands splits a shell line into commands, and those into words. It supports
// the syntax that examples use: quotes, pipes, redirections, assignments and $(…).
func shellCommands(line string) (commands [][]string) {
	var words []string
	var word strings.Builder
	inWord, skip := false, false
	endWord := func() {
		switch {
		case !inWord:
		case skip:
			skip = false // the file name of a redirection
		case len(words) == 0 && isAssignment(word.String()):
		default:
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '\'', '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				end = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+end])
			inWord = true
			i += end + 1
		case ' ', '\t', '\n':
			endWord()
		case '|', ')':
			endCommand()
		case '>', '<':
			if strings.HasPrefix(line[i:], "<(") {
				endCommand()
				i++
				continue
			}
			endWord()
			skip = true
		case '$':
			if strings.HasPrefix(line[i:], "$(") {
				word.Reset()
				inWord = false
				i++
				continue
			}
			fallthrough
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	endCommand()
	return commands
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name == strings.ToUpper(name) && !strings.HasPrefix(name, "-")
}

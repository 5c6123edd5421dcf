package cmdutil

import (
	"strings"

	"github.com/spf13/cobra"
)

// exitCodesKey is the annotation that holds the exit codes of a command, one a line.
const exitCodesKey = "exit-codes"

// ExitCodes returns annotations that document the exit codes that are specific to a
// command. Each text is a code and its meaning, such as "8 a property failed".
func ExitCodes(texts ...string) map[string]string {
	return map[string]string{exitCodesKey: strings.Join(texts, "\n")}
}

// AddExitCodes completes the descriptions of a command and all below it: it appends
// the exit codes to those of commands that do something.
func AddExitCodes(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		AddExitCodes(sub)
	}
	if cmd.HasSubCommands() || cmd.RunE == nil {
		return
	}
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n\n" + Wrap("Exit codes: "+strings.Join(exitCodes(cmd), ", ")+".", 86, "")
}

// exitCodes returns the exit codes of a command in ascending order.
func exitCodes(cmd *cobra.Command) []string {
	own := map[string]string{}
	for text := range strings.Lines(cmd.Annotations[exitCodesKey]) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(text), " ")
		own[code] = meaning
	}
	remote := cmd.Flags().Lookup("addr") != nil
	var codes []string
	for _, c := range []struct {
		code, meaning string
		applies       bool
	}{
		{"0", "success", true},
		{"1", "error", true},
		{"2", "invalid command line or file", true},
		{"3", "no server or no leader reached", remote},
		{"4", "not found", remote},
		{"5", "conflict", remote && !readsState(cmd)},
		{"6", "", false},
		{"7", "", false},
		{"8", "", false},
		{"130", "interrupted", true},
	} {
		if meaning, ok := own[c.code]; ok {
			c.meaning, c.applies = meaning, true
		}
		if c.applies {
			codes = append(codes, c.code+" "+c.meaning)
		}
	}
	return codes
}

// Wrap breaks a text into lines of at most width columns, each with an indent.
func Wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		size := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+size > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += size
	}
	return b.String()
}

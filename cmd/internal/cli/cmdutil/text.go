package cmdutil

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Thousands formats a count with separators.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Times formats a number of occurrences.
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Thousands(n) + " times"
}

// ParseAssignments parses values of --var, each NAME=VALUE. The last value of a name
// wins. It fails with a usage error.
func ParseAssignments(list []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, Usagef("use --var NAME=VALUE", "invalid --var %q: expected NAME=VALUE", text)
		}
		vars[name] = value
	}
	return vars, nil
}

// FormatBytes formats a number of bytes with a unit.
func FormatBytes(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// JoinOrNone formats a list for tables.
func JoinOrNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// ReplicasOn formats a number of replicas on a cluster.
func ReplicasOn(cluster string, replicas int) string {
	return fmt.Sprintf("%s ×%s", cluster, Thousands(replicas))
}

// ShellCommand returns the command line as a shell reads it.
func ShellCommand(args []string) string {
	words := []string{"cede"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// RepeatableCommand returns the command that a report states as its origin. It omits
// --resume: the finished runs that this flag refers to are removed with the last one, and a
// report that was continued equals one that was not interrupted.
func RepeatableCommand(args []string) string {
	return ShellCommand(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--resume" || a == "--resume=true" }))
}

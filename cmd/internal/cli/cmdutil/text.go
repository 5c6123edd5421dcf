package cmdutil

import (
	"fmt"
	"strconv"
	"strings"
)

// Thousands writes a count as people read it.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Times counts occasions.
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Thousands(n) + " times"
}

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

// FormatBytes is a number of bytes as people read it.
func FormatBytes(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// JoinOrNone is a list as tables show it.
func JoinOrNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// ReplicasOn is a cluster with how many replicas are meant.
func ReplicasOn(cluster string, replicas int) string {
	return fmt.Sprintf("%s ×%s", cluster, Thousands(replicas))
}

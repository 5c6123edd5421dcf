package cmdutil

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DetailLines formats the details of an error: a list has its name on one line and
// each element on a line below.
func DetailLines(details map[string]any) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(details)) {
		switch v := details[key].(type) {
		case nil:
		case []any:
			if len(v) == 0 {
				continue
			}
			if key != "Problems" {
				lines = append(lines, key+":")
			}
			for _, e := range v {
				text := FormatDetail(e)
				if key != "Problems" {
					text = "  " + text
				}
				lines = append(lines, text)
			}
		default:
			lines = append(lines, key+": "+FormatDetail(v))
		}
	}
	return lines
}

// FormatDetail formats a value on one line.
func FormatDetail(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		message, ok := anyOf(v, "Message", "message").(string)
		if !ok {
			break
		}
		if path, _ := anyOf(v, "Path", "path").(string); path != "" {
			message = path + ": " + message
		}
		if remedy, _ := anyOf(v, "Remedy", "remedy").(string); remedy != "" {
			message += "; " + remedy
		}
		return message
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.Trim(string(text), `"`)
}

func anyOf(m map[string]any, names ...string) any {
	for _, name := range names {
		if v, ok := m[name]; ok {
			return v
		}
	}
	return nil
}

// withoutDetails removes the parts of a message that the lines above it repeat.
func withoutDetails(message string, lines []string) string {
	cut := len(message)
	for _, l := range lines {
		if at := strings.Index(message, strings.TrimSpace(l)); at > 0 {
			cut = min(cut, at)
		}
	}
	return strings.TrimRight(message[:cut], " :;(")
}

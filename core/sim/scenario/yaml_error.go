package scenario

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine matches the line prefix of the library's messages.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// explainYAML returns the line and the text of a message of the YAML library. The
// library counts lines from 0 in its parser and from 1 in its scanner. If the error
// is at the end of a value, it reports the start of that value, and it reports no
// line for some errors.
func explainYAML(message string, text []byte) (line int, reason string) {
	found := yamlLine.FindStringSubmatch(message)
	line, _ = strconv.Atoi(found[1])
	reason = strings.TrimPrefix(message, found[0])
	switch {
	case strings.HasPrefix(reason, "unknown anchor '"):
		name, _, _ := strings.Cut(strings.TrimPrefix(reason, "unknown anchor '"), "'")
		line = lineWith(text, 1, regexp.MustCompile(`(?:^|[\s\[,{])\*`+regexp.QuoteMeta(name)))
	case reason == "found a tab character that violates indentation":
		line = lineWith(text, line, regexp.MustCompile(`^ *\t`))
		reason = "found a tab in the indentation"
	case fromParser.MatchString(reason):
		line++
	}
	lines := bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) + 1
	return min(max(line, 1), lines), reason
}

// fromParser matches messages of the library's parser, as opposed to its scanner.
var fromParser = regexp.MustCompile(`^did not find expected (?:',' or|'-' indicator|<|key|node content)|^found (?:duplicate %|incompatible YAML|undefined tag handle)`)

// lineWith returns the first line at or after a number that matches the pattern, or that
// number if none does.
func lineWith(text []byte, from int, pattern *regexp.Regexp) int {
	number := 0
	for line := range bytes.Lines(text) {
		if number++; number >= from && pattern.Match(line) {
			return number
		}
	}
	return from
}

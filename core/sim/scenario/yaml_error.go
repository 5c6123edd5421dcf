package scenario

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine finds the line in the library's words.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// explainYAML finds the line that a message of the YAML library is about. The
// library counts the lines of its parser from 0 and those of its scanner from
// 1, names the start of what it was reading where the end is the trouble, and
// some lines not at all.
func explainYAML(message string, text []byte) (line int, what string) {
	found := yamlLine.FindStringSubmatch(message)
	line, _ = strconv.Atoi(found[1])
	what = strings.TrimPrefix(message, found[0])
	switch {
	case strings.HasPrefix(what, "unknown anchor '"):
		name, _, _ := strings.Cut(strings.TrimPrefix(what, "unknown anchor '"), "'")
		line = lineWith(text, 1, regexp.MustCompile(`(?:^|[\s\[,{])\*`+regexp.QuoteMeta(name)))
	case what == "found a tab character that violates indentation":
		line = lineWith(text, line, regexp.MustCompile(`^ *\t`))
		what = "found a tab, which may not indent"
	case fromParser.MatchString(what):
		line++
	}
	lines := bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) + 1
	return min(max(line, 1), lines), what
}

// fromParser matches what the library's parser says, rather than its scanner.
var fromParser = regexp.MustCompile(`^did not find expected (?:',' or|'-' indicator|<|key|node content)|^found (?:duplicate %|incompatible YAML|undefined tag handle)`)

// lineWith is the first line from a number on that matches.
func lineWith(text []byte, from int, what *regexp.Regexp) int {
	number := 0
	for line := range bytes.Lines(text) {
		if number++; number >= from && what.Match(line) {
			return number
		}
	}
	return from
}

package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A scan moves through the lines of a manifest.
type scan struct {
	lines  []string
	line   int    // from 1
	rest   []rune // of the line, from the position
	column int    // from 1
}

func (r *reader) scanAt(line, column int) scan {
	s := scan{lines: r.lines, line: line, column: column}
	if line >= 1 && line <= len(r.lines) {
		if all := []rune(r.lines[line-1]); column-1 <= len(all) {
			s.rest = all[column-1:]
		}
	}
	return s
}

func (s *scan) skip(n int) {
	n = min(n, len(s.rest))
	s.rest, s.column = s.rest[n:], s.column+n
}

// skipSpace moves to the next character that is not white space. It returns false at the
// end of the file.
func (s *scan) skipSpace() bool {
	for {
		n := slices.IndexFunc(s.rest, func(c rune) bool { return !isSpace(c) })
		if n >= 0 {
			s.skip(n)
			return true
		}
		if s.line >= len(s.lines) {
			return false
		}
		s.line, s.column, s.rest = s.line+1, 1, []rune(s.lines[s.line])
	}
}

func isSpace(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// locate returns the place of a character of a scalar. YAML folds and indents white space;
// the other characters of a scalar are those of its text, in the same order. If a character
// differs, as in an alias, the place is that of the last one that was found.
func (r *reader) locate(n *yaml.Node, text []rune, offset int) Place {
	s := r.scanAt(n.Line, n.Column)
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		s = r.scanAt(n.Line+1, 1) // the line of the node holds the indicator
	} else {
		for len(s.rest) > 0 && (n.Anchor != "" && s.rest[0] == '&' || n.Style&yaml.TaggedStyle != 0 && s.rest[0] == '!') {
			end := slices.IndexFunc(s.rest, isSpace)
			if end < 0 {
				end = len(s.rest)
			}
			s.skip(end)
			s.skipSpace()
		}
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			s.skip(1)
		}
	}
	for i, c := range text {
		switch {
		case isSpace(c) && i == offset:
			return r.at(s.line, s.column)
		case isSpace(c):
			continue
		}
		length := s.find(c, n.Style)
		if i >= offset || length == 0 {
			break
		}
		s.skip(length)
	}
	return r.at(s.line, s.column)
}

// find moves to a character of a scalar, and returns the number of characters that write it,
// or 0 if another one follows.
func (s *scan) find(c rune, style yaml.Style) int {
	for s.skipSpace() {
		switch {
		case style&yaml.SingleQuotedStyle != 0 && c == '\'':
			return 2
		case style&yaml.DoubleQuotedStyle == 0 || s.rest[0] != '\\':
			if s.rest[0] == c {
				return 1
			}
			return 0
		case len(s.rest) < 2 || strings.ContainsRune("ntr \r", s.rest[1]):
			s.skip(2) // white space, or a line that is continued
		default:
			return max(2, map[rune]int{'x': 4, 'u': 6, 'U': 10}[s.rest[1]])
		}
	}
	return 0
}

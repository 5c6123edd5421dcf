package guestlog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns text as one line of printable characters, at most n bytes and a mark if it
// was cut. Control characters are replaced because a terminal would execute them.
func Clean(text string, n int) string {
	cut := len(text) > n
	if cut {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
	if cut {
		text += " ..."
	}
	return text
}

package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Style renders emphasis. The zero value renders plain text.
type Style struct{ on bool }

// Colour renders emphasis with colours.
var Colour = Style{on: true}

// Emphasis is a kind of emphasis.
type Emphasis string

// Styles of text. Plain is without emphasis.
const (
	Plain Emphasis = ""
	Bold  Emphasis = "\x1b[1m"
	Dim   Emphasis = "\x1b[2m"
	Red   Emphasis = "\x1b[31m"
	Green Emphasis = "\x1b[32m"
)

const reset = "\x1b[0m"

// Text returns text with an emphasis.
func (s Style) Text(e Emphasis, text string) string {
	if !s.on || e == Plain || text == "" {
		return text
	}
	return string(e) + text + reset
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// StyleFor returns the style for a stream: colours if it is a terminal with colours,
// unless the user disabled them (NO_COLOR, TERM=dumb).
func StyleFor(terminal bool, getenv func(string) string) Style {
	return Style{on: terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Width returns the number of columns of the terminal behind w; 0 if it is not a terminal.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := xterm.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

package term

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// DefaultWidth is the number of columns of a terminal of unknown width.
const DefaultWidth = 80

// leastColumns is the least number of columns in which the text of a cell is folded. A cell
// with fewer columns continues below its row.
const leastColumns = 24

// Fold breaks the lines of a text that are wider than width columns at spaces. The rest of
// the last cell of a row continues below the beginning of that cell, and the rest of other
// lines with a deeper indent. Words, such as paths and digests, are not broken, and neither are
// commands of cede on a line of their own: they work as copied. Escape sequences of styles have
// no width.
func Fold(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		content, end := strings.CutSuffix(line, "\n")
		foldLine(&b, content, width)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func foldLine(b *strings.Builder, line string, width int) {
	if Columns(line) <= width || IsCommand(line) {
		b.WriteString(line)
		return
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	hang, last := indent+2, lastCell(line)
	head := line
	switch {
	case last == 0: // one cell
	case Columns(line[:last]) <= width-leastColumns:
		hang, last = Columns(line[:last]), 0
	default:
		hang = indent + 4
		head = strings.TrimRight(line[:last], " ")
	}
	fold(b, head, 0, hang, width)
	if last > 0 {
		b.WriteString("\n" + strings.Repeat(" ", hang))
		fold(b, line[last:], hang, hang, width)
	}
}

// IsCommand reports whether a line is an indented command of cede without an explanation.
func IsCommand(line string) bool {
	const indent, program = columnGap, "cede "
	command := strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, indent) && strings.HasPrefix(command, program) && !strings.Contains(command, columnGap)
}

// lastCell returns the offset of the last cell of a row, which two spaces or more separate
// from the previous one; 0: the line has one cell.
func lastCell(line string) int {
	at := strings.LastIndex(strings.TrimRight(line, " "), columnGap)
	if at < 0 || strings.TrimSpace(line[:at]) == "" {
		return 0
	}
	return at + len(columnGap)
}

// fold writes the words of a text from a column, which is that of the first word. The gaps
// between words in one line are retained. A word that is too wide for a line stays in its line.
func fold(b *strings.Builder, text string, column, hang, width int) {
	for first := true; text != ""; first = false {
		word := strings.TrimLeft(text, " ")
		gap := text[:len(text)-len(word)]
		if end := strings.IndexByte(word, ' '); end >= 0 {
			word = word[:end]
		}
		text = text[len(gap)+len(word):]
		size := Columns(word)
		if !first && size > 0 && column+len(gap)+size > width && hang+size <= width {
			b.WriteString("\n" + strings.Repeat(" ", hang))
			column, gap = hang, ""
		}
		b.WriteString(gap + word)
		column += len(gap) + size
	}
}

// Columns returns the width of a line without the escape sequences of styles. Wide characters,
// such as those of Chinese and emoji, have two columns, and combining ones none.
func Columns(line string) int {
	n := 0
	for line != "" {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexByte(line, 'm')
			if end < 0 {
				return n
			}
			line = line[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns the width of a character. Characters of ambiguous width have one column,
// as in terminals of western languages.
func runeColumns(r rune) int {
	if r < 0x300 { // most text
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Reflow fills the paragraphs of a text that are wider than width columns. Indented lines,
// such as tables and examples, are folded one by one.
func Reflow(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	flush := func() {
		joined := strings.Join(paragraph, "\n")
		wide, plain := false, true
		for _, line := range paragraph {
			wide = wide || Columns(line) > width
			plain = plain && !strings.HasPrefix(line, " ") && !strings.Contains(line, columnGap)
		}
		if wide && plain {
			fold(&b, strings.Join(paragraph, " "), 0, 0, width)
		} else {
			b.WriteString(Fold(joined, width))
		}
		paragraph = paragraph[:0]
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && len(paragraph) == 0 {
			b.WriteByte('\n')
		}
		if line != "" {
			paragraph = append(paragraph, line)
			continue
		}
		if len(paragraph) > 0 {
			flush()
			b.WriteByte('\n')
		}
	}
	if len(paragraph) > 0 {
		flush()
	}
	return b.String()
}

// A FoldWriter folds the lines that are written to it. Flush writes the last line if that is
// not terminated.
type FoldWriter struct {
	w     io.Writer
	width int
	rest  []byte
}

// NewFoldWriter returns a writer that folds lines to width columns and writes them to w.
func NewFoldWriter(w io.Writer, width int) *FoldWriter { return &FoldWriter{w: w, width: width} }

// Write folds the complete lines of b.
func (f *FoldWriter) Write(b []byte) (int, error) {
	f.rest = append(f.rest, b...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	_, err := io.WriteString(f.w, Fold(string(f.rest[:end]), f.width))
	f.rest = append(f.rest[:0], f.rest[end:]...)
	return len(b), err
}

// Flush writes the rest.
func (f *FoldWriter) Flush() error {
	_, err := io.WriteString(f.w, Fold(string(f.rest), f.width))
	f.rest = nil
	return err
}

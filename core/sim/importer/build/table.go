package build

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cede-scheduler/cede/core/model"
)

// maxRow bounds one row of a file, so that a stray quote does not consume the rest.
const maxRow = 1 << 20

// A Table reads a file row by row: CSV, or text with another separator and without quotes.
// It holds one row at a time. Errors are collected with the line, see Problems.
type Table struct {
	Problems
	names  []string // of the columns
	absent []string // required columns that the file lacks, quoted
	row    []string // valid until the next call of Next
	csv    *csv.Reader
	budget *rowLimiter
	lines  *Lines // of a table without quotes; else nil
	sep    string
	closer io.Closer
	reader *Reader // of a table with quotes
	report *Report // for a note if the file is cut off; may be nil
}

// rowLimiter is a reader that fails if too many bytes are read for one row.
type rowLimiter struct {
	r    io.Reader
	left int
}

var errLongRow = fmt.Errorf("a row longer than %d bytes; a quote may be missing", maxRow)

func (b *rowLimiter) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRow
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

// Table opens a CSV file. If columns is empty, the first line names the columns;
// otherwise the file has no such line.
func (s Source) Table(name string, columns ...string) (*Table, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	b := &rowLimiter{r: r}
	t := &Table{Problems: Problems{file: name}, names: columns, csv: csv.NewReader(b), budget: b, closer: r, reader: r}
	t.csv.ReuseRecord = true
	t.csv.FieldsPerRecord = len(columns) // 0: the number of the first line
	return t.readHeader()
}

// Separated opens a file whose columns are separated by sep and never quoted. The first
// line names the columns.
func (s Source) Separated(name, sep string) (*Table, error) {
	l, err := s.Lines(name)
	if err != nil {
		return nil, err
	}
	return (&Table{Problems: Problems{file: name}, lines: l, sep: sep, closer: l}).readHeader()
}

// readHeader reads the names of the columns, unless they are set.
func (t *Table) readHeader() (*Table, error) {
	if len(t.names) > 0 {
		return t, nil
	}
	if !t.Next() {
		_ = t.Close() // opened for reading
		if t.Err() == nil {
			return nil, &FileError{t.file, 1, errors.New("empty; expected a first line with column names")}
		}
		return nil, t.Err()
	}
	t.names = slices.Clone(t.row)
	for i := range t.names {
		t.names[i] = strings.TrimSpace(t.names[i])
	}
	return t, nil
}

// Columns returns the names of the columns.
func (t *Table) Columns() []string { return t.names }

// Close closes the file. Rows that were read are no longer valid.
func (t *Table) Close() error { return t.closer.Close() }

// Next reads a row. It returns false at the end or if reading cannot continue. Rows with an
// error are followed by the remaining rows, so that all errors are found.
func (t *Table) Next() bool {
	for t.start() {
		more, valid := t.read()
		if !more || valid {
			return more
		}
	}
	return false
}

// read reads a row. It returns more = false at the end of the file or at an error that ends
// reading, and valid = false if the row has an error.
func (t *Table) read() (more, valid bool) {
	if t.lines != nil {
		return t.readSeparated()
	}
	t.budget.left = maxRow
	row, err := t.csv.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		t.row = row
		t.line, _ = t.csv.FieldPos(0)
		return true, true
	case errors.Is(err, io.EOF):
		if t.line > 0 {
			t.reader.noteCut(t.report, t.file, t.line)
		}
	case errors.Is(err, csv.ErrFieldCount):
		t.line, _ = t.csv.FieldPos(0)
		t.Fail("%d columns; expected %d", len(row), t.csv.FieldsPerRecord)
		return true, false
	case errors.As(err, &parse):
		t.line = parse.StartLine
		t.stop("%w", parse.Err)
	default:
		t.line++
		t.stop("cannot continue reading: %w", err)
	}
	return false, false
}

func (t *Table) readSeparated() (more, valid bool) {
	for t.lines.Next() {
		if strings.TrimSpace(t.lines.Text) == "" {
			continue
		}
		t.line = t.lines.line
		t.row = strings.Split(t.lines.Text, t.sep)
		if len(t.names) > 0 && len(t.row) != len(t.names) {
			t.Fail("%d columns; expected %d: a value may contain %q", len(t.row), len(t.names), t.sep)
			return true, false
		}
		return true, true
	}
	if err := t.lines.Err(); err != nil {
		t.line = t.lines.line
		t.stop("%w", errors.Unwrap(err))
	}
	return false, false
}

// Column returns the position of a required column.
func (t *Table) Column(name string) int {
	i := slices.Index(t.names, name)
	if i < 0 {
		t.missing(name)
		return 0
	}
	return i
}

// missing records that a column is missing. All of them are one error.
func (t *Table) missing(name string) {
	t.line = 1
	t.absent = append(t.absent, strconv.Quote(name))
	if len(t.absent) > 1 {
		t.list = t.list[:len(t.list)-1]
	}
	noun := "column"
	if len(t.absent) > 1 {
		noun = "columns"
	}
	t.stop("missing %s %s; columns: %s", noun, strings.Join(t.absent, ", "), printable(strings.Join(t.names, ", ")))
}

// maxShown is the number of characters of a file that a message shows.
const maxShown = 300

// printable returns the beginning of a text without characters that control terminals.
func printable(text string) string {
	shown := []rune(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, text))
	return string(shown[:min(len(shown), maxShown)])
}

// Optional returns the position of the first of several columns that exists, or -1.
func (t *Table) Optional(names ...string) int {
	for _, name := range names {
		if i := slices.Index(t.names, name); i >= 0 {
			return i
		}
	}
	return -1
}

// Text returns a value of the row, or "" for the column -1.
func (t *Table) Text(col int) string {
	if col < 0 {
		return ""
	}
	return t.row[col]
}

// Invalid records an error for a value, unless there is one for this column already.
func (t *Table) Invalid(col int, expected string) {
	if t.column == col {
		return
	}
	t.column = col
	t.add("%s is %.80q; expected %s", t.names[col], t.row[col], expected)
}

// Amount returns a whole amount of a resource.
func (t *Table) Amount(col int) int64 {
	n, err := strconv.ParseInt(t.row[col], 10, 64)
	if err != nil || n < 0 || n > model.MaxAmount {
		t.Invalid(col, "an integer, 0 or more")
		return 0
	}
	return n
}

// Scaled returns a decimal amount times scale, rounded to an integer. It is at most
// model.MaxAmount.
func (t *Table) Scaled(col int, scale float64) int64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(t.row[col]), 64)
	// NaN fails the comparison.
	if err != nil || !(f >= 0 && f*scale <= model.MaxAmount) {
		t.Invalid(col, "a number, 0 or more, that fits into the unit of the resource")
		return 0
	}
	return int64(math.Round(f * scale))
}

// ID returns a numeric identifier.
func (t *Table) ID(col int) uint64 {
	n, err := strconv.ParseUint(t.row[col], 10, 63)
	if err != nil {
		t.Invalid(col, "an integer")
	}
	return n
}

// Small returns a whole number from 0 to most. Traces that a data frame wrote contain whole
// numbers with decimals, such as 8.0.
func (t *Table) Small(col, most int) int {
	text := strings.TrimSpace(t.row[col])
	if whole, zeros, ok := strings.Cut(text, "."); ok && strings.Trim(zeros, "0") == "" && zeros != "" {
		text = whole
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		t.Invalid(col, fmt.Sprintf("an integer, 0 to %d", most))
		return 0
	}
	return n
}

// Fraction returns a non-negative decimal, and false if the field is empty.
func (t *Table) Fraction(col int) (f float64, given bool) {
	if t.row[col] == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(t.row[col], 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e6 {
		t.Invalid(col, "a number, 0 or more")
		return 0, false
	}
	return f, true
}

// Seconds returns a time in seconds as nanoseconds, and false if the field is empty.
func (t *Table) Seconds(col int) (ns int64, given bool) {
	if t.row[col] == "" {
		return 0, false
	}
	ns, ok := ParseSeconds(t.row[col])
	if !ok {
		t.Invalid(col, "seconds, 0 or more")
	}
	return ns, ok
}

// timeLayouts are the notations of a date and a time without a zone.
var timeLayouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05"}

// Time returns a date and a time in UTC, and false if the field is empty or one of the
// words that mean that there is none. A whole number is a Unix time in seconds.
func (t *Table) Time(col int, none ...string) (at time.Time, given bool) {
	text := strings.TrimSpace(t.Text(col))
	if text == "" || slices.Contains(none, text) {
		return time.Time{}, false
	}
	at, ok := ParseTime(text)
	if !ok {
		t.Invalid(col, "a time such as 2026-01-31 12:00:00, between 1970 and 2200")
	}
	return at, ok
}

// ParseTime parses a date and a time without a zone as UTC, or a Unix time in seconds.
func ParseTime(text string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if len(text) <= 10 || text[10] != layout[10] {
			continue // an error of package time takes memory
		}
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() <= 2200 {
			return at, true
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= maxUnix {
		return time.Unix(n, 0).UTC(), true
	}
	return time.Time{}, false
}

// maxUnix is the end of the year 2200.
const maxUnix = 7_289_654_399

// MaxSeconds ensures that nanoseconds, and sums of two, fit into an int64.
const MaxSeconds = 4e9

// ParseSeconds parses decimal seconds exactly and truncates after the ninth digit.
func ParseSeconds(text string) (ns int64, ok bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > MaxSeconds || dotted && fraction == "" {
		return 0, false
	}
	ns = int64(n)
	for i := range 9 {
		ns *= 10
		if i < len(fraction) {
			ns += int64(fraction[i] - '0')
		}
	}
	for i := range len(fraction) {
		if fraction[i] < '0' || fraction[i] > '9' {
			return 0, false
		}
	}
	return ns, true
}

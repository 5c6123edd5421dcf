package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// maxRow bounds one row of a file, so that a stray quote does not consume the rest.
const maxRow = 1 << 20

// table reads a CSV file row by row. The first error ends next; err holds it with the
// file and the line.
type table struct {
	file    string
	names   []string // of the columns
	row     []string // valid until the next call of next
	line    int      // line of row
	err     error
	csv     *csv.Reader
	budget  *rowLimiter
	closers *reader
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

// table opens a CSV file. If columns is empty, the first line names the columns;
// otherwise the file has no such line.
func (s Source) table(name string, columns ...string) (*table, error) {
	r, err := s.open(name)
	if err != nil {
		return nil, err
	}
	b := &rowLimiter{r: r}
	t := &table{file: name, names: columns, csv: csv.NewReader(b), budget: b, closers: r}
	t.csv.ReuseRecord = true
	t.csv.FieldsPerRecord = len(columns) // 0: the number of the first line
	if len(columns) > 0 {
		return t, nil
	}
	if !t.next() {
		_ = t.Close()
		if t.err == nil {
			t.err = &FileError{name, 1, errors.New("empty; expected a first line with column names")}
		}
		return nil, t.err
	}
	t.names = slices.Clone(t.row)
	t.names[0] = strings.TrimPrefix(t.names[0], "\ufeff")
	return t, nil
}

// Close closes the file. Rows that were read are no longer valid.
func (t *table) Close() error { return t.closers.Close() }

// next reads a row. It returns false at the end or after an error.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	t.budget.left = maxRow
	row, err := t.csv.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		t.row = row
		t.line, _ = t.csv.FieldPos(0)
		return true
	case errors.Is(err, io.EOF):
	case errors.Is(err, csv.ErrFieldCount):
		t.line, _ = t.csv.FieldPos(0)
		t.fail("%d columns; expected %d", len(row), t.csv.FieldsPerRecord)
	case errors.As(err, &parse):
		t.line = parse.StartLine
		t.fail("%w", parse.Err)
	default:
		t.line++
		t.fail("cannot continue reading: %w", err)
	}
	return false
}

// fail records an error of the current row, unless there is one already.
func (t *table) fail(format string, args ...any) {
	if t.err == nil {
		t.err = &FileError{t.file, t.line, fmt.Errorf(format, args...)}
	}
}

// column returns the position of a required column.
func (t *table) column(name string) int {
	i := slices.Index(t.names, name)
	if i < 0 {
		t.fail("missing column %q; columns: %.300s", name, strings.Join(t.names, ", "))
		return 0
	}
	return i
}

func (t *table) text(col int) string { return t.row[col] }

// invalid records an error for a value.
func (t *table) invalid(col int, expected string) {
	t.fail("%s is %.80q; expected %s", t.names[col], t.row[col], expected)
}

// amount returns a whole amount of a resource.
func (t *table) amount(col int) int64 {
	n, err := strconv.ParseInt(t.row[col], 10, 64)
	if err != nil || n < 0 || n > model.MaxAmount {
		t.invalid(col, "an integer, 0 or more")
		return 0
	}
	return n
}

// id returns a numeric identifier.
func (t *table) id(col int) uint64 {
	n, err := strconv.ParseUint(t.row[col], 10, 63)
	if err != nil {
		t.invalid(col, "an integer")
	}
	return n
}

// small returns a whole number from 0 to most.
func (t *table) small(col, most int) int {
	n, err := strconv.Atoi(t.row[col])
	if err != nil || n < 0 || n > most {
		t.invalid(col, fmt.Sprintf("an integer, 0 to %d", most))
		return 0
	}
	return n
}

// fraction returns a non-negative decimal, and false if the field is empty.
func (t *table) fraction(col int) (f float64, given bool) {
	if t.row[col] == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(t.row[col], 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e6 {
		t.invalid(col, "a number, 0 or more")
		return 0, false
	}
	return f, true
}

// seconds returns a time in seconds as nanoseconds, and false if the field is empty.
func (t *table) seconds(col int) (ns int64, given bool) {
	if t.row[col] == "" {
		return 0, false
	}
	ns, ok := parseSeconds(t.row[col])
	if !ok {
		t.invalid(col, "seconds, 0 or more")
	}
	return ns, ok
}

// maxSeconds ensures that nanoseconds, and sums of two, fit into an int64.
const maxSeconds = 4e9

// parseSeconds parses decimal seconds exactly and truncates after the ninth digit.
func parseSeconds(text string) (ns int64, ok bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > maxSeconds || dotted && fraction == "" {
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

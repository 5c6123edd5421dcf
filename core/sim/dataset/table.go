package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Table is one table of a data set. Its rows are of one type, whose fields are the
// columns.
type Table struct {
	name    string
	row     reflect.Type
	columns []column
	parquet func(w io.Writer, t *Table, rows *csv.Reader) error
}

// column is a field of a row.
type column struct {
	name     string
	index    []int // of the field in the row type
	optional bool  // the zero value is null
}

// Tables returns all tables. The caller must not modify them.
func Tables() []Table { return tables }

// Name returns the name of the table, which is that of its files.
func (t *Table) Name() string { return t.name }

// Row returns a row without values. Its type documents the columns.
func (t *Table) Row() any { return reflect.Zero(t.row).Interface() }

func newTable[R any](name string) Table {
	return Table{name: name, row: reflect.TypeFor[R](), columns: columnsOf(reflect.TypeFor[R](), nil), parquet: writeParquet[R]}
}

// columnsOf lists the columns of a row type and of its embedded types.
func columnsOf(row reflect.Type, at []int) (columns []column) {
	for i := range row.NumField() {
		f := row.Field(i)
		index := append(append([]int{}, at...), i)
		if f.Anonymous {
			columns = append(columns, columnsOf(f.Type, index)...)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		columns = append(columns, column{name, index, strings.Contains(rest, "optional")})
	}
	return columns
}

// header returns the names of the columns.
func (t *Table) header() []string {
	names := make([]string, len(t.columns))
	for i := range t.columns {
		names[i] = t.columns[i].name
	}
	return names
}

// format writes the cells of a row. A null is an empty cell.
func (t *Table) format(cells []string, row reflect.Value) {
	for i := range t.columns {
		c := &t.columns[i]
		if f := row.FieldByIndex(c.index); c.optional && f.IsZero() {
			cells[i] = ""
		} else {
			cells[i] = formatCell(f)
		}
	}
}

// formatCell writes a number with the fewest digits that parse to the same number.
func formatCell(f reflect.Value) string {
	switch f.Kind() {
	case reflect.String:
		return f.String()
	case reflect.Int64:
		return strconv.FormatInt(f.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(f.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(f.Float(), 'g', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(f.Bool())
	}
	panic("dataset: no format for " + f.Kind().String())
}

// parse is the reverse of format.
func (t *Table) parse(row reflect.Value, cells []string) error {
	for i := range t.columns {
		c := &t.columns[i]
		f := row.FieldByIndex(c.index)
		if c.optional && cells[i] == "" {
			f.SetZero()
		} else if err := parseCell(f, cells[i]); err != nil {
			return fmt.Errorf("table %s, column %s: %w", t.name, c.name, err)
		}
	}
	return nil
}

func parseCell(f reflect.Value, cell string) (err error) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(cell)
	case reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(cell, 10, 64)
		f.SetInt(n)
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(cell, 10, 64)
		f.SetUint(n)
	case reflect.Float64:
		var n float64
		n, err = strconv.ParseFloat(cell, 64)
		f.SetFloat(n)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(cell)
		f.SetBool(b)
	default:
		panic("dataset: no format for " + f.Kind().String())
	}
	return err
}

// WriteCSV writes the header and the rows of the parts in their order.
func (t *Table) WriteCSV(w io.Writer, parts []*Part) error {
	header := csv.NewWriter(w)
	if err := header.Write(t.header()); err != nil {
		return err
	}
	header.Flush()
	if err := header.Error(); err != nil {
		return err
	}
	rows, err := t.rows(parts)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, rows)
	return err
}

// WriteParquet writes the rows of the parts in their order. Columns are compressed with
// Snappy.
func (t *Table) WriteParquet(w io.Writer, parts []*Part) error {
	rows, err := t.rows(parts)
	if err != nil {
		return err
	}
	r := csv.NewReader(rows)
	r.ReuseRecord = true
	r.FieldsPerRecord = len(t.columns)
	return t.parquet(w, t, r)
}

// rows returns the rows of the parts as CSV without a header.
func (t *Table) rows(parts []*Part) (io.Reader, error) {
	var all []io.Reader
	for _, p := range parts {
		r, err := p.rows(t.name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return io.MultiReader(all...), nil
}

// Rows held in memory, and rows of a row group of a Parquet file. A reader of one column
// loads a row group at a time.
const (
	batchRows = 1 << 10
	groupRows = 1 << 17
)

func writeParquet[R any](w io.Writer, t *Table, rows *csv.Reader) error {
	out := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows), parquet.CreatedBy("cede", "", ""))
	batch := make([]R, 0, batchRows)
	for more := true; more; {
		cells, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			more = false
		case err != nil:
			return fmt.Errorf("table %s: %w", t.name, err)
		default:
			var row R
			if err := t.parse(reflect.ValueOf(&row).Elem(), cells); err != nil {
				return err
			}
			batch = append(batch, row)
		}
		if len(batch) == batchRows || !more {
			if _, err := out.Write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return out.Close()
}

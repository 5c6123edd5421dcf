package dataset

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"reflect"
)

// A Part holds the rows of one run in temporary files. It must be closed.
type Part struct {
	files map[string]*partFile // by table
}

type partFile struct {
	table *Table
	file  *os.File
	buf   *bufio.Writer
	csv   *csv.Writer
	cells []string
}

// NewPart creates the temporary files in a folder; "" is that of the system.
func NewPart(dir string) (*Part, error) {
	p := &Part{files: map[string]*partFile{}}
	for i := range tables {
		f, err := os.CreateTemp(dir, ".cede-rows-*")
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		buf := bufio.NewWriterSize(f, 1<<16)
		p.files[tables[i].name] = &partFile{&tables[i], f, buf, csv.NewWriter(buf), make([]string, len(tables[i].columns))}
	}
	return p, nil
}

// add writes a row, which is a pointer to the row type of the table.
func (p *Part) add(table int, row any) error {
	f := p.files[tables[table].name]
	f.table.format(f.cells, reflect.ValueOf(row).Elem())
	return f.csv.Write(f.cells)
}

// flush writes buffered rows.
func (p *Part) flush() error {
	var errs []error
	for i := range tables {
		f := p.files[tables[i].name]
		f.csv.Flush()
		errs = append(errs, f.csv.Error(), f.buf.Flush())
	}
	return errors.Join(errs...)
}

// rows returns the rows of a table. It invalidates the reader of an earlier call.
func (p *Part) rows(table string) (io.Reader, error) {
	f := p.files[table]
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(f.file, 1<<16), nil
}

// Close removes the files.
func (p *Part) Close() error {
	var errs []error
	for i := range tables {
		if f := p.files[tables[i].name]; f != nil {
			errs = append(errs, f.file.Close(), os.Remove(f.file.Name()))
		}
	}
	return errors.Join(errs...)
}

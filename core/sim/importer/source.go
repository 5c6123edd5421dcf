package importer

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source is the location of a trace: a folder, or one of the files of a folder.
type Source struct {
	FS   fs.FS  // the folder
	File string // the named file; "" to search the folder

	progress *progress // nil: not observed
}

// Open returns the Source of a folder or a file.
func Open(name string) (Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Source{}, err
	}
	if info.IsDir() {
		return Source{FS: os.DirFS(name)}, nil
	}
	return Source{FS: os.DirFS(filepath.Dir(name)), File: filepath.Base(name)}, nil
}

// find returns the name of an existing file, plain or with .gz, or "" if there is none.
func (s Source) find(name string) string {
	for _, n := range []string{name, name + ".gz"} {
		if info, err := fs.Stat(s.FS, n); err == nil && !info.IsDir() {
			return n
		}
	}
	return ""
}

// must is like find for a required file. It returns an error if the file does not exist.
func (s Source) must(name string) (string, error) {
	if n := s.find(name); n != "" {
		return n, nil
	}
	return "", fmt.Errorf("%s: no such file, plain or with .gz (found: %s)", name, s.listing())
}

// match returns the files that match a pattern, sorted by name. If a file exists both
// plain and with .gz, it returns the plain one.
func (s Source) match(patterns ...string) []string {
	var names []string
	for _, p := range patterns {
		plain, _ := fs.Glob(s.FS, p)
		packed, _ := fs.Glob(s.FS, p+".gz")
		names = append(names, plain...)
		for _, n := range packed {
			if !slices.Contains(plain, strings.TrimSuffix(n, ".gz")) {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// listing returns the names of a few files in the folder, for messages.
func (s Source) listing() string {
	entries, _ := fs.ReadDir(s.FS, ".")
	const most = 8
	var names []string
	for _, e := range entries {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// stem returns a file's name without folder, .gz and ext.
func stem(name, ext string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ext)
}

// reader reads a file and decompresses it.
type reader struct {
	io.Reader
	closers []io.Closer
}

func (r *reader) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// open opens a file and decompresses it if its name ends in .gz.
func (s Source) open(name string) (*reader, error) {
	f, err := s.openFile(name)
	if err != nil {
		return nil, err
	}
	r := &reader{Reader: bufio.NewReaderSize(f, 1<<16), closers: []io.Closer{f}}
	if !strings.HasSuffix(name, ".gz") {
		return r, nil
	}
	z, err := gzip.NewReader(r.Reader)
	if err != nil {
		_ = f.Close()
		return nil, &FileError{File: name, Err: fmt.Errorf("not a gzip file: %w", err)}
	}
	r.Reader = z
	r.closers = append(r.closers, z)
	return r, nil
}

// Progress is the progress of an import: the bytes of the files as they are stored. Total
// counts the files that are known to follow, so that it may grow.
type Progress struct{ Read, Total int64 }

// progress counts the bytes of the files of a Source.
type progress struct {
	Progress
	show     func(Progress)
	expected map[string]bool // files whose size is in Total
}

// Observe returns a Source that calls show with the progress, on the goroutine that reads.
func (s Source) Observe(show func(Progress)) Source {
	s.progress = &progress{show: show, expected: map[string]bool{}}
	return s
}

// expect adds files that will be read to the total. Names may be empty, and files without a
// size, such as a stream, do not count.
func (s Source) expect(names ...string) {
	p := s.progress
	if p == nil {
		return
	}
	for _, name := range names {
		if name == "" || p.expected[name] {
			continue
		}
		p.expected[name] = true
		if info, err := fs.Stat(s.FS, name); err == nil && info.Size() > 0 {
			p.Total += info.Size()
		}
	}
}

// counted is a file whose bytes are counted as they are read.
type counted struct {
	io.ReadCloser
	progress *progress
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.progress.Read += int64(n)
	c.progress.show(c.progress.Progress)
	return n, err
}

// openFile opens a file as it is stored.
func (s Source) openFile(name string) (io.ReadCloser, error) {
	f, err := s.FS.Open(name)
	if err != nil || s.progress == nil {
		return f, err
	}
	s.expect(name)
	return counted{f, s.progress}, nil
}

// FileError is an error in one file of a trace.
type FileError struct {
	File string // relative to the folder of the trace
	Line int    // 0 if the error concerns the whole file
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// filesError returns an error that names the files read; most traces have one.
func (b *builder) filesError(err error) error {
	return &FileError{File: strings.Join(b.report.Files, ", "), Err: err}
}

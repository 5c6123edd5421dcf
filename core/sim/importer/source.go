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

// Source is where a trace lies: a folder, or one of its files with the others
// beside it.
type Source struct {
	FS   fs.FS  // the folder
	File string // the file that was named, if one was; "": look for it
}

// Open makes a Source of what a user types: a folder or a file.
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

// find returns the name under which a file is there, plain or with .gz; "" when
// it is not.
func (s Source) find(name string) string {
	for _, n := range []string{name, name + ".gz"} {
		if info, err := fs.Stat(s.FS, n); err == nil && !info.IsDir() {
			return n
		}
	}
	return ""
}

// must is find for a file that the import cannot do without.
func (s Source) must(name string) (string, error) {
	if n := s.find(name); n != "" {
		return n, nil
	}
	return "", fmt.Errorf("%s: no such file here, plain or with .gz (there is %s)", name, s.listing())
}

// match lists files by pattern, in order of their names; where a file is there
// plain and with .gz, the plain one.
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

// listing names a few files of the folder, for messages.
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

// stem is a file's name without folder, .gz and ext.
func stem(name, ext string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ext)
}

// reader reads a file, unpacked.
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

// open unpacks what ends in .gz.
func (s Source) open(name string) (*reader, error) {
	f, err := s.FS.Open(name)
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

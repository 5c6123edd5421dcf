package build

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultMaxBytes is the default of Source.MaxBytes.
const DefaultMaxBytes = 8 << 30

// Source is the location of a trace: a folder, or one of the files of a folder.
type Source struct {
	FS   fs.FS  // the folder
	File string // the named file; "" to search the folder

	// MaxBytes bounds the bytes of each compressed file after decompression. A small
	// file can otherwise fill the memory. 0: DefaultMaxBytes.
	MaxBytes int64

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

// Find returns the name of an existing file, plain or with .gz, or "" if there is none.
func (s Source) Find(name string) string {
	for _, n := range []string{name, name + ".gz"} {
		if info, err := fs.Stat(s.FS, n); err == nil && !info.IsDir() {
			return n
		}
	}
	return ""
}

// Must is like Find for a required file. It returns an error if the file does not exist.
func (s Source) Must(name string) (string, error) {
	if n := s.Find(name); n != "" {
		return n, nil
	}
	return "", fmt.Errorf("%s: no such file, plain or with .gz (found: %s)", name, s.Listing())
}

// Only returns the named file, or the only file of the folder that matches a pattern. Kind
// is the noun for messages.
func (s Source) Only(kind string, patterns ...string) (string, error) {
	if s.File != "" {
		return s.File, nil
	}
	switch files := s.Match(patterns...); len(files) {
	case 0:
		return "", fmt.Errorf("no %s in this folder: expected %s (found: %s)", kind, strings.Join(patterns, " or "), s.Listing())
	case 1:
		return files[0], nil
	default:
		return "", fmt.Errorf("several files (%s); pass one of them", strings.Join(files, ", "))
	}
}

// Match returns the files that match a pattern, sorted by name. If a file exists both
// plain and with .gz, it returns the plain one.
func (s Source) Match(patterns ...string) []string {
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

// Listing returns the names of a few files in the folder, for messages.
func (s Source) Listing() string {
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

// Stem returns a file's name without folder, .gz and ext.
func Stem(name, ext string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ext)
}

// A Reader reads a file and decompresses it.
type Reader struct {
	*bufio.Reader
	closers []io.Closer
	end     *lastByte
}

// A lastByte is a reader that records the last byte that was read.
type lastByte struct {
	r    io.Reader
	byte byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.byte = p[n-1]
	}
	return n, err
}

// newReader returns a buffered reader of r that is closed with the closers.
func newReader(r io.Reader, closers ...io.Closer) *Reader {
	end := &lastByte{r: r}
	return &Reader{bufio.NewReaderSize(end, 1<<16), closers, end}
}

// noteCut adds a note to a report if the last line of a file has no line end. It must be
// called at the end of the file. line is the number of its last line; report may be nil.
func (r *Reader) noteCut(report *Report, file string, line int) {
	if report != nil && r.end.byte != '\n' && r.end.byte != '\r' {
		report.Note(1, fmt.Sprintf("last line without a line end (%s:%d)", file, line),
			"imported as it is; if the file was cut off, the line is incomplete, and all later ones are missing")
	}
}

// Close closes the file.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// maxHead is the number of bytes that detect the encoding of a file.
const maxHead = 6

// unsupported lists the first bytes of files that cannot be read, with the remedy.
var unsupported = []struct{ magic, message string }{
	{"\x28\xb5\x2f\xfd", "compressed with zstd, which is not supported; decompress the file first (unzstd)"},
	{"\xfd7zXZ\x00", "compressed with xz, which is not supported; decompress the file first (unxz)"},
	{"BZh", "compressed with bzip2, which is not supported; decompress the file first (bunzip2)"},
	{"PK\x03\x04", "a zip archive, which is not supported; extract it first (unzip)"},
	{"\xff\xfe", "UTF-16 text, which is not supported; convert the file to UTF-8 (iconv)"},
	{"\xfe\xff", "UTF-16 text, which is not supported; convert the file to UTF-8 (iconv)"},
}

// Open opens a file, decompresses it if it is a gzip file, and skips a byte order mark. It
// returns an error that names the file for encodings that are not supported. All importers
// read files through it, so that the limit on decompressed bytes holds for all of them.
func (s Source) Open(name string) (*Reader, error) {
	f, err := s.openFile(name)
	if err != nil {
		return nil, err
	}
	r := newReader(f, f)
	head, _ := r.Peek(maxHead)
	if strings.HasSuffix(name, ".gz") || bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r.Reader)
		if err != nil {
			_ = f.Close()
			return nil, &FileError{File: name, Err: fmt.Errorf("not a gzip file: %w", err)}
		}
		most := s.MaxBytes
		if most == 0 {
			most = DefaultMaxBytes
		}
		r = newReader(&decompressed{z, most, most}, f, z)
		head, _ = r.Peek(maxHead)
	}
	for _, u := range unsupported {
		if bytes.HasPrefix(head, []byte(u.magic)) {
			_ = r.Close() // opened for reading
			return nil, &FileError{File: name, Err: errors.New(u.message)}
		}
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = r.Discard(3)
	}
	return r, nil
}

// decompressed returns an error instead of more bytes than the limit.
type decompressed struct {
	r          io.Reader
	left, most int64
}

func (d *decompressed) Read(p []byte) (int, error) {
	if d.left <= 0 {
		var one [1]byte
		if n, err := d.r.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("the decompressed file is larger than %s; if that is expected, raise the limit with --max-size", formatBytes(d.most))
	}
	n, err := d.r.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	return n, err
}

// formatBytes returns a number of bytes with the largest unit that divides it.
func formatBytes(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
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

// Expect adds files that will be read to the total. Names may be empty, and files without a
// size, such as a stream, do not count.
func (s Source) Expect(names ...string) {
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

// Files returns the names of the files that were read or that Expect announced. It returns nil
// for a Source that is not observed.
func (s Source) Files() []string {
	if s.progress == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.progress.expected))
}

// counted is a file that counts its bytes as they are read.
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
	s.Expect(name)
	return counted{f, s.progress}, nil
}

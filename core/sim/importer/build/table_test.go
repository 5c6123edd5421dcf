package build

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
)

func sourceOf(name, text string) Source {
	return Source{FS: fstest.MapFS{name: {Data: []byte(text)}}}
}

// bomb returns a gzip file of so many zero bytes.
func bomb(t *testing.T, size int64) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// The limit holds for every reader, also if the name of a compressed file does not end in .gz.
func TestSource_BoundsDecompressedFiles(t *testing.T) {
	t.Parallel()
	packed := bomb(t, 4<<20)
	for _, name := range []string{"x.csv.gz", "x.csv"} {
		src := sourceOf(name, packed)
		src.MaxBytes = 1 << 20
		r, err := src.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") || !strings.Contains(err.Error(), "--max-size") {
			t.Errorf("%s: %v", name, err)
		}
		if n != 1<<20 {
			t.Errorf("%s: read %d bytes", name, n)
		}
		src.MaxBytes = 4 << 20
		r, err = src.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); n != 4<<20 || err != nil {
			t.Errorf("%s: a file of exactly the limit: read %d bytes, %v", name, n, err)
		}
	}
}

func TestSource_NamesUnsupportedEncodings(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]string{
		"\x28\xb5\x2f\xfdxxxx": "zstd", "\xfd7zXZ\x00xx": "xz", "BZh91AY": "bzip2", "PK\x03\x04xxxx": "zip", "\xff\xfea\x00": "UTF-16", "\xfe\xff\x00a": "UTF-16",
	} {
		_, err := sourceOf("x", start).Open("x")
		if _, ok := errors.AsType[*FileError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error about %s", start, err, want)
		}
	}
}

func TestTable_ReadsMarksAndLineEnds(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(Source) (*Table, error){
		"csv":  func(s Source) (*Table, error) { return s.Table("x") },
		"pipe": func(s Source) (*Table, error) { return s.Separated("x", "|") },
	} {
		sep := map[string]string{"csv": ",", "pipe": "|"}[name]
		src := sourceOf("x", strings.ReplaceAll("\xef\xbb\xbfa|b\r\n1|2\r\n\r\n3|4", "|", sep))
		tab, err := open(src)
		if err != nil {
			t.Fatal(err)
		}
		a, b := tab.Column("a"), tab.Column("b")
		var got []string
		for tab.Next() {
			got = append(got, fmt.Sprintf("%d:%d-%d", tab.Line(), tab.Amount(a), tab.Amount(b)))
		}
		if want := "[2:1-2 4:3-4]"; fmt.Sprint(got) != want || tab.Err() != nil {
			t.Errorf("%s: %v, %v; want %s", name, got, tab.Err(), want)
		}
	}
}

// Every invalid value of every row is reported, and reading stops after a number of errors.
func TestTable_ReportsAllErrors(t *testing.T) {
	t.Parallel()
	tab, err := sourceOf("x", "a,b\n1,2\n-1,NaN\n3,4,5\n1e400,1\n9223372036854775808,Inf\n").Table("x")
	if err != nil {
		t.Fatal(err)
	}
	a, b := tab.Column("a"), tab.Column("b")
	for tab.Next() {
		tab.Amount(a)
		tab.Scaled(b, 1000)
		tab.Fail("not reported: the row has an error already, or has none") // the first row
	}
	all, ok := errors.AsType[FileErrors](tab.Err())
	if !ok {
		t.Fatalf("%v", tab.Err())
	}
	var lines []int
	for _, e := range all {
		lines = append(lines, e.Line)
	}
	if want := "[2 3 3 4 5 6 6]"; fmt.Sprint(lines) != want {
		t.Errorf("errors in lines %v, want %s:\n%v", lines, want, all)
	}

	tab, err = sourceOf("x", "a\n"+strings.Repeat("x\n", 1000)).Table("x")
	if err != nil {
		t.Fatal(err)
	}
	for tab.Next() {
		tab.Amount(0)
	}
	if all, _ := errors.AsType[FileErrors](tab.Err()); len(all) != maxProblems+1 || !strings.Contains(all[maxProblems].Error(), "reading stopped") {
		t.Errorf("%v", tab.Err())
	}
}

func TestObjects_NumberLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[\n{\"a\":1},\n{\"a\":\n2}\n]": "2 3 <nil>",
		"{}\n\n{}":                      "1 3 <nil>",
		"\n [ ]":                        "<nil>",
		"[\n{}]\n[{}]":                  "2 x:2: the list is followed by other text; expected one list",
		"[{}] x":                        "1 x:1: the list is followed by other text; expected one list",
		"[{}":                           "1 x:1: not valid JSON: the file ends inside an object or a list: unexpected EOF",
		"[\n{},\nnope]":                 "2 x:3: not valid JSON: invalid character 'o' in literal null (expecting 'u')",
	} {
		o, err := sourceOf("x", text).Objects("x")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for o.Next() {
			got += fmt.Sprint(o.Line(), " ")
		}
		if got += fmt.Sprint(o.Err()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestTable_MissingColumnsAreOneError(t *testing.T) {
	t.Parallel()
	src := Source{FS: fstest.MapFS{"t.csv": {Data: []byte("a\x1b[31m,b\n1,2\n")}}}
	table, err := src.Table("t.csv")
	if err != nil {
		t.Fatal(err)
	}
	table.Column("x")
	table.Column("b")
	table.Column("y")
	if err := table.Err(); err == nil || err.Error() != "t.csv:1: missing columns \"x\", \"y\"; columns: a\ufffd[31m, b" {
		t.Errorf("%v", err)
	}
}

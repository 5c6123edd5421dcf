package importer

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
	"testing/fstest"
)

// The files that are expected are in the total before they are read, and stored bytes are
// counted, not decompressed ones.
func TestSource_ObserveCountsStoredBytes(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte("a,b\n"), 100_000))
	_ = z.Close()
	var last Progress
	src := Source{FS: fstest.MapFS{"a.csv.gz": {Data: packed.Bytes()}, "b.csv": {Data: []byte("x,y\n")}}}.Observe(func(p Progress) {
		if p.Read < last.Read || p.Total < last.Total {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	})
	src.expect("a.csv.gz", "b.csv", "", "absent.csv")
	for _, name := range []string{"a.csv.gz", "b.csv"} {
		r, err := src.open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
		if want := int64(packed.Len() + 4); last.Total != want {
			t.Errorf("%s: %+v, want a total of %d", name, last, want)
		}
	}
	if last.Read != last.Total {
		t.Errorf("%+v at the end", last)
	}
}

// Raw files of the Google trace are all expected before the first one is read; the share
// would otherwise fall when the large ones follow the small ones.
func TestGoogle_ExpectsAllFiles(t *testing.T) {
	t.Parallel()
	var first *Progress
	src := Source{FS: fstest.MapFS{
		"machine_events/part-00000-of-00001.csv": {Data: []byte("0,1,0,p,0.5,0.5\n")},
		"task_events/part-00000-of-00500.csv":    {Data: []byte("0,,1,0,,0,u,0,9,0.1,0.1,0.0,0\n1000000,,1,0,1,1,u,0,9,0.1,0.1,0.0,0\n")},
	}}.Observe(func(p Progress) {
		if first == nil {
			first = &p
		}
	})
	_, _, err := Google(Options{}, src)
	if first == nil || first.Total != 83 {
		t.Errorf("first %+v, %v", first, err)
	}
}

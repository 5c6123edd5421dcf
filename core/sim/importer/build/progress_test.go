package build

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
	src.Expect("a.csv.gz", "b.csv", "", "absent.csv")
	for _, name := range []string{"a.csv.gz", "b.csv"} {
		r, err := src.Open(name)
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

package logfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/agent/logfile"
)

// For any sequence of writes by any number of successive writers, an offset reads the
// byte that was written there, or the first one that is retained.
func TestStream_OffsetsStayTrue(t *testing.T) {
	root, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, fmt.Sprint(runs))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		base := filepath.Join(dir, "stdout")
		size, keep := rapid.Int64Range(1, 20).Draw(t, "size"), rapid.IntRange(1, 4).Draw(t, "keep")
		var all []byte
		for range rapid.IntRange(1, 3).Draw(t, "writers") {
			w, err := logfile.NewWriter(base, size, keep)
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 8).Draw(t, "writes") {
				b := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "bytes")
				if n, err := w.Write(b); n != len(b) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(b), err)
				}
				all = append(all, b...)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		start, end, err := logfile.Bounds(base)
		if err != nil || end != int64(len(all)) || end-start > size*int64(keep) || end-start < min(end, size*int64(keep-1)) {
			t.Fatalf("of %d bytes %d to %d are retained, in %d files of %d: %v", len(all), start, end, keep, size, err)
		}
		at := rapid.Int64Range(0, int64(len(all))+5).Draw(t, "offset")
		var got []byte
		from := int64(-1)
		for b := make([]byte, 7); ; {
			n, f, err := logfile.ReadAt(base, b, at)
			if err != nil {
				t.Fatal(err)
			}
			if from < 0 {
				from = f
			}
			if n == 0 {
				break
			}
			got, at = append(got, b[:n]...), f+int64(n)
		}
		if !bytes.Equal(got, all[from:]) || from < start {
			t.Fatalf("from %d read %q, want %q", from, got, all[from:])
		}
	})
}

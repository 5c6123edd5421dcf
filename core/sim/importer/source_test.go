package importer

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen_FolderOrFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "log.swf.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, _ = z.Write([]byte("; MaxNodes: 1\n; MaxProcs: 4\n1 10 0 100 2 -1 -1 2 -1 -1 1 1 1 1 3 1 -1 -1\n"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{dir, name} {
		src, err := Open(n)
		if err != nil {
			t.Fatal(err)
		}
		if s, _, err := SWF(Options{}, src); err != nil || s.Name != "log" || len(s.Jobs) != 1 {
			t.Errorf("import of %s = %v, %v", n, s, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("opened a file that is not there")
	}
}

package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite_ReplacesFileAndRemovesTemporary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"a long text first", "short", ""} {
		if err := Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("content %q, error %v; want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("directory holds %v; want one file", entries)
	}
}

func TestWrite_KeepsOldContentIfItFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := Write(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("after"), 0o600); err == nil {
		t.Error("Write returned nil although the temporary file could not be opened")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before" {
		t.Errorf("content %q, error %v; want the old content", got, err)
	}
	if err := Write(filepath.Join(t.TempDir(), "none", "x"), nil, 0o600); err == nil {
		t.Error("Write returned nil for a missing directory")
	}
}

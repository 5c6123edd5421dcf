package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

// What was there is replaced whole, and nothing stays beside it.
func TestWrite_ReplacesAndLeavesNothingBeside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"a long one, to begin with", "short", ""} {
		if err := Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v: want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("beside it there is %v", entries)
	}
}

// Where it cannot be written, what was there stays.
func TestWrite_ThatFailsLeavesWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := Write(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("after"), 0o600); err == nil {
		t.Error("written over a folder")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
	if err := Write(filepath.Join(t.TempDir(), "none", "x"), nil, 0o600); err == nil {
		t.Error("written into a folder that is not there")
	}
}

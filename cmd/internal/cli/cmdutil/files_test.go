package cmdutil

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Only the owner can read a file that may hold secrets; an existing file keeps its
// mode.
func TestWritePrivate_IsReadableByOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	for name, before := range map[string]os.FileMode{"new": 0, "shared": 0o640} {
		path, want := filepath.Join(dir, name), os.FileMode(0o600)
		if before != 0 {
			want = before
			if err := os.WriteFile(path, nil, before); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, before); err != nil { // independent of the umask
				t.Fatal(err)
			}
		}
		err := OS{}.WritePrivate(path, func(w io.Writer) error {
			_, err := io.WriteString(w, "x")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestOS_WriteIsAtomic(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := OS{}.Write(name, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if text, _ := os.ReadFile(name); !errors.Is(err, broken) || string(text) != "before" {
		t.Errorf("after a failure (%v) the file holds %q", err, text)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	after := func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }
	if err := (OS{}).Write(link, after); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if text, _ := os.ReadFile(name); err != nil || string(text) != "after" || info.Mode().Perm() != 0o600 {
		t.Errorf("through a link the file holds %q with mode %v", text, info.Mode())
	}
	if err := (OS{}).Write("/dev/null", after); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What may hold secrets is its owner's alone; a file that is there keeps its mode.
func TestWritePrivate_IsTheOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	for name, before := range map[string]os.FileMode{"new": 0, "shared": 0o640} {
		path, want := filepath.Join(dir, name), os.FileMode(0o600)
		if before != 0 {
			want = before
			if err := os.WriteFile(path, nil, before); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, before); err != nil { // whatever the umask
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

func TestPeerAddress(t *testing.T) {
	for address, good := range map[string]bool{"nonsense": false, "": false, ":4647": false, "h:0": false, "h:x": false, "10.0.0.1:4647": true, "[::1]:4647": true} {
		if err := peerAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

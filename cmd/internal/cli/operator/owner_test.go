//go:build unix

package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
)

// Root runs the command, and the server runs as another user.
func TestRecoverServer_KeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("requires root, which can write files for other users")
	}
	const user = 65534
	dir := t.TempDir()
	s, err := storage.Open(storage.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ServerID(func() string { return "here" })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	eachFile(t, dir, func(path string, _ fs.FileInfo) {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	})
	// The command opens and closes the databases, which writes files, and refuses then.
	if _, err := recoverServer(dir, []raft.Server{{ID: "elsewhere", Address: "10.0.0.1:4647"}}); err == nil {
		t.Error("a list without the server itself was accepted")
	}
	eachFile(t, dir, func(path string, info fs.FileInfo) {
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != user || owner.Gid != user {
			t.Errorf("%s belongs to user %d and group %d, want %d", path, owner.Uid, owner.Gid, user)
		}
	})
}

// eachFile calls f for every file and directory in dir, which is included.
func eachFile(t *testing.T, dir string, f func(path string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			f(path, info)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

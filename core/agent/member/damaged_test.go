package member

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/lease"
)

// Damage to a file of the data directory is refused by name. Both files may be removed;
// the errors describe what that changes.
func TestFaults_DamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := secretIn(dir); err != nil {
		t.Fatal(err)
	}
	leases, err := openLeaseStore(dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	leases.manager.Resize(map[string]int64{"cpu": 1000})
	request := lease.Request{Key: lease.Key{Pool: "p", ID: "a"}, Resources: map[string]int64{"cpu": 10}, TTL: int64(time.Minute)}
	if _, err := leases.manager.Grant(1, request); err != nil {
		t.Fatal(err)
	}
	leases.dirty = true
	if err := leases.save(); err != nil {
		t.Fatal(err)
	}
	opened := map[string]func() error{
		"secret":      func() error { _, err := secretIn(dir); return err },
		"leases.json": func() error { _, err := openLeaseStore(dir, time.Minute); return err },
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(opened) {
		t.Fatalf("%d files, error %v: add further ones to the list", len(files), err)
	}
	for name, open := range opened {
		path := filepath.Join(dir, name)
		intact, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(intact)
		flipped[len(flipped)/3] ^= 1
		for damage, content := range map[string][]byte{
			"truncated to 0": {}, "truncated to a third": intact[:len(intact)/3], "zeroed": make([]byte, len(intact)), "bit flipped": flipped,
		} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := open(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "removed") && !strings.Contains(err.Error(), "remove the file") {
				t.Errorf("%s %s: error %v", name, damage, err)
			}
		}
		if err := os.WriteFile(path, intact, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(); err != nil {
			t.Errorf("%s restored: %v", name, err)
		}
	}
}

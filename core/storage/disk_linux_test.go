package storage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// smallDisk mounts a tmpfs of the given size in megabytes.
func smallDisk(t *testing.T, megabytes string) (dir string, grow func(megabytes string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("requires mounting a small disk: run the tests as root, or in `unshare -rm`")
	}
	dir = t.TempDir()
	if err := unix.Mount("cede-test", dir, "tmpfs", 0, "size="+megabytes+"m"); err != nil {
		t.Skipf("requires mounting a small disk, which is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(megabytes string) {
		if err := unix.Mount("cede-test", dir, "tmpfs", unix.MS_REMOUNT, "size="+megabytes+"m"); err != nil {
			t.Fatal(err)
		}
	}
}

// Writes are refused before the disk is full and accepted again once there is space. The
// default reserve covers background work, including that of opening.
func TestFullDisk_RefusesWritesInTime(t *testing.T) {
	dir, grow := smallDisk(t, "420")
	var a acked
	out := runUntil(t, "fill", dir, &a)
	if !strings.Contains(out, "refused true; again: false") || !strings.Contains(out, "free disk space") {
		t.Errorf("child printed %s", out)
	}
	a.checkBy(t, dir, raftlog.Config{})
	before := a.last
	grow("600")
	p := spawn(t, "append", dir)
	p.read(func(line string) bool { return a.parse(line) && a.last < before+100 })
	p.kill(func(line string) { a.parse(line) })
	if a.last < before+100 {
		t.Errorf("with free space again, the log went from %d to %d", before, a.last)
	}
	a.checkBy(t, dir, raftlog.Config{})
}

// Without the reserve the process may die in the middle of a write. Acknowledged entries
// must survive that.
func TestFullDisk_LosesNothingWithoutReserve(t *testing.T) {
	dir, grow := smallDisk(t, "110")
	var a acked
	out := runUntil(t, "fill to the last byte", dir, &a)
	t.Logf("after entry %d the child printed %.200s", a.last, out)
	grow("500") // compaction requires the same space again
	a.check(t, dir)
}

// Badger writes tables when it closes, which a full disk does not hold. The process ends
// without them, and the journal has every entry.
func TestFullDisk_ClosesWithoutFault(t *testing.T) {
	disk, _ := smallDisk(t, "200")
	dir := filepath.Join(disk, "server")
	out := run(t, "close when full", dir)
	if strings.Count(out, "not enough disk space") != 4 || strings.Contains(out, "died") {
		t.Errorf("child printed %.3000s", out)
	}
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(storage.Config{Dir: dir, Log: storagetest.SmallLogConfig()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if last, err := s.Log().LastIndex(); err != nil || last != 1000 {
		t.Errorf("last entry %d, error %v; want 1000", last, err)
	}
}

// Tables of an interrupted compaction do not prevent opening, which deletes them.
func TestFullDisk_OpensIfUnlistedTablesFillIt(t *testing.T) {
	dir, _ := smallDisk(t, "200")
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, storagetest.SmallLogConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(path string, leave uint64) {
		t.Helper()
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, s.Bavail*uint64(s.Bsize)-leave), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "filler"), 60<<20)
	remains := filepath.Join(datadir.Layout{Dir: dir}.Log(), "000099.sst")
	write(remains, 10<<20)
	storagetest.OpenLog(t, dir)
	if _, err := os.Stat(remains); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unlisted table still exists: %v", err)
	}
}

// runUntil runs an appending child until it fails and returns its other output.
func runUntil(t *testing.T, role, dir string, a *acked) string {
	t.Helper()
	p := spawn(t, role, dir)
	var b strings.Builder
	p.read(func(line string) bool {
		if !a.parse(line) {
			b.WriteString(line + "\n")
		}
		return true
	})
	if err := p.cmd.Wait(); err != nil {
		b.WriteString("died: " + err.Error() + "\n" + p.err.String())
	}
	return b.String()
}

// Raft does not notice if it deletes the tail of its log and the replacement is refused: it
// would accept nothing from then on. Both succeed or neither.
func TestFullDisk_DeletesTailOnlyIfReplaceable(t *testing.T) {
	dir, _ := smallDisk(t, "300")
	filler := filepath.Join(dir, "filler")
	leave := func(megabytes int) {
		t.Helper()
		if err := os.WriteFile(filler, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filler, make([]byte, s.Bavail*uint64(s.Bsize)-uint64(megabytes)<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := storagetest.OpenLog(t, dir) // requires 48 MB for entries, and 24 MB for votes and deletions
	store := func(term uint64, indexes ...uint64) error {
		var list []*raft.Log
		for _, i := range indexes {
			list = append(list, &raft.Log{Index: i, Term: term, Data: []byte("entry")})
		}
		return l.StoreLogs(list)
	}
	if err := store(1, 1, 2, 3, 4); err != nil {
		t.Fatal(err)
	}
	leave(36)
	if err := l.DeleteRange(3, 4); !errors.Is(err, datadir.ErrNoSpace) {
		t.Errorf("tail was deleted although it cannot be replaced: %v", err)
	}
	if last, err := l.LastIndex(); err != nil || last != 4 {
		t.Errorf("last entry %d, error %v; want 4", last, err)
	}
	leave(80)
	if err := l.DeleteRange(3, 4); err != nil {
		t.Fatal(err)
	}
	leave(36)
	if err := store(2, 3); err != nil {
		t.Errorf("deleted tail cannot be replaced: %v", err)
	}
	if err := store(2, 4); !errors.Is(err, datadir.ErrNoSpace) {
		t.Errorf("append beyond the replacement: %v", err)
	}
}

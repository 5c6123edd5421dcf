package storage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// smallDisk mounts a disk of so many megabytes.
func smallDisk(t *testing.T, megabytes string) (dir string, grow func(megabytes string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small disk is mounted for this: run the tests as root, or in `unshare -rm`")
	}
	dir = t.TempDir()
	if err := unix.Mount("cede-test", dir, "tmpfs", 0, "size="+megabytes+"m"); err != nil {
		t.Skipf("a small disk is mounted for this, and mounting is not allowed here (%v): run the tests where it is", err)
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

// Writing stops before the disk is full, with words for it; once there is
// room it goes on. What is kept free by default is enough for what goes on in
// the background meanwhile, also for that of opening.
func TestFullDisk_RefusesInTime(t *testing.T) {
	dir, grow := smallDisk(t, "420")
	var a acked
	said := runUntil(t, "fill", dir, &a)
	if !strings.Contains(said, "refused true; again: false") || !strings.Contains(said, "make room") {
		t.Errorf("the child said %s", said)
	}
	a.checkBy(t, dir, raftlog.Config{})
	before := a.last
	grow("600")
	p := spawn(t, "append", dir)
	p.read(func(line string) bool { return a.hear(line) && a.last < before+100 })
	p.kill(func(line string) { a.hear(line) })
	if a.last < before+100 {
		t.Errorf("with room again, it went from %d to %d", before, a.last)
	}
	a.checkBy(t, dir, raftlog.Config{})
}

// Without the reserve the process may die in the middle of a write. Nothing
// that was acknowledged dies with it.
func TestFullDisk_LosesNothingWhenItIsFull(t *testing.T) {
	dir, grow := smallDisk(t, "110")
	var a acked
	said := runUntil(t, "fill to the last byte", dir, &a)
	t.Logf("after entry %d the child said %.200s", a.last, said)
	grow("500") // compacting what is there takes as much again
	a.check(t, dir)
}

// Tables that a killed process was writing are no reason to refuse: opening
// makes room of them.
func TestFullDisk_OpensWhereItsOwnRemainsTakeTheRoom(t *testing.T) {
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
		t.Errorf("a table of nobody's is still there: %v", err)
	}
}

// runUntil runs a child that appends until it can no more, and gives what it
// said then.
func runUntil(t *testing.T, role, dir string, a *acked) string {
	t.Helper()
	p := spawn(t, role, dir)
	var b strings.Builder
	p.read(func(line string) bool {
		if !a.hear(line) {
			b.WriteString(line + "\n")
		}
		return true
	})
	if err := p.cmd.Wait(); err != nil {
		b.WriteString("died: " + err.Error() + "\n" + p.err.String())
	}
	return b.String()
}

// Raft does not notice where it cuts the end of its log and what takes its place is
// refused: it would take nothing any more. So both are done, or neither.
func TestFullDisk_AnEndIsDeletedOnlyWhereItCanBeReplaced(t *testing.T) {
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
	l := storagetest.OpenLog(t, dir) // which needs 48 MB for entries, and 24 for votes and deletions
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
		t.Errorf("the end is deleted where nothing can take its place: %v", err)
	}
	if last, err := l.LastIndex(); err != nil || last != 4 {
		t.Errorf("the log ends with %d, %v", last, err)
	}
	leave(80)
	if err := l.DeleteRange(3, 4); err != nil {
		t.Fatal(err)
	}
	leave(36)
	if err := store(2, 3); err != nil {
		t.Errorf("an end that was deleted is not replaced: %v", err)
	}
	if err := store(2, 4); !errors.Is(err, datadir.ErrNoSpace) {
		t.Errorf("and then it goes on: %v", err)
	}
}

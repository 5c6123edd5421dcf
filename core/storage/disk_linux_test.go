package storage_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
// room it goes on.
func TestFullDisk_RefusesInTime(t *testing.T) {
	dir, grow := smallDisk(t, "110")
	var a acked
	said := runUntil(t, "fill", dir, &a)
	if !strings.Contains(said, "refused true; again: false") || !strings.Contains(said, "make room") {
		t.Errorf("the child said %s", said)
	}
	a.check(t, dir)
	before := a.last
	grow("200")
	p := spawn(t, "append", dir)
	p.read(func(line string) bool { return a.hear(line) && a.last < before+100 })
	p.kill(func(line string) { a.hear(line) })
	if a.last < before+100 {
		t.Errorf("with room again, it went from %d to %d", before, a.last)
	}
	a.check(t, dir)
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

package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/core/storage/storagetest/lossy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// powerCut turns the power of the disk off, kills the writer, and returns a copy of what is
// on the disk.
func powerCut(t *testing.T, l *lossy.Disk, writer *process) string {
	t.Helper()
	l.PowerOff()
	writer.kill(func(string) {})
	dir := t.TempDir()
	storagetest.CopyDir(t, l.Dir, dir)
	return dir
}

// Power fails while entries are written. Acknowledged entries must exist afterwards.
func TestPowerLoss_KeepsAcknowledgedEntries(t *testing.T) {
	for range soak.Scale(2) {
		l := lossy.Mount(t, "")
		var a acked
		p := spawn(t, "append", l.At)
		left := 80
		p.read(func(line string) bool {
			if !a.parse(line) {
				t.Fatal(line)
			}
			left--
			return left > 0
		})
		dir := powerCut(t, l, p)
		a.check(t, dir)
		if l.Written() == 0 {
			t.Error("nothing was written to the test file system")
		}
	}
}

// The test file system must actually lose data that was not synced.
func TestPowerLoss_LosesUnsyncedData(t *testing.T) {
	l := lossy.Mount(t, "")
	p := spawn(t, "scribble", l.At)
	p.read(func(line string) bool { return line != "done" })
	seen, err := os.ReadFile(filepath.Join(l.At, "scribble"))
	if err != nil || string(seen) != "unsynced" {
		t.Errorf("before the power failure: %q, %v", seen, err)
	}
	dir := powerCut(t, l, p)
	if left, err := os.ReadFile(filepath.Join(dir, "scribble")); err != nil || strings.Contains(string(left), "unsynced") {
		t.Errorf("after the power failure: %q, %v", left, err)
	}
}

// After a failed sync all writes are refused: the next successful sync would vouch for data
// that never reached the disk.
func TestFailedSync_RefusesLaterWrites(t *testing.T) {
	l := lossy.Mount(t, "")
	var a acked
	var out strings.Builder
	p := spawn(t, "append", l.At)
	left := 40
	p.read(func(line string) bool {
		if !a.parse(line) {
			out.WriteString(line + "\n")
		}
		if left--; left == 0 {
			l.PowerOff()
		}
		return !strings.HasPrefix(line, "error")
	})
	dir := powerCut(t, l, p)
	if text := out.String(); !strings.Contains(text, "fault ") || !strings.Contains(text, "refused false; again: true") {
		t.Errorf("child printed %s", text)
	}
	a.check(t, dir)
}

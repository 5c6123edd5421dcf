package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/core/storage/storagetest/lossy"
)

// powerCut ends the power of a disk, whoever writes dies, and what is on the disk is
// copied to the folder that it gives.
func powerCut(t *testing.T, l *lossy.Disk, writer *process) string {
	t.Helper()
	l.PowerOff()
	writer.kill(func(string) {})
	dir := t.TempDir()
	copyTree(t, l.Dir, dir)
	return dir
}

// The power goes while entries are written. Those that were acknowledged are
// there afterwards, whatever was not synced.
func TestPowerLoss_EveryAcknowledgedEntryIsThere(t *testing.T) {
	for range storagetest.Soak(2) {
		l := lossy.Mount(t, "")
		var a acked
		p := spawn(t, "append", l.At)
		left := 80
		p.read(func(line string) bool {
			if !a.hear(line) {
				t.Fatal(line)
			}
			left--
			return left > 0
		})
		dir := powerCut(t, l, p)
		a.check(t, dir)
		if l.Written() == 0 {
			t.Error("nothing went through the file system")
		}
	}
}

// The rig does lose what nobody synced.
func TestPowerLoss_LosesWhatWasNotSynced(t *testing.T) {
	l := lossy.Mount(t, "")
	p := spawn(t, "scribble", l.At)
	p.read(func(line string) bool { return line != "done" })
	seen, err := os.ReadFile(filepath.Join(l.At, "scribble"))
	if err != nil || string(seen) != "unsynced" {
		t.Errorf("before the power cut: %q, %v", seen, err)
	}
	dir := powerCut(t, l, p)
	if left, err := os.ReadFile(filepath.Join(dir, "scribble")); err != nil || strings.Contains(string(left), "unsynced") {
		t.Errorf("after it: %q, %v", left, err)
	}
}

// A sync that fails ends all writing: the next one that succeeds would vouch
// for what the disk never got.
func TestFailingSync_EndsWriting(t *testing.T) {
	l := lossy.Mount(t, "")
	var a acked
	var said strings.Builder
	p := spawn(t, "append", l.At)
	left := 40
	p.read(func(line string) bool {
		if !a.hear(line) {
			said.WriteString(line + "\n")
		}
		if left--; left == 0 {
			l.PowerOff()
		}
		return !strings.HasPrefix(line, "error")
	})
	dir := powerCut(t, l, p)
	if text := said.String(); !strings.Contains(text, "fault ") || !strings.Contains(text, "refused false; again: true") {
		t.Errorf("the child said %s", text)
	}
	a.check(t, dir)
}

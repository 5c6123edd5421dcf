package storage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// A crash during the deletion of an old snapshot leaves one of its files. That is not
// damage, and the next start deletes it. For one of the newest two snapshots it is damage.
func TestSnapshots_DeletesRemnantsOfOldOnes(t *testing.T) {
	for _, lost := range []string{"meta.json", "state.bin"} {
		dir := t.TempDir()
		storagetest.CopyDir(t, serverImage(t), dir)
		snapshots := filepath.Join(dir, "raft", "snapshots")
		old := filepath.Join(snapshots, "1-300-1700000000000")
		storagetest.CopyDir(t, one(t, dir, "raft/snapshots/*-600-*"), old)
		remove(t, filepath.Join(old, lost))
		if r, err := doctor.Run(t.Context(), dir); err != nil || r.Damaged() {
			t.Errorf("without %s: %+v, %v", lost, r, err)
		}
		s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(old); !os.IsNotExist(err) {
			t.Errorf("without %s: still exists: %v", lost, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		remove(t, filepath.Join(one(t, dir, "raft/snapshots/*-600-*"), lost))
		if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() {
			t.Errorf("one of the newest two without %s: %+v, %v", lost, r, err)
		}
	}
}

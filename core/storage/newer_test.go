package storage_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// Data of a later release is refused and left unchanged. The remedy must not be to move it
// aside, since it is not damaged.
func TestOpen_RefusesLaterFormat(t *testing.T) {
	for name, write := range map[string]func(l datadir.Layout) error{
		"entry":     func(l datadir.Layout) error { return storagetest.MarkAsNewer(l, 2) },
		"log state": func(l datadir.Layout) error { return storagetest.MarkAsNewer(l, 0) },
		"manifest":  newerManifest,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open := func() (*storage.Store, error) {
				return storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
			}
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Log().StoreLogs(storagetest.Entries(1, 3, 1)), s.Close()); err != nil {
				t.Fatal(err)
			}
			if err := write(datadir.Layout{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			_, err = open()
			d, ok := errors.AsType[*datadir.DamageError](err)
			if !ok || !errors.Is(err, datadir.ErrNewer) || !strings.Contains(d.Remedy, "a later one") || strings.Contains(err.Error(), "aside") {
				t.Errorf("%v", err)
			}
			r, err := doctor.Run(t.Context(), dir)
			if err != nil || !strings.Contains(r.Findings[0].Remedy, "a later one") {
				t.Errorf("doctor: %+v, %v", r, err)
			}
		})
	}
}

// newerManifest raises the version in the header of Badger's manifest.
func newerManifest(l datadir.Layout) error {
	path := filepath.Join(l.Log(), "MANIFEST")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := len("Bdgr") + 2
	binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])+1)
	return os.WriteFile(path, b, 0o600)
}

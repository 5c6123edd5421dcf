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
		"entry":     func(l datadir.Layout) error { return markAsNewer(l, 2) },
		"log state": func(l datadir.Layout) error { return markAsNewer(l, 0) },
		"manifest":  newerManifest,
		"directory": func(l datadir.Layout) error { return datadir.Version{Format: datadir.Format + 1}.Write(l) },
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

// A release refuses the directory if it does not support the version of the cluster. It
// does so before it reads any entry.
func TestOpen_RefusesLaterCluster(t *testing.T) {
	dir := t.TempDir()
	open := func(newest uint32) (*storage.Store, error) {
		return storage.Open(storage.Config{Dir: dir, NewestCluster: newest, Log: raftlog.Config{MinFree: -1}})
	}
	s, err := open(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint32{1, 7, 6} {
		if err := s.RecordClusterVersion(version); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = open(6)
	d, ok := errors.AsType[*datadir.DamageError](err)
	if !ok || !errors.Is(err, datadir.ErrNewer) || !strings.Contains(d.Problem, "version 7") || strings.Contains(err.Error(), "aside") {
		t.Errorf("%v", err)
	}
	r, err := doctor.Run(t.Context(), dir)
	if err != nil || r.Damaged() || r.ClusterVersion != 7 || r.Format != datadir.Format {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	if r.CheckCluster(7); r.Damaged() {
		t.Errorf("doctor of the same release: %+v", r)
	}
	if r.CheckCluster(6); !r.Damaged() || r.Findings[0].Remedy != datadir.RemedyNewer {
		t.Errorf("doctor of an earlier release: %+v", r)
	}
	for _, text := range []string{"", "format 2\ncluster 7\n", string(make([]byte, 40))} {
		write(t, filepath.Join(dir, "version"), []byte(text))
		if _, err := open(7); err == nil || !strings.Contains(err.Error(), datadir.RemedyVersion) {
			t.Errorf("version file %q: %v", text, err)
		}
		if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() {
			t.Errorf("version file %q: doctor: %+v, %v", text, r, err)
		}
	}
	remove(t, filepath.Join(dir, "version"))
	if s, err = open(7); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := datadir.ReadVersion(datadir.Layout{Dir: dir}); err != nil || v.Format != datadir.Format {
		t.Errorf("after the upgrade of a directory without the file: %+v, %v", v, err)
	}
}

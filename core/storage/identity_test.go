package storage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// The ID is created once. Without its ID, and an ID without its log, a directory must not
// be mistaken for a new server.
func TestServerID_IsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	open := func() (*storage.Store, error) {
		return storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
	}
	idOf := func(id string) (string, error) {
		t.Helper()
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.ServerID(func() string { return id })
		if id == "first" && err == nil {
			members := raft.Configuration{Servers: []raft.Server{{ID: "first", Address: "10.0.0.1:4647"}}}
			err = s.Log().StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(members)}, {Index: 2, Term: 1}})
		}
		return got, errors.Join(err, s.Close())
	}
	for _, candidate := range []string{"first", "second"} {
		if got, err := idOf(candidate); got != "first" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	path := filepath.Join(dir, "node-id")
	for _, lose := range []func() error{func() error { return os.WriteFile(path, nil, 0o600) }, func() error { return os.Remove(path) }} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		_, err := idOf("third")
		if d, ok := errors.AsType[*datadir.DamageError](err); !ok || d.Path != path || !strings.Contains(d.Remedy, "first at 10.0.0.1:4647") {
			t.Errorf("without the ID: %v", err)
		}
		if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() {
			t.Errorf("doctor: %+v, %v", r, err)
		}
	}
	write(t, path, []byte("first\n"))
	if err := os.Rename(filepath.Join(dir, "raft"), filepath.Join(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	_, err := open()
	if d, ok := errors.AsType[*datadir.DamageError](err); !ok || !strings.Contains(d.Problem, "server first") {
		t.Errorf("without the log: %v", err)
	}
	if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() {
		t.Errorf("doctor: %+v, %v", r, err)
	}
}

// Unreadable content counts as unknown, and the server learns the ID again from its log.
func TestClusterID_IsStoredOrUnknown(t *testing.T) {
	s, err := storage.Open(storage.Config{Dir: t.TempDir(), Log: raftlog.Config{MinFree: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	expect := func(want string) {
		t.Helper()
		if got, err := s.ClusterID(); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	expect("")
	for _, id := range []string{"first", "another"} {
		if err := s.StoreClusterID(id); err != nil {
			t.Fatal(err)
		}
		expect(id)
	}
	if err := os.WriteFile(s.Layout().ClusterID(), make([]byte, 37), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("")
}

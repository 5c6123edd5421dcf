package storage_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
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
	// An ID without a checksum is accepted if the log has it as a member, and gets one.
	write(t, path, []byte("first\n"))
	if r, err := doctor.Run(t.Context(), dir); err != nil || r.Damaged() {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	if got, err := idOf("fourth"); got != "first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil || string(whole) != string(checkedfile.Encode([]byte("first"))) {
		t.Errorf("file holds %q, error %v; want a checksum", whole, err)
	}
	for name, text := range map[string]string{
		"other without checksum": "firsT\n", "cut short": string(whole[:3]), "altered": "g" + string(whole[1:]),
		"two words": "first first\n", "zeroed": string(make([]byte, len(whole))),
	} {
		write(t, path, []byte(text))
		_, err := idOf("fifth")
		if d, ok := errors.AsType[*datadir.DamageError](err); !ok || d.Path != path || !strings.Contains(d.Remedy, "first at 10.0.0.1:4647") {
			t.Errorf("%s: %v", name, err)
		}
		if r, err := doctor.Run(t.Context(), dir); err != nil || len(r.Findings) != 1 || r.Findings[0].Where != path || !strings.Contains(r.Findings[0].Remedy, "first at 10.0.0.1:4647") {
			t.Errorf("%s: doctor: %+v, %v", name, r, err)
		}
	}
	write(t, path, whole)
	if err := os.Rename(filepath.Join(dir, "raft"), filepath.Join(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	_, err = open()
	if d, ok := errors.AsType[*datadir.DamageError](err); !ok || !strings.Contains(d.Problem, "server first") {
		t.Errorf("without the log: %v", err)
	}
	if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() {
		t.Errorf("doctor: %+v, %v", r, err)
	}
}

// Altered content counts as unknown, and the server learns the ID again from its log.
func TestClusterID_IsStoredOrUnknown(t *testing.T) {
	dir := t.TempDir()
	var logged strings.Builder
	s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
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
	path := s.Layout().ClusterID()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if logged.Len() > 0 {
		t.Errorf("an intact file is reported:\n%s", logged.String())
	}
	for name, text := range map[string]string{
		"zeroed": string(make([]byte, 37)), "cut short": string(whole[:4]), "altered": "b" + string(whole[1:]), "of an earlier release": "another\n",
	} {
		logged.Reset()
		write(t, path, []byte(text))
		expect("")
		if !strings.Contains(logged.String(), path) {
			t.Errorf("%s: the log does not name the file:\n%s", name, logged.String())
		}
	}
}

// The key of certificates is created once and is private. A damaged one is refused; without
// it, another one is created.
func TestDecisionKey_IsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	keyOf := func() (string, error) {
		t.Helper()
		s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
		if err != nil {
			t.Fatal(err)
		}
		key, err := s.DecisionKey()
		return string(key), errors.Join(err, s.Close())
	}
	first, err := keyOf()
	if err != nil || len(first) == 0 {
		t.Fatalf("key of %d bytes, %v", len(first), err)
	}
	if again, err := keyOf(); again != first || err != nil {
		t.Errorf("another key after a restart, %v", err)
	}
	path := filepath.Join(dir, "decision-key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[0] ^= 1
	write(t, path, text)
	if _, err := keyOf(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("damaged key: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if other, err := keyOf(); other == first || err != nil {
		t.Errorf("the deleted key was returned, %v", err)
	}
}

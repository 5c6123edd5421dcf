package storage_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// A log, or an ID, of another server is refused: the server would vote twice, or lose
// entries that it has acknowledged. A log of an earlier release gets its owner at the start.
func TestServerID_LogOfAnotherServerIsRefused(t *testing.T) {
	members := raft.Configuration{Servers: []raft.Server{{ID: "one", Address: "10.0.0.1:4647"}, {ID: "two", Address: "10.0.0.2:4647"}}}
	idOf := func(dir, id string) (string, error) {
		t.Helper()
		s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.ServerID(func() string { return id })
		if last, _ := s.Log().LastIndex(); last == 0 {
			err = errors.Join(err, s.Log().StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(members)}}))
		}
		return got, errors.Join(err, s.Close())
	}
	one, two := t.TempDir(), t.TempDir()
	for dir, id := range map[string]string{one: "one", two: "two"} {
		if got, err := idOf(dir, id); got != id || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	swap := func(name string) {
		t.Helper()
		for _, move := range [][2]string{{filepath.Join(one, name), filepath.Join(one, "x")}, {filepath.Join(two, name), filepath.Join(one, name)}, {filepath.Join(one, "x"), filepath.Join(two, name)}} {
			if err := os.Rename(move[0], move[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused := func(name string) {
		t.Helper()
		id, err := idOf(one, "new")
		if d, ok := errors.AsType[*datadir.DamageError](err); !ok || d.Path != filepath.Join(one, "raft") || !strings.Contains(d.Problem, "written by server ") {
			t.Errorf("%s: %q, %v", name, id, err)
		}
		if r, err := doctor.Run(t.Context(), one); err != nil || len(r.Findings) != 1 || r.Findings[0].Where != filepath.Join(one, "raft") {
			t.Errorf("%s: doctor: %+v, %v", name, r, err)
		}
	}
	for _, name := range []string{"raft", "node-id"} {
		swap(name)
		refused(name + " of another server")
		swap(name)
	}
	path := filepath.Join(one, "node-id")
	write(t, path, []byte("two\n")) // a member, written by an operator
	refused("ID of another member")
	write(t, path, []byte("one\n"))
	for dir, want := range map[string]string{one: "one", two: "two"} {
		if got, err := idOf(dir, "new"); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if r, err := doctor.Run(t.Context(), dir); err != nil || r.Damaged() {
			t.Errorf("doctor: %+v, %v", r, err)
		}
	}

	earlier := t.TempDir()
	s, err := storage.Open(storage.Config{Dir: earlier, Log: raftlog.Config{MinFree: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Log().StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(members)}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(earlier, "node-id")
	write(t, path, checkedfile.Encode([]byte("one")))
	if got, err := idOf(earlier, "new"); got != "one" || err != nil {
		t.Errorf("earlier release: %q, %v", got, err)
	}
	write(t, path, checkedfile.Encode([]byte("two")))
	if got, err := idOf(earlier, "new"); err == nil {
		t.Errorf("earlier release, ID of another server: %q was accepted", got)
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

// The key of certificates is created once and is private. A damaged one is refused, and doctor reports it; without
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
	if r, err := doctor.Run(t.Context(), dir); err != nil || r.Damaged() {
		t.Errorf("doctor with an intact key: %+v, %v", r, err)
	}
	for name, damaged := range map[string][]byte{
		"altered": slices.Concat([]byte{text[0] ^ 1}, text[1:]), "emptied": {}, "zeroed": make([]byte, len(text)), "cut short": text[:len(text)/2],
	} {
		write(t, path, damaged)
		if _, err := keyOf(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if r, err := doctor.Run(t.Context(), dir); err != nil || !r.Damaged() || r.Findings[0].Where != path || r.Findings[0].Remedy == "" {
			t.Errorf("%s: doctor: %+v, %v", name, r, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r, err := doctor.Run(t.Context(), dir); err != nil || r.Damaged() {
		t.Errorf("doctor without a key: %+v, %v", r, err)
	}
	if other, err := keyOf(); other == first || err != nil {
		t.Errorf("the deleted key was returned, %v", err)
	}
}

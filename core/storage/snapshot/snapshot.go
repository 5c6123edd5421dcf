package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// Config configures the snapshot store. The zero value selects the defaults.
type Config struct {
	// Retain is the number of snapshots to keep. If the newest is damaged, Raft falls back
	// on the one before it.
	Retain int // default: 2

	Logger     *slog.Logger // default: none
	RaftLogger hclog.Logger // of Raft's own store; default: none
}

// A Store is Raft's own file store with checksums of the descriptions, and with errors that
// name the damaged file and the remedy.
type Store struct {
	*raft.FileSnapshotStore
	layout datadir.Layout
	log    *slog.Logger
}

var _ raft.SnapshotStore = (*Store)(nil)

// Open opens the snapshots in a data directory, of which list is the verified List. The
// caller holds the lock of the directory, and has made sure that the log does not need a
// damaged snapshot; see CheckCoverage.
//
// Open deletes incomplete snapshots, and moves damaged ones aside: Raft would sort them by
// whatever their description contains, and delete intact ones as older. It adds checksums
// to descriptions without one.
func Open(layout datadir.Layout, list []Info, cfg Config) (*Store, error) {
	cfg.Retain = cmp.Or(cfg.Retain, 2)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	raftLogger := cfg.RaftLogger
	if raftLogger == nil {
		raftLogger = hclog.NewNullLogger()
	}
	s := &Store{layout: layout, log: cfg.Logger}
	for i := range list {
		if err := s.prepare(&list[i]); err != nil {
			return nil, err
		}
	}
	var err error
	if s.FileSnapshotStore, err = raft.NewFileSnapshotStoreWithLogger(layout.Raft(), cfg.Retain, raftLogger); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.Snapshots(), err)
	}
	return s, nil
}

// prepare makes one snapshot directory fit for Raft's store.
func (s *Store) prepare(snap *Info) error {
	switch {
	case snap.Unfinished, snap.Remnant:
		// Raft's store writes a snapshot to a directory named *.tmp and renames it at the
		// end. It never deletes incomplete ones.
		return os.RemoveAll(snap.Path)
	case snap.Problem != nil:
		aside := filepath.Join(s.layout.DamagedSnapshots(), snap.ID)
		s.log.Warn("damaged snapshot moved aside; an older one or the log is used instead", "path", snap.Path, "to", aside, "err", snap.Problem)
		if err := os.MkdirAll(s.layout.DamagedSnapshots(), 0o700); err != nil {
			return err
		}
		return errors.Join(os.Rename(snap.Path, aside), atomicfile.SyncDir(s.layout.Snapshots()))
	case !snap.checked:
		s.log.Info("snapshot had no checksum of its description and was accepted", "path", snap.Path)
		return writeChecksum(snap.Path)
	}
	return nil
}

// List returns the intact snapshots, newest first. It skips damaged ones with a warning.
func (s *Store) List() ([]*raft.SnapshotMeta, error) {
	metas, err := s.FileSnapshotStore.List()
	return slices.DeleteFunc(metas, func(m *raft.SnapshotMeta) bool {
		_, problem := inspect(filepath.Join(s.layout.Snapshots(), m.ID), false)
		if problem != nil {
			s.log.Warn("damaged snapshot skipped", "err", Damage(problem))
		}
		return problem != nil
	}), err
}

// Create starts a snapshot.
func (s *Store) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, transport raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(version, index, term, c, at, transport)
	if err != nil {
		return nil, err
	}
	return &checkedSink{sink, filepath.Join(s.layout.Snapshots(), sink.ID())}, nil
}

// checkedSink adds a checksum to the description when the snapshot is complete. If the
// process is killed before, the next start adds it.
type checkedSink struct {
	raft.SnapshotSink
	path string
}

// Close completes the snapshot.
func (s *checkedSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	return writeChecksum(s.path)
}

// Open verifies a snapshot and returns its content. If the snapshot is damaged, it
// returns a *datadir.DamageError. The caller closes the content. Opening costs a pass
// over the file, which verifies its checksum.
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	path := filepath.Join(s.layout.Snapshots(), id)
	// Raft's store does not verify the description, and its errors lack the file.
	if _, problem := inspect(path, false); problem != nil {
		return nil, nil, Damage(problem)
	}
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err == nil {
		return meta, r, nil
	}
	if _, problem := inspect(path, true); problem != nil {
		return nil, nil, Damage(problem)
	}
	return nil, nil, fmt.Errorf("snapshot %s: %w", path, err)
}

// An Info describes one snapshot directory.
type Info struct {
	ID          string
	Path        string
	Index, Term uint64
	Size        int64
	// Configuration holds the members of the cluster when the snapshot was taken.
	Configuration raft.Configuration
	Unfinished    bool  // it was never renamed to its final name
	Remnant       bool  // remainder of an old snapshot whose deletion was interrupted by a crash
	checked       bool  // its description has a checksum
	Problem       error // reason why it is unusable; nil if it is usable
}

// Open returns the state in the snapshot. It verifies nothing.
func (s Info) Open() (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.Path, "state.bin"))
}

// List returns the snapshots of a data directory, newest first, with unreadable ones at
// the end. If whole is set, every byte is read and verified. It changes nothing on the
// disk.
func List(layout datadir.Layout, whole bool) ([]Info, error) {
	entries, err := os.ReadDir(layout.Snapshots())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []Info
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s := Info{ID: e.Name(), Path: filepath.Join(layout.Snapshots(), e.Name()), Unfinished: strings.HasSuffix(e.Name(), ".tmp")}
		if !s.Unfinished {
			var meta *metadata
			if meta, s.Problem = inspect(s.Path, whole); meta != nil {
				s.Index, s.Term, s.Size, s.checked, s.Configuration = meta.Index, meta.Term, meta.Size, meta.checked, meta.Configuration
			}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), strings.Compare(b.ID, a.ID))
	})
	markRemnants(list)
	return list, nil
}

// markRemnants marks the remainders of snapshots that were being deleted. Raft's store
// deletes a snapshot once two newer ones exist. The file system decides which of its two
// files is deleted first; after a crash the other one remains, and Raft never deletes it.
func markRemnants(list []Info) {
	var usable []uint64
	for _, s := range list {
		if !s.Unfinished && s.Problem == nil {
			usable = append(usable, s.Index)
		}
	}
	for i := range list {
		s := &list[i]
		if s.Unfinished || !errors.Is(s.Problem, fs.ErrNotExist) {
			continue
		}
		index, ok := indexOf(s.ID)
		// With fewer than two newer usable snapshots the missing file is damage, since Raft
		// would not have deleted it.
		newer := 0
		for _, u := range usable {
			if ok && u > index {
				newer++
			}
		}
		s.Remnant = newer >= 2
	}
}

// indexOf returns the index in the name of a snapshot, TERM-INDEX-TIME.
func indexOf(id string) (index uint64, ok bool) {
	var term, written uint64
	n, err := fmt.Sscanf(id, "%d-%d-%d", &term, &index, &written)
	return index, n == 3 && err == nil
}

// metadata is the content of meta.json, as Raft's store writes it.
type metadata struct {
	raft.SnapshotMeta
	CRC     []byte
	checked bool // the description has a checksum
}

// inspect reads the description of a snapshot and compares it with the content if whole
// is set, otherwise with the size only. Errors are of type *datadir.FileError. It
// returns the description also with an error, if that could be read.
func inspect(path string, whole bool) (*metadata, error) {
	metaPath, statePath := filepath.Join(path, "meta.json"), filepath.Join(path, "state.bin")
	text, err := os.ReadFile(metaPath)
	if err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: datadir.WithoutPath(err)}
	}
	checked, err := verifyDescription(path, text)
	if err != nil {
		return nil, err
	}
	meta := &metadata{checked: checked}
	if err := json.Unmarshal(text, meta); err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: fmt.Errorf("invalid JSON: %w", err)}
	}
	f, err := os.Open(statePath)
	if err != nil {
		return meta, &datadir.FileError{Path: statePath, Err: datadir.WithoutPath(err)}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return meta, &datadir.FileError{Path: statePath, Err: datadir.WithoutPath(err)}
	}
	if err := meta.checkName(filepath.Base(path)); err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: err}
	}
	if info.Size() != meta.Size {
		return meta, &datadir.FileError{Path: statePath, Err: fmt.Errorf("size is %d bytes, meta.json expects %d", info.Size(), meta.Size)}
	}
	if !whole {
		return meta, nil
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	if _, err := io.Copy(sum, f); err != nil {
		return meta, &datadir.FileError{Path: statePath, Err: datadir.WithoutPath(err)}
	}
	if !bytes.Equal(sum.Sum(nil), meta.CRC) {
		return meta, &datadir.FileError{Path: statePath, Err: errors.New("checksum differs from meta.json")}
	}
	return meta, nil
}

const remedy = "move the directory of that snapshot away: the previous snapshot is used if the log still reaches back to it. " +
	"Otherwise move the whole data directory aside and start with an empty one, which receives the state from the other servers; " +
	"a single server restores a saved snapshot"

// Damage returns a *datadir.DamageError for an unusable snapshot.
func Damage(problem error) error {
	d := &datadir.DamageError{Part: "snapshot", Remedy: remedy, Problem: "unusable", Err: problem}
	if p, ok := errors.AsType[*datadir.FileError](problem); ok {
		d.Path, d.Err = p.Path, p.Err
	}
	return d
}

// CheckCoverage returns an error if the log does not start at or before the end of a
// usable snapshot. Entries between the two would be missing from the state, and nothing
// would show it: Raft does not check this. first is the first index of the log (0 if it
// is empty), floor the last deleted one. One usable snapshot suffices, since Raft falls
// back on older ones.
func CheckCoverage(layout datadir.Layout, list []Info, first, floor uint64) error {
	// A log that starts at entry 1 needs no snapshot.
	if first <= 1 && floor == 0 {
		return nil
	}
	var damaged error
	for _, s := range list {
		switch {
		case s.Unfinished, s.Remnant:
		case s.Problem != nil:
			if damaged == nil {
				damaged = s.Problem
			}
		case first == 0 || s.Index+1 >= first:
			return nil
		}
	}
	if damaged != nil {
		return Damage(damaged)
	}
	return &datadir.DamageError{
		Part: "snapshot", Path: layout.Snapshots(), Problem: fmt.Sprintf("no snapshot reaches entry %d, and the log has no entries before %d", max(first, 1)-1, max(first, floor+1)),
		Remedy: "restore the missing snapshot directory. Otherwise " + datadir.RemedyRejoin,
	}
}

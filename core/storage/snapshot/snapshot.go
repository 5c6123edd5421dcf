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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// Config configures the snapshot store. The zero value selects the defaults.
type Config struct {
	// Retain is the number of snapshots to keep. If the newest is damaged, Raft falls back
	// on the one before it.
	Retain int // default: 2

	Logger hclog.Logger // default: none; Raft's own store requires this type
}

// A Store is Raft's own file store with errors that name the damaged file and the remedy.
type Store struct {
	*raft.FileSnapshotStore
	layout datadir.Layout
}

var _ raft.SnapshotStore = (*Store)(nil)

// Open opens the snapshots in a data directory and deletes incomplete ones. The caller
// holds the lock of the directory.
func Open(layout datadir.Layout, cfg Config) (*Store, error) {
	cfg.Retain = cmp.Or(cfg.Retain, 2)
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	// Incomplete snapshots must be deleted before Raft's store is opened, because it never
	// does so itself.
	list, err := List(layout, false)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Unfinished || s.Remnant {
			if err := os.RemoveAll(s.Path); err != nil {
				return nil, err
			}
		}
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(layout.Raft(), cfg.Retain, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layout.Snapshots(), err)
	}
	return &Store{store, layout}, nil
}

// Open verifies a snapshot and returns its content. If the snapshot is damaged, it returns
// a *datadir.DamageError.
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err == nil {
		return meta, r, nil
	}
	// Raft's error lacks the file; read the snapshot again to find it.
	path := filepath.Join(s.layout.Snapshots(), id)
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
	Unfinished  bool  // it was never renamed to its final name
	Remnant     bool  // remainder of an old snapshot whose deletion was interrupted by a crash
	Problem     error // reason why it is unusable; nil if it is usable
}

// Open returns the state in the snapshot. It verifies nothing.
func (s Info) Open() (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.Path, "state.bin"))
}

// List returns the snapshots of a data directory, newest first, with unreadable ones at the
// end. If whole is set, every byte is read and verified.
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
				s.Index, s.Term, s.Size = meta.Index, meta.Term, meta.Size
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
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return 0, false
	}
	index, err := strconv.ParseUint(parts[1], 10, 64)
	return index, err == nil
}

// metadata is the content of meta.json, as Raft's store writes it.
type metadata struct {
	raft.SnapshotMeta
	CRC []byte
}

// inspect reads the description of a snapshot and compares it with the content if whole is
// set, otherwise with the size only. Errors are of type *datadir.FileError.
func inspect(path string, whole bool) (*metadata, error) {
	metaPath, statePath := filepath.Join(path, "meta.json"), filepath.Join(path, "state.bin")
	text, err := os.ReadFile(metaPath)
	if err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: datadir.WithoutPath(err)}
	}
	meta := &metadata{}
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

// CheckCoverage returns an error if the log does not start at or before the end of a usable
// snapshot. Entries between the two would be missing from the state, and nothing would show
// it: Raft does not check this. first is the first index of the log (0 if it is empty),
// floor the last deleted one.
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

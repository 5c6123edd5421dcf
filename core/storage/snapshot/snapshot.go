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

// SnapshotConfig says how snapshots are kept. The zero value means the defaults.
type Config struct {
	// Retain is how many snapshots are kept. The one before the newest is what a
	// server falls back on when the newest is damaged.
	Retain int // default: 2

	Logger hclog.Logger // default: none; Raft's own store wants this kind
}

// Snapshots are the snapshots in a data directory: Raft's own store of files,
// whose errors name the file and the way back.
type Store struct {
	*raft.FileSnapshotStore
	layout datadir.Layout
}

var _ raft.SnapshotStore = (*Store)(nil)

// OpenSnapshots opens the snapshots in a data directory, and deletes what was
// left half-written. Nobody else may be writing there.
func Open(layout datadir.Layout, cfg Config) (*Store, error) {
	cfg.Retain = cmp.Or(cfg.Retain, 2)
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
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

// Open checks a snapshot and gives its bytes.
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err == nil {
		return meta, r, nil
	}
	path := filepath.Join(s.layout.Snapshots(), id)
	if _, problem := inspect(path, true); problem != nil {
		return nil, nil, Damage(problem)
	}
	return nil, nil, fmt.Errorf("snapshot %s: %w", path, err)
}

// Snapshot is one folder of a snapshot.
type Info struct {
	ID          string
	Path        string
	Index, Term uint64
	Size        int64
	Unfinished  bool  // it was never put into place
	Remnant     bool  // of one that was deleted once newer ones were there: a crash cut that short
	Problem     error // why it cannot be used; nil: it can
}

// Open reads the snapshot's state.
func (s Info) Open() (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.Path, "state.bin"))
}

// ListSnapshots looks at the snapshots of a data directory, newest first, and
// those that cannot be read at the end. whole means that every byte is read.
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

// markRemains finds what is left of snapshots that were being deleted. Raft's store
// deletes a snapshot when two newer ones are there, the description first or last,
// as the file system has it; a crash leaves the other file, and nobody ever deletes
// that.
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
		newer := 0
		for _, u := range usable {
			if ok && u > index {
				newer++
			}
		}
		s.Remnant = newer >= 2
	}
}

// indexOf reads the index in a snapshot's name, TERM-INDEX-TIME.
func indexOf(id string) (index uint64, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return 0, false
	}
	index, err := strconv.ParseUint(parts[1], 10, 64)
	return index, err == nil
}

// snapshotMeta is how Raft's store describes a snapshot on the disk.
type metadata struct {
	raft.SnapshotMeta
	CRC []byte
}

// inspectSnapshot reads a snapshot's description, and compares its bytes with
// it when whole, its size otherwise. The error is a *fileError.
func inspect(path string, whole bool) (*metadata, error) {
	metaPath, statePath := filepath.Join(path, "meta.json"), filepath.Join(path, "state.bin")
	text, err := os.ReadFile(metaPath)
	if err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: datadir.WithoutPath(err)}
	}
	meta := &metadata{}
	if err := json.Unmarshal(text, meta); err != nil {
		return nil, &datadir.FileError{Path: metaPath, Err: fmt.Errorf("it is no JSON document: %w", err)}
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
		return meta, &datadir.FileError{Path: statePath, Err: fmt.Errorf("it has %d bytes, and %d by meta.json", info.Size(), meta.Size)}
	}
	if !whole {
		return meta, nil
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	if _, err := io.Copy(sum, f); err != nil {
		return meta, &datadir.FileError{Path: statePath, Err: datadir.WithoutPath(err)}
	}
	if !bytes.Equal(sum.Sum(nil), meta.CRC) {
		return meta, &datadir.FileError{Path: statePath, Err: errors.New("its checksum is not that of meta.json")}
	}
	return meta, nil
}

const remedy = "move that snapshot's folder out of the way: the one before it is used if the log still reaches back to it. " +
	"Otherwise move the whole data directory aside and start with an empty one, which gets its state from the other servers; " +
	"a lone server restores a saved snapshot"

func Damage(problem error) error {
	d := &datadir.DamageError{Part: "snapshot", Remedy: remedy, Problem: "it cannot be used", Err: problem}
	if p, ok := errors.AsType[*datadir.FileError](problem); ok {
		d.Path, d.Err = p.Path, p.Err
	}
	return d
}

// checkCover is whether the log begins where a snapshot that can be used ends,
// or before: a state that lacks the entries between the two could not be known
// for what it is. Raft does not look.
func CheckCoverage(layout datadir.Layout, list []Info, first, floor uint64) error {
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
		Part: "snapshot", Path: layout.Snapshots(), Problem: fmt.Sprintf("no snapshot reaches entry %d, and the log has nothing before entry %d", max(first, 1)-1, max(first, floor+1)),
		Remedy: "put the snapshot back that was here. Otherwise " + datadir.RemedyRejoin,
	}
}

package storage

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
)

// Config configures Open. The zero value of every field but Dir selects its default.
type Config struct {
	Dir       string // data directory of the server; created if it is missing
	Log       raftlog.Config
	Snapshots snapshot.Config
	History   history.Config

	// NewestCluster is the newest version of a cluster that this release supports. Open
	// refuses the directory if the version of its cluster is later.
	NewestCluster uint32 // default: 0, which accepts every version

	// OnSweep receives the duration of each batch of deletions in the background: entries
	// behind a snapshot, and history beyond its age or size. It must not block, because
	// appends to the history wait for it.
	OnSweep func(took time.Duration) // default: none

	Logger *slog.Logger // for parts without their own; default: none
}

// A Store is a data directory that this process uses exclusively.
type Store struct {
	layout datadir.Layout
	lock   *datadir.Lock
	// unclosed is the error of databases that a full disk keeps open. Invariant: the lock is
	// not released then.
	unclosed  error
	log       *raftlog.Log
	snapshots *snapshot.Store
	kv        *kvstore.Store
	blobs     *blob.Store
	history   *history.Store
	logger    *slog.Logger

	versionMu sync.Mutex // guards version after Open
	version   datadir.Version
}

// Open locks a data directory and opens all parts of it. It returns ErrLocked if another
// process uses the directory, and a *DamageError if any part is damaged.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir == "" {
		return nil, errors.New("storage: data directory is required")
	}
	if cfg.Log.Logger == nil {
		cfg.Log.Logger = cfg.Logger
	}
	if cfg.OnSweep != nil {
		cfg.Log.OnSweep, cfg.History.OnSweep = cfg.OnSweep, cfg.OnSweep
	}
	s := &Store{layout: datadir.Layout{Dir: cfg.Dir}, logger: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	cfg.Snapshots.Logger = cmp.Or(cfg.Snapshots.Logger, s.logger)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, datadir.ExplainPermission(cfg.Dir, err)
	}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(datadir.ExplainPermission(cfg.Dir, err), s.Close())
	}
	return s, nil
}

// open opens the parts of the directory in order. If one fails, the caller closes those
// before it.
func (s *Store) open(cfg Config) (err error) {
	if damage := datadir.CheckTypes(s.layout); len(damage) > 0 {
		return damage[0]
	}
	if s.lock, err = datadir.AcquireLock(s.layout); err != nil {
		return err
	}
	if s.version, err = datadir.ReadVersion(s.layout); err != nil {
		return err
	}
	if err := s.version.Check(s.layout, cfg.NewestCluster); err != nil {
		return err
	}
	if s.log, err = raftlog.Open(s.layout, cfg.Log); err != nil {
		return err
	}
	// The log may start after entry 1 only if a usable snapshot covers the entries before
	// it. Raft does not check this.
	list, err := snapshot.List(s.layout, true)
	if err != nil {
		return fmt.Errorf("%s: %w", s.layout.Snapshots(), err)
	}
	first, floor := s.log.Bounds()
	if err := snapshot.CheckCoverage(s.layout, list, first, floor); err != nil {
		return err
	}
	if s.snapshots, err = snapshot.Open(s.layout, list, cfg.Snapshots); err != nil {
		return err
	}
	if s.kv, err = kvstore.Open(s.layout, cfg.Log.WithDefaults().MinFree, s.logger); err != nil {
		return err
	}
	s.blobs = blob.New(s.kv)
	if s.history, err = history.Open(s.kv, cfg.History); err != nil {
		return err
	}
	return s.upgradeVersion()
}

// upgradeVersion marks a directory of an earlier format as one of the current format.
// Everything that an earlier release would misread is written later.
func (s *Store) upgradeVersion() error {
	if s.version.Format == datadir.Format {
		return nil
	}
	if last, _ := s.log.LastIndex(); last > 0 {
		s.logger.Info("data directory had no version file and counts as one of an earlier release", "path", s.layout.Version(), "format", datadir.Format)
	}
	s.version.Format = datadir.Format
	return s.version.Write(s.layout)
}

// RecordClusterVersion stores the version of the cluster durably, so that a release that
// does not support it refuses the directory. It writes only if the version rises.
func (s *Store) RecordClusterVersion(version uint32) error {
	s.versionMu.Lock()
	defer s.versionMu.Unlock()
	if version <= s.version.Cluster {
		return nil
	}
	raised := s.version
	raised.Cluster = version
	if err := raised.Write(s.layout); err != nil {
		return err
	}
	s.version = raised
	return nil
}

// Layout returns the paths of the directory.
func (s *Store) Layout() datadir.Layout { return s.layout }

// Log returns the Raft log and stable store.
func (s *Store) Log() *raftlog.Log { return s.log }

// Snapshots returns the Raft snapshots.
func (s *Store) Snapshots() *snapshot.Store { return s.snapshots }

// Blobs returns the policy modules.
func (s *Store) Blobs() *blob.Store { return s.blobs }

// History returns the history of decisions.
func (s *Store) History() *history.Store { return s.history }

// Sizes returns the disk space of each part in bytes.
func (s *Store) Sizes() map[string]int64 {
	return map[string]int64{
		"log":       disk.Usage(s.layout.Log()),
		"snapshots": disk.Usage(s.layout.Snapshots()),
		"store":     disk.Usage(s.layout.Store()),
	}
}

// CheckSpace returns ErrNoSpace if the disk has too little free space for entries.
func (s *Store) CheckSpace() error { return s.log.CheckSpace() }

// Close syncs and closes all parts and releases the lock. It may be called again. It returns
// ErrNoSpace if the disk is too full to close a database: the process then holds the lock
// until it ends, because the database still works in the background.
func (s *Store) Close() error {
	// Parts that Open did not reach are nil. The lock is released last, so that no other
	// process opens files that are still being closed.
	var errs []error
	if s.history != nil {
		s.history.Close()
	}
	if s.kv != nil {
		errs = append(errs, s.kv.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if err := errors.Join(errs...); s.unclosed == nil && errors.Is(err, datadir.ErrNoSpace) {
		s.unclosed = err
	}
	if s.unclosed != nil {
		return s.unclosed
	}
	errs = append(errs, s.lock.Release())
	s.lock = nil
	return errors.Join(errs...)
}

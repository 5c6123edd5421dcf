package storage

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
)

// Config says how a data directory is opened. The zero value of all but Dir
// means the defaults.
type Config struct {
	Dir       string // of the server; made when it is missing
	Log       raftlog.Config
	Snapshots snapshot.Config
	History   history.Config

	// OnSweep is told how long each batch took of what is no longer needed and was
	// deleted: entries behind a snapshot, and history that is too old or too large. It
	// must not wait: whoever appends to the history waits for it.
	OnSweep func(took time.Duration) // default: nobody is told

	Logger *slog.Logger // for all parts that have none; default: none
}

// Store is a data directory that this process alone uses.
type Store struct {
	layout    datadir.Layout
	lock      *datadir.Lock
	log       *raftlog.Log
	snapshots *snapshot.Store
	kv        *kvstore.Store
	blobs     *blob.Store
	history   *history.Store
}

// Open locks a data directory and opens all of it. It is ErrLocked while
// another process has it, and a *DamageError when something in it is not as it
// was written.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir == "" {
		return nil, errors.New("storage: no data directory is given")
	}
	if cfg.Log.Logger == nil {
		cfg.Log.Logger = cfg.Logger
	}
	if cfg.OnSweep != nil {
		cfg.Log.OnSweep, cfg.History.OnSweep = cfg.OnSweep, cfg.OnSweep
	}
	s := &Store{layout: datadir.Layout{Dir: cfg.Dir}}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, datadir.ExplainPermission(cfg.Dir, err)
	}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(datadir.ExplainPermission(cfg.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(cfg Config) (err error) {
	if s.lock, err = datadir.AcquireLock(s.layout); err != nil {
		return err
	}
	if s.log, err = raftlog.Open(s.layout, cfg.Log); err != nil {
		return err
	}
	if s.snapshots, err = snapshot.Open(s.layout, cfg.Snapshots); err != nil {
		return err
	}
	list, err := snapshot.List(s.layout, true)
	if err != nil {
		return fmt.Errorf("%s: %w", s.layout.Snapshots(), err)
	}
	first, floor := s.log.Bounds()
	if err := snapshot.CheckCoverage(s.layout, list, first, floor); err != nil {
		return err
	}
	if s.kv, err = kvstore.Open(s.layout, cfg.Log.WithDefaults().MinFree, cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	s.blobs = blob.New(s.kv)
	s.history, err = history.Open(s.kv, cfg.History)
	return err
}

// Layout tells where everything lies.
func (s *Store) Layout() datadir.Layout { return s.layout }

// Log is the Raft log and the votes.
func (s *Store) Log() *raftlog.Log { return s.log }

// Snapshots are Raft's snapshots.
func (s *Store) Snapshots() *snapshot.Store { return s.snapshots }

// Blobs are the policy modules.
func (s *Store) Blobs() *blob.Store { return s.blobs }

// History is what was decided.
func (s *Store) History() *history.Store { return s.history }

// Sizes is how many bytes each part takes on the disk.
func (s *Store) Sizes() map[string]int64 {
	return map[string]int64{
		"log":       disk.Usage(s.layout.Log()),
		"snapshots": disk.Usage(s.layout.Snapshots()),
		"store":     disk.Usage(s.layout.Store()),
	}
}

// CheckSpace is an ErrNoSpace while the disk has too little room for entries.
func (s *Store) CheckSpace() error { return s.log.CheckSpace() }

// Close brings everything to the disk and lets go of the directory. Twice is
// once.
func (s *Store) Close() error {
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
	errs = append(errs, s.lock.Release())
	s.lock = nil
	return errors.Join(errs...)
}

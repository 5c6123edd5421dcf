package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Config says how a data directory is opened. The zero value of all but Dir
// means the defaults.
type Config struct {
	Dir       string // of the server; made when it is missing
	Log       LogConfig
	Snapshots SnapshotConfig
	History   HistoryConfig

	// Collected is told how long each batch took of what is no longer needed and was
	// deleted: entries behind a snapshot, and history that is too old or too large. It
	// must not wait: whoever appends to the history waits for it.
	Collected func(took time.Duration) // default: nobody is told

	Logger *slog.Logger // for all parts that have none; default: none
}

// Store is a data directory that this process alone uses.
type Store struct {
	layout    Layout
	lock      *dirLock
	log       *Log
	snapshots *Snapshots
	shelf     *shelf
	blobs     *Blobs
	history   *History
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
	if cfg.Collected != nil {
		cfg.Log.collected, cfg.History.collected = cfg.Collected, cfg.Collected
	}
	s := &Store{layout: Layout{cfg.Dir}}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, explainAccess(cfg.Dir, err)
	}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(explainAccess(cfg.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(cfg Config) (err error) {
	if s.lock, err = lockDir(s.layout); err != nil {
		return err
	}
	if s.log, err = OpenLog(s.layout, cfg.Log); err != nil {
		return err
	}
	if s.snapshots, err = OpenSnapshots(s.layout, cfg.Snapshots); err != nil {
		return err
	}
	list, err := ListSnapshots(s.layout, true)
	if err != nil {
		return fmt.Errorf("%s: %w", s.layout.Snapshots(), err)
	}
	first, floor := s.log.reach()
	if err := checkCover(s.layout, list, first, floor); err != nil {
		return err
	}
	if s.shelf, err = openShelf(s.layout, cfg.Log.filled().MinFree, discard(cfg.Logger)); err != nil {
		return err
	}
	s.blobs = &Blobs{s.shelf}
	s.history, err = openHistory(s.shelf, cfg.History)
	return err
}

// Layout tells where everything lies.
func (s *Store) Layout() Layout { return s.layout }

// Log is the Raft log and the votes.
func (s *Store) Log() *Log { return s.log }

// Snapshots are Raft's snapshots.
func (s *Store) Snapshots() *Snapshots { return s.snapshots }

// Blobs are the policy modules.
func (s *Store) Blobs() *Blobs { return s.blobs }

// History is what was decided.
func (s *Store) History() *History { return s.history }

// Sizes is how many bytes each part takes on the disk.
func (s *Store) Sizes() map[string]int64 {
	return map[string]int64{
		"log":       usage(s.layout.Log()),
		"snapshots": usage(s.layout.Snapshots()),
		"store":     usage(s.layout.Store()),
	}
}

// Full is an ErrNoSpace while the disk has too little room for entries.
func (s *Store) Full() error { return checkFree(s.layout.Raft(), s.log.cfg.MinFree) }

// Close brings everything to the disk and lets go of the directory. Twice is
// once.
func (s *Store) Close() error {
	var errs []error
	if s.history != nil {
		s.history.stop()
	}
	if s.shelf != nil {
		errs = append(errs, s.shelf.close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	errs = append(errs, s.lock.unlock())
	s.lock = nil
	return errors.Join(errs...)
}

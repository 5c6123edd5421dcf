package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// LogConfig says how a log behaves. The zero value means the defaults.
type Config struct {
	// VerifyLast is how many entries at the end are read and checked on opening.
	// That none is missing is always checked.
	VerifyLast int // default: 1024; negative: all

	// CacheEntries and CacheBytes bound the newest entries that are held in
	// memory.
	CacheEntries int // default: 512
	CacheBytes   int // default: 8 MiB

	// SweepBatch is how many deleted entries leave the disk at once, SweepPause
	// how long deleting rests in between.
	SweepBatch int           // default: 512
	SweepPause time.Duration // default: 5ms; negative: none

	// MinFree is how many bytes must be left on the disk for entries to be
	// written; votes, deletions and opening need half of it. Badger maps its
	// files: a disk that fills up kills the process, and what it writes in the
	// background is several tables at once.
	MinFree int64 // default: 256 MiB; negative: 0

	// OnFault is told once when a write has failed and nothing more is taken. The
	// server gives up its office or ends.
	OnFault func(error) // default: nobody is told

	Logger *slog.Logger // default: none

	OnSweep func(time.Duration) // see Config.Collected
}

// DefaultLogConfig is the configuration that the zero value stands for.
func DefaultConfig() Config {
	return Config{
		VerifyLast: 1024, CacheEntries: 512, CacheBytes: 8 << 20,
		SweepBatch: 512, SweepPause: 5 * time.Millisecond, MinFree: 256 << 20,
		OnFault: func(error) {}, Logger: slog.New(slog.DiscardHandler), OnSweep: func(time.Duration) {},
	}
}

// Validate reports every value that makes no sense.
func (c Config) Validate() error {
	var errs []error
	for _, v := range []struct {
		name  string
		value int
	}{{"cache entries", c.CacheEntries}, {"cache bytes", c.CacheBytes}, {"sweep batch", c.SweepBatch}} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d is negative", v.name, v.value))
		}
	}
	return errors.Join(errs...)
}

// WithDefaults is c with the defaults in place of zero values.
func (c Config) WithDefaults() Config {
	d := DefaultConfig()
	c.VerifyLast = cmp.Or(c.VerifyLast, d.VerifyLast)
	c.CacheEntries = cmp.Or(c.CacheEntries, d.CacheEntries)
	c.CacheBytes = cmp.Or(c.CacheBytes, d.CacheBytes)
	c.SweepBatch = cmp.Or(c.SweepBatch, d.SweepBatch)
	c.SweepPause = cmp.Or(c.SweepPause, d.SweepPause)
	c.MinFree = cmp.Or(c.MinFree, d.MinFree)
	if c.OnFault == nil {
		c.OnFault = d.OnFault
	}
	if c.OnSweep == nil {
		c.OnSweep = d.OnSweep
	}
	c.Logger = cmp.Or(c.Logger, d.Logger)
	return c
}

package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config configures a log. The zero value selects the defaults.
type Config struct {
	// VerifyLast is the number of entries at the end of the log to read and verify when it
	// is opened. Missing entries are always detected.
	VerifyLast int // default: 1024; negative: all

	// CacheEntries and CacheBytes bound the newest entries kept in memory.
	CacheEntries int // default: 512
	CacheBytes   int // default: 8 MiB

	// SweepBatch is the number of deleted entries to remove from the disk at once,
	// SweepPause the pause between two batches.
	SweepBatch int           // default: 512
	SweepPause time.Duration // default: 5ms; negative: none

	// MinFree is the free disk space in bytes that appending entries requires. Votes,
	// deletions and opening require half of it. Badger maps its files, so a full disk kills
	// the process, and Badger writes several tables at once in the background.
	MinFree int64 // default: 256 MiB; negative: 0

	// OnFault is called once after a failed write, in a goroutine of its own. The server
	// then gives up leadership or exits.
	OnFault func(error) // default: none

	Logger *slog.Logger // default: none

	OnSweep func(time.Duration) // see storage.Config; default: none
}

// DefaultConfig returns the configuration that the zero value stands for.
func DefaultConfig() Config {
	return Config{
		VerifyLast: 1024, CacheEntries: 512, CacheBytes: 8 << 20,
		SweepBatch: 512, SweepPause: 5 * time.Millisecond, MinFree: 256 << 20,
		OnFault: func(error) {}, Logger: slog.New(slog.DiscardHandler), OnSweep: func(time.Duration) {},
	}
}

// Validate returns an error that lists every invalid value.
func (c Config) Validate() error {
	var errs []error
	for _, v := range []struct {
		name  string
		value int
	}{{"cache entries", c.CacheEntries}, {"cache bytes", c.CacheBytes}, {"sweep batch", c.SweepBatch}} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: must not be negative", v.name, v.value))
		}
	}
	return errors.Join(errs...)
}

// WithDefaults returns c with defaults for zero values.
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

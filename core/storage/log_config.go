package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// LogConfig says how a log behaves. The zero value means the defaults.
type LogConfig struct {
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

	// Fault is told once when a write has failed and nothing more is taken. The
	// server gives up its office or ends.
	Fault func(error) // default: nobody is told

	Logger *slog.Logger // default: none

	collected func(time.Duration) // see Config.Collected
}

// DefaultLogConfig is the configuration that the zero value stands for.
func DefaultLogConfig() LogConfig {
	return LogConfig{
		VerifyLast: 1024, CacheEntries: 512, CacheBytes: 8 << 20,
		SweepBatch: 512, SweepPause: 5 * time.Millisecond, MinFree: 256 << 20,
		Fault: func(error) {}, Logger: discard(nil), collected: func(time.Duration) {},
	}
}

// Validate reports every value that makes no sense.
func (c LogConfig) Validate() error {
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

// filled is c with the defaults in place of zero values.
func (c LogConfig) filled() LogConfig {
	d := DefaultLogConfig()
	orElse(&c.VerifyLast, d.VerifyLast)
	orElse(&c.CacheEntries, d.CacheEntries)
	orElse(&c.CacheBytes, d.CacheBytes)
	orElse(&c.SweepBatch, d.SweepBatch)
	orElse(&c.SweepPause, d.SweepPause)
	orElse(&c.MinFree, d.MinFree)
	if c.Fault == nil {
		c.Fault = d.Fault
	}
	if c.collected == nil {
		c.collected = d.collected
	}
	c.Logger = discard(c.Logger)
	return c
}

func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

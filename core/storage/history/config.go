package history

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config configures the history. The zero value selects the defaults.
type Config struct {
	// MaxAge is the maximum age of a record. A segment is deleted as a whole, so a record
	// may be older by a sixteenth of MaxAge.
	MaxAge time.Duration // default: 168h; negative: unlimited

	// MaxBytes is the maximum size of all records in bytes, keys included. Deleted records
	// leave the disk later.
	MaxBytes int64 // default: 256 MiB; negative: unlimited

	// SegmentBytes is the size of a segment, the unit of deletion.
	SegmentBytes int64 // default: 1 MiB, at most a sixteenth of MaxBytes

	// TrimEvery is the interval between checks of the age. The size is checked as the
	// history grows.
	TrimEvery time.Duration // default: 1m

	// Now returns the timestamp of appended records.
	Now func() time.Time // default: time.Now

	OnSweep func(time.Duration) // see storage.Config; default: none
}

// DefaultConfig returns the configuration that the zero value stands for.
func DefaultConfig() Config {
	return Config{
		MaxAge: 7 * 24 * time.Hour, MaxBytes: 256 << 20, SegmentBytes: 1 << 20, TrimEvery: time.Minute, Now: time.Now,
		OnSweep: func(time.Duration) {},
	}
}

// Validate returns an error that lists every invalid value.
func (c Config) Validate() error {
	var errs []error
	if c.SegmentBytes < 0 {
		errs = append(errs, fmt.Errorf("segment bytes is %d: must not be negative", c.SegmentBytes))
	}
	if c.TrimEvery < 0 {
		errs = append(errs, fmt.Errorf("trim interval is %v: must not be negative", c.TrimEvery))
	}
	if c.MaxBytes > 0 && c.MaxBytes < 64<<10 {
		errs = append(errs, fmt.Errorf("max bytes is %d: must be at least 64 KiB", c.MaxBytes))
	}
	return errors.Join(errs...)
}

// withDefaults returns c with defaults for zero values.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	c.MaxAge = cmp.Or(c.MaxAge, d.MaxAge)
	c.MaxBytes = cmp.Or(c.MaxBytes, d.MaxBytes)
	c.SegmentBytes = cmp.Or(c.SegmentBytes, d.SegmentBytes)
	c.TrimEvery = cmp.Or(c.TrimEvery, d.TrimEvery)
	if c.MaxBytes > 0 {
		c.SegmentBytes = min(c.SegmentBytes, c.MaxBytes/16)
	}
	if c.Now == nil {
		c.Now = d.Now
	}
	if c.OnSweep == nil {
		c.OnSweep = d.OnSweep
	}
	return c
}

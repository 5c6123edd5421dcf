package history

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// HistoryConfig says how much of the past is kept. The zero value means the
// defaults.
type Config struct {
	// MaxAge is how old a record may become. It goes when all that were written
	// within a sixteenth of that time of it are as old.
	MaxAge time.Duration // default: 168h; negative: any

	// MaxBytes is how much room records may take, keys included. Deleted ones
	// leave the disk somewhat later.
	MaxBytes int64 // default: 256 MiB; negative: any

	// SegmentBytes is how much is forgotten at once.
	SegmentBytes int64 // default: 1 MiB, a sixteenth of MaxBytes at most

	// TrimEvery is how often ages are looked at. Size is looked at as it grows.
	TrimEvery time.Duration // default: 1m

	// Now tells the time that records are given.
	Now func() time.Time // default: time.Now

	OnSweep func(time.Duration) // see Config.Collected
}

// DefaultHistoryConfig is the configuration that the zero value stands for.
func DefaultConfig() Config {
	return Config{
		MaxAge: 7 * 24 * time.Hour, MaxBytes: 256 << 20, SegmentBytes: 1 << 20, TrimEvery: time.Minute, Now: time.Now,
		OnSweep: func(time.Duration) {},
	}
}

// Validate reports every value that makes no sense.
func (c Config) Validate() error {
	var errs []error
	if c.SegmentBytes < 0 {
		errs = append(errs, fmt.Errorf("segment bytes %d is negative", c.SegmentBytes))
	}
	if c.TrimEvery < 0 {
		errs = append(errs, fmt.Errorf("trim every %v is negative", c.TrimEvery))
	}
	if c.MaxBytes > 0 && c.MaxBytes < 64<<10 {
		errs = append(errs, fmt.Errorf("max bytes %d is less than 64 KiB", c.MaxBytes))
	}
	return errors.Join(errs...)
}

// withDefaults is c with the defaults in place of zero values.
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

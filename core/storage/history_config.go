package storage

import (
	"errors"
	"fmt"
	"time"
)

// HistoryConfig says how much of the past is kept. The zero value means the
// defaults.
type HistoryConfig struct {
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

	collected func(time.Duration) // see Config.Collected
}

// DefaultHistoryConfig is the configuration that the zero value stands for.
func DefaultHistoryConfig() HistoryConfig {
	return HistoryConfig{
		MaxAge: 7 * 24 * time.Hour, MaxBytes: 256 << 20, SegmentBytes: 1 << 20, TrimEvery: time.Minute, Now: time.Now,
		collected: func(time.Duration) {},
	}
}

// Validate reports every value that makes no sense.
func (c HistoryConfig) Validate() error {
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

// filled is c with the defaults in place of zero values.
func (c HistoryConfig) filled() HistoryConfig {
	d := DefaultHistoryConfig()
	orElse(&c.MaxAge, d.MaxAge)
	orElse(&c.MaxBytes, d.MaxBytes)
	orElse(&c.SegmentBytes, d.SegmentBytes)
	orElse(&c.TrimEvery, d.TrimEvery)
	if c.MaxBytes > 0 {
		c.SegmentBytes = min(c.SegmentBytes, c.MaxBytes/16)
	}
	if c.Now == nil {
		c.Now = d.Now
	}
	if c.collected == nil {
		c.collected = d.collected
	}
	return c
}

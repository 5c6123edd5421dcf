package clock

import "time"

// A Clock returns the time and schedules callbacks.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f after d. If d is not positive, the call is due at once, but
	// f never runs within AfterFunc itself.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is one pending call. Its methods have the meaning of those of time.Timer.
type Timer interface {
	// Stop prevents the call. It returns false if the call has happened or was
	// stopped before.
	Stop() bool
	// Reset makes the call due d from now, whatever its state. It returns true if
	// it was still pending.
	Reset(d time.Duration) bool
}

// Real is the clock of the machine. The zero value is ready to use.
type Real struct{}

var _ Clock = Real{}

// Now returns the time of the machine, with its monotonic reading.
func (Real) Now() time.Time { return time.Now() }

// AfterFunc calls f on a new goroutine.
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Since returns c.Now().Sub(t) at about half the cost if c is Real, which matters
// on hot paths.
func Since(c Clock, t time.Time) time.Duration {
	if _, ok := c.(Real); ok {
		return time.Since(t)
	}
	return c.Now().Sub(t)
}

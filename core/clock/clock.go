package clock

import "time"

// Clock tells the time and calls back.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once d has passed. A d that is not positive is due at
	// once, but f never runs inside AfterFunc itself.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one pending call. Its methods mean what those of time.Timer mean.
type Timer interface {
	// Stop prevents the call; false when it has happened or was stopped before.
	Stop() bool
	// Reset makes the call due d from now, whatever became of it so far; true
	// when it was still pending.
	Reset(d time.Duration) bool
}

// Real is the machine's clock. The zero value is ready.
type Real struct{}

var _ Clock = Real{}

// Now is the machine's time, with its monotonic reading.
func (Real) Now() time.Time { return time.Now() }

// AfterFunc calls f on a goroutine of its own.
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Since is c.Now().Sub(t), for about half the price where c is Real: a busy
// caller feels it.
func Since(c Clock, t time.Time) time.Duration {
	if _, ok := c.(Real); ok {
		return time.Since(t)
	}
	return c.Now().Sub(t)
}

package coretest

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cede-scheduler/cede/core/clock"
)

// SetClock returns t as read from a clock that was changed by a duration, in whole
// seconds: the wall time differs, and the difference to earlier readings remains.
// In a bubble of testing/synctest, times have no monotonic reading and package time
// has no way to create one, so this writes the documented layout of time.Time. It
// panics if the layout differs.
func SetClock(t time.Time, by time.Duration) time.Time {
	type layout struct {
		wall uint64 // that there is a monotonic reading, seconds since 1885, nanoseconds
		ext  int64  // the monotonic reading
		loc  *time.Location
	}
	since := func(set time.Time) layout {
		seconds := set.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		return layout{wall: 1<<63 | uint64(seconds)<<30 | uint64(set.Nanosecond()), ext: t.UnixNano(), loc: time.Local}
	}
	plain, set := since(t), since(t.Add(by.Truncate(time.Second)))
	from, to := *(*time.Time)(unsafe.Pointer(&plain)), *(*time.Time)(unsafe.Pointer(&set))
	if to.Sub(from) != 0 || from.UnixNano() != t.UnixNano() || to.UnixNano() != t.UnixNano()+int64(by.Truncate(time.Second)) {
		panic("coretest: time.Time has another layout")
	}
	return to
}

// A Clock is a real clock that can be changed while a test runs.
type Clock struct {
	clock.Real
	by atomic.Int64 // nanoseconds
}

// Set changes the clock by a duration from the real time.
func (c *Clock) Set(by time.Duration) { c.by.Store(int64(by)) }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return SetClock(time.Now(), time.Duration(c.by.Load())) }

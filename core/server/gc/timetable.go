package gc

import (
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/replication"
)

// A Timetable maps times to the index that was written then, for objects that the state
// dates by index only. After a start it is empty, so that everything seems young and is
// retained longer rather than shorter. It is safe for concurrent use.
type Timetable struct {
	mu   sync.Mutex
	rows []timetableRow // ascending in both fields
}

// timetableRow is an index and the time at which its entry was written.
type timetableRow struct {
	index uint64
	at    int64 // Unix nanoseconds
}

const (
	timetableStep = int64(time.Minute)
	timetableRows = 3 * 24 * 60 // three days of minutes
)

// Record records the time of an entry, at most once a minute.
func (t *Timetable) Record(a *replication.Applied) {
	if a.Entry == nil || a.Entry.Time == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.rows); n > 0 && a.Entry.Time < t.rows[n-1].at+timetableStep {
		return
	}
	if len(t.rows) == timetableRows {
		t.rows = slices.Delete(t.rows, 0, timetableRows/2)
	}
	t.rows = append(t.rows, timetableRow{a.Index, a.Entry.Time})
}

// IndexBefore returns the greatest recorded index that was written at or before a time,
// or 0 if there is none.
func (t *Timetable) IndexBefore(at int64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearchFunc(t.rows, at, func(r timetableRow, at int64) int {
		if r.at <= at {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return t.rows[i-1].index
}

package server

import (
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/replication"
)

// timetable knows roughly when which index was written, for what the state
// dates by index alone. After a start it knows nothing of the past, so that
// everything seems young and is kept longer rather than shorter.
type timetable struct {
	mu   sync.Mutex
	rows []moment // ascending in both
}

// moment is an index that was written by a time.
type moment struct {
	index uint64
	at    int64 // Unix nanoseconds
}

const (
	tableStep = int64(time.Minute)
	tableRows = 3 * 24 * 60 // three days of minutes
)

func newTimetable() *timetable { return &timetable{} }

// witness notes an entry.
func (t *timetable) witness(a *replication.Applied) {
	if a.Entry == nil || a.Entry.Time == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.rows); n > 0 && a.Entry.Time < t.rows[n-1].at+tableStep {
		return
	}
	if len(t.rows) == tableRows {
		t.rows = slices.Delete(t.rows, 0, tableRows/2)
	}
	t.rows = append(t.rows, moment{a.Index, a.Entry.Time})
}

// before is the greatest index that was written before a time as far as is
// known; 0: none is.
func (t *timetable) before(at int64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearchFunc(t.rows, at, func(m moment, at int64) int {
		if m.at <= at {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return t.rows[i-1].index
}

// Package selfwatch reports two causes of elections that repeat: a machine on which this
// process is scheduled late, and a disk that accepts no entries.
//
// It measures and reports; it changes nothing. A Watch has one goroutine, that of Run, and
// Delay may be called by others.
package selfwatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Watch measures the delay and the storage of this process. Timeouts of Raft are not
// adapted to the delay: the servers of a pool would then have different ones, and the
// lease of a leader cannot be changed while it runs.
type Watch struct {
	log      *slog.Logger
	election time.Duration // timeout of an election; 0: there are none
	storage  func() error

	mu       sync.Mutex
	recent   [2]time.Duration // greatest delay of the current and of the previous period
	started  time.Time        // of the current period
	warned   time.Time
	wasFull  bool
	lastDisk time.Time
}

const (
	watchInterval = 100 * time.Millisecond
	watchPeriod   = 30 * time.Second // a delay is reported for one to two periods
	diskInterval  = time.Second
)

// New returns a Watch that does nothing before Run. election is the shortest timeout of
// Raft that starts an election, or 0 if delays cause none. storage returns why the storage
// accepts no entries, or nil.
func New(log *slog.Logger, election time.Duration, storage func() error) *Watch {
	return &Watch{log: log, election: election, storage: storage}
}

// Run measures until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	timer := time.NewTimer(watchInterval)
	defer timer.Stop()
	for {
		due := time.Now().Add(watchInterval)
		timer.Reset(watchInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		w.record(now, now.Sub(due))
		w.checkStorage(now)
	}
}

// record adds a measured delay. It logs an excessive one, at most once in a period.
func (w *Watch) record(now time.Time, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.started) >= watchPeriod {
		w.recent, w.started = [2]time.Duration{0, w.recent[0]}, now
	}
	w.recent[0] = max(w.recent[0], delay)
	if problem := w.problem(delay); problem != "" && (w.warned.IsZero() || now.Sub(w.warned) >= watchPeriod) {
		w.warned = now
		w.log.Warn("this process is scheduled late", "delay", delay, "detail", problem)
	}
}

// Delay returns the greatest delay of the last one to two periods, and a problem if
// elections suffer.
func (w *Watch) Delay() (time.Duration, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.started) >= 2*watchPeriod {
		return 0, ""
	}
	most := max(w.recent[0], w.recent[1])
	return most, w.problem(most)
}

// problem describes a delay that can end a leader's lease or start an election.
func (w *Watch) problem(delay time.Duration) string {
	if w.election == 0 || delay < w.election/2 {
		return ""
	}
	return fmt.Sprintf("scheduling delay of %d ms exceeds half of the election timeout of %d ms, so elections may repeat: give this machine more CPU time, or raise server.raft.heartbeat, server.raft.election and server.raft.lease on every server",
		delay.Milliseconds(), w.election.Milliseconds())
}

// checkStorage logs when the storage stops to accept entries, and when it does again.
func (w *Watch) checkStorage(now time.Time) {
	if now.Sub(w.lastDisk) < diskInterval {
		return
	}
	w.lastDisk = now
	err := w.storage()
	switch {
	case err != nil && !w.wasFull:
		w.log.Error("storage accepts no entries; this server cannot lead", "err", err)
	case err == nil && w.wasFull:
		w.log.Info("storage accepts entries again")
	}
	w.wasFull = err != nil
}

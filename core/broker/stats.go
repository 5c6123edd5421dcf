package broker

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Counts holds the number of evaluations in each state.
type Counts struct {
	Ready, Unacked, Pending, Delayed, Backoff, Cancelable, Failed int
	Blocked                                                       int // in the Blocked of the broker
}

// WaitStats sums up how long evaluations waited for delivery since the broker was
// created, from their arrival or the end of their delay.
type WaitStats struct {
	Deliveries int
	Total, Max time.Duration
}

func (w *WaitStats) add(d time.Duration) {
	w.Deliveries++
	w.Total += d
	w.Max = max(w.Max, d)
}

// Stats is a snapshot of a broker. Every count is the length of a list, so none can
// drift or become negative.
type Stats struct {
	Enabled, Paused bool
	Types           [model.EvalTypes]Counts // by model.JobType
	Waits           [model.EvalTypes]WaitStats
	Waiters         int // Dequeue calls that wait
}

// Total returns the sum of the counts of all types.
func (s *Stats) Total() Counts {
	var t Counts
	for _, c := range s.Types {
		t.Ready += c.Ready
		t.Unacked += c.Unacked
		t.Pending += c.Pending
		t.Delayed += c.Delayed
		t.Backoff += c.Backoff
		t.Cancelable += c.Cancelable
		t.Failed += c.Failed
		t.Blocked += c.Blocked
	}
	return t
}

// Stats returns the current counts.
func (b *Broker) Stats() Stats {
	var blocked [model.EvalTypes]int
	if t := b.attached(); t != nil {
		blocked = t.counts()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Enabled: b.enabled, Paused: b.hold.paused, Waits: b.waits, Waiters: len(b.waiters)}
	for t := range s.Types {
		s.Types[t] = Counts{
			Ready:      b.queue.counts[StateReady][t],
			Unacked:    b.queue.counts[StateUnacked][t],
			Pending:    b.queue.counts[StatePending][t],
			Delayed:    b.queue.counts[StateDelayed][t],
			Backoff:    b.queue.counts[StateBackoff][t],
			Cancelable: b.queue.counts[StateCancelable][t],
			Failed:     b.queue.counts[StateFailed][t],
			Blocked:    blocked[t],
		}
	}
	return s
}

// A Location describes where an evaluation is, for users who investigate why it
// does not run.
type Location struct {
	State         State
	Until         time.Time // end of the delay, backoff or lease
	Attempt       int       // number of deliveries
	PendingBehind string    // if pending: the evaluation that has the job's turn
	CoveredBy     string    // if cancelable: the evaluation that covers it
}

// Locate returns the location of an evaluation. Its state is StateUnknown if the
// broker does not hold it.
func (b *Broker) Locate(evalID string) Location {
	if t := b.attached(); t != nil && t.Contains(evalID) {
		return Location{State: StateBlocked}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.queue.lookup(evalID)
	if e == nil {
		return Location{}
	}
	w := Location{State: e.state, Attempt: int(e.attempts), CoveredBy: e.rare().coveredBy}
	switch e.state {
	case StateDelayed, StateBackoff:
		w.Until = b.start.Add(time.Duration(e.at))
	case StateUnacked:
		if !e.paused {
			w.Until = b.start.Add(time.Duration(e.at))
		}
	case StatePending:
		if turn := e.job.turn; turn != nil {
			w.PendingBehind = turn.eval.ID
		}
	}
	return w
}

func (b *Broker) attached() *Blocked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blocked
}

package whatif

import (
	"context"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

const (
	forecastTimeout = 15 * time.Second // of a forecast, without its wait
	forecastAge     = 5 * time.Second  // for which a forecast answers further requests
)

// lastForecast is the newest forecast of the queue. One forecast answers for all jobs, so
// that a page with many jobs costs no more than one.
type lastForecast struct {
	mu    sync.Mutex
	queue *lookahead.Queue
}

// get returns the forecast, if it is of this state or new enough.
func (l *lastForecast) get(index uint64, now int64) *lookahead.Queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queue; q != nil && (q.Index == index || q.Index < index && now-q.Now >= 0) && now-q.Now < int64(forecastAge) {
		return q
	}
	return nil
}

func (l *lastForecast) put(q *lookahead.Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = q
}

// ForecastQueue predicts when the waiting instances of all jobs start, by the policies in
// force. It calls newest for the state when its turn comes. The result is shared and
// read-only, and up to forecastAge old.
func (e *Examiner) ForecastQueue(ctx context.Context, newest func() *state.Snapshot) (*lookahead.Queue, error) {
	if q := e.forecast.get(newest().Index(), e.clock.Now().UnixNano()); q != nil {
		return q, nil
	}
	ctx, release, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	snap, now := newest(), e.clock.Now().UnixNano()
	if q := e.forecast.get(snap.Index(), now); q != nil { // made while this request waited
		return q, nil
	}
	policies, err := e.policies.CopyOf(snap, nil)
	if err != nil {
		return nil, apierror.New(apierror.CodeConflict, "cannot start the policies: %v", err).WithCause(err)
	}
	defer policies.Unpin()
	limited, cancel := context.WithTimeout(ctx, forecastTimeout)
	defer cancel()
	q, err := lookahead.ForecastQueue(limited, snap, now, policies)
	switch {
	case err == nil:
		e.forecast.put(q)
		return q, nil
	case ctx.Err() != nil:
		return nil, apierror.Interrupted(ctx.Err())
	case limited.Err() != nil:
		return nil, apierror.New(apierror.CodeUnavailable, "the queue cannot be played forward within %s", forecastTimeout).WithCause(err).
			WithHint("the cluster or its queue is too large for a forecast on this server")
	}
	return nil, apierror.New(apierror.CodeConflict, "the queue cannot be played forward: %v", err).WithCause(err)
}

package evalqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
)

// errLeading means that this server leads now, so that its workers must use its own
// broker.
var errLeading = errors.New("this server leads")

const (
	// leaderCheck is the interval at which a call that waits at the leader checks whether
	// that still leads.
	leaderCheck = 200 * time.Millisecond
	// minRetry and maxRetry bound the wait after a failed call, which doubles.
	minRetry, maxRetry = 50 * time.Millisecond, 2 * time.Second
)

// dequeuer dequeues evaluations from the leader for all workers of this server. One call
// at a time waits there. It returns up to as many evaluations as workers waited when it
// was made; workers that arrive meanwhile are served by the next call.
type dequeuer struct {
	cfg    Config
	leader func() (id string, isLocal bool, err error)
	nack   func(ctx context.Context, evalID string, token broker.Token) error

	mu       sync.Mutex
	waiters  []*waiter // in order of arrival
	behind   uint64    // index that this server must reach before it dequeues again
	behindOf string    // the leader that delivered evaluations which needed it
	calling  bool      // a goroutine calls the leader
	ctx      context.Context
	group    sync.WaitGroup
}

// waiter is a worker that waits for an evaluation.
type waiter struct{ result chan dequeued } // one slot

type dequeued struct {
	d   broker.Delivery
	err error
}

// start lets the dequeuer call the leader until ctx ends.
func (q *dequeuer) start(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctx = ctx
}

// wait rejects further workers and waits for calls in flight.
func (q *dequeuer) wait() {
	q.mu.Lock()
	q.ctx = nil
	q.mu.Unlock()
	q.group.Wait()
}

// dequeue waits for an evaluation.
func (q *dequeuer) dequeue(ctx context.Context) (broker.Delivery, error) {
	w := &waiter{result: make(chan dequeued, 1)}
	q.mu.Lock()
	if q.ctx == nil {
		q.mu.Unlock()
		return broker.Delivery{}, context.Canceled
	}
	q.waiters = append(q.waiters, w)
	if !q.calling {
		q.calling = true
		inner := q.ctx
		q.group.Go(func() { q.run(inner) })
	}
	q.mu.Unlock()
	select {
	case r := <-w.result:
		return r.d, r.err
	case <-ctx.Done():
	}
	if q.remove(w) {
		return broker.Delivery{}, ctx.Err()
	}
	r := <-w.result // a delivery that arrived as ctx ended is accepted
	return r.d, r.err
}

// remove removes a waiter, and reports whether it had not been served.
func (q *dequeuer) remove(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return true
}

// run calls the leader until no worker waits.
func (q *dequeuer) run(ctx context.Context) {
	retry := time.Duration(0)
	for {
		n, ok := q.countWaiters()
		if !ok {
			return
		}
		list, err := q.call(ctx, n)
		switch {
		case ctx.Err() != nil:
			q.failAll(ctx.Err())
		case errors.Is(err, errLeading):
			q.failAll(err)
		case err != nil:
			retry = min(max(2*retry, minRetry), maxRetry)
			clock.Sleep(ctx, q.cfg.Clock, retry)
		default:
			retry = 0
			q.serve(ctx, list)
		}
	}
}

// countWaiters returns how many workers wait. If there are none, run must return: the next
// worker starts another goroutine.
func (q *dequeuer) countWaiters() (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calling = len(q.waiters) > 0
	return len(q.waiters), q.calling
}

// failAll returns an error to all workers that wait.
func (q *dequeuer) failAll(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiters {
		w.result <- dequeued{err: err}
	}
	q.waiters = nil
}

// serve passes deliveries to workers that wait, and nacks the rest.
func (q *dequeuer) serve(ctx context.Context, list []broker.Delivery) {
	q.mu.Lock()
	n := min(len(list), len(q.waiters))
	for i, w := range q.waiters[:n] {
		w.result <- dequeued{d: list[i]}
	}
	q.waiters = q.waiters[n:]
	q.mu.Unlock()
	for _, d := range list[n:] {
		if err := q.nack(context.WithoutCancel(ctx), d.Eval.ID, d.Token); err != nil {
			q.cfg.Logger.DebugContext(ctx, "failed to nack evaluation; its lease expires", "eval_id", d.Eval.ID, "err", err)
		}
	}
}

// call waits at the leader for evaluations. It returns early if another server leads.
func (q *dequeuer) call(ctx context.Context, n int) ([]broker.Delivery, error) {
	leader, isLocal, err := q.leader()
	switch {
	case isLocal:
		return nil, errLeading
	case err != nil:
		return nil, err
	}
	if err := q.waitCaughtUp(ctx, leader); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := q.watchLeader(leader, cancel)
	defer stop()
	// The jitter spreads the ends of the calls of several servers.
	wait := q.cfg.Poll/2 + time.Duration(q.cfg.Random(int64(q.cfg.Poll/2)))
	d, err := q.cfg.Peers.Dequeue(ctx, leader, n, wait)
	if err != nil {
		return nil, err
	}
	return decodeDeliveries(d, q.cfg.Traces)
}

// setBehind records that an evaluation was nacked because this server's state had not
// reached an index. Nothing is dequeued until it has: if the disk is full, a server follows
// the leader for hours without applying anything, and would only delay evaluations.
func (q *dequeuer) setBehind(index uint64) {
	leader, _ := q.cfg.Writer.Log.Leader()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.behindOf != leader {
		q.behind, q.behindOf = 0, leader
	}
	q.behind = max(q.behind, index)
}

// waitCaughtUp waits for a few seconds until this server is no longer behind. An index
// that another leader required does not count.
func (q *dequeuer) waitCaughtUp(ctx context.Context, leader string) error {
	q.mu.Lock()
	behind, of := q.behind, q.behindOf
	q.mu.Unlock()
	if of != leader {
		return nil
	}
	_, err := stateWaiter{store: q.cfg.Writer.Store}.WaitIndex(ctx, behind)
	return err
}

// watchLeader calls cancel if this server learns that another server does not lead any
// more: if a leader is partitioned, it cannot report that itself. The caller must call
// stop.
func (q *dequeuer) watchLeader(leader string, cancel func()) (stop func()) {
	var mu sync.Mutex
	stopped := false
	var timer clock.Timer
	var check func()
	check = func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if id, isLocal, err := q.leader(); isLocal || err != nil || id != leader {
			cancel()
			return
		}
		timer = q.cfg.Clock.AfterFunc(leaderCheck, check)
	}
	mu.Lock()
	timer = q.cfg.Clock.AfterFunc(leaderCheck, check)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

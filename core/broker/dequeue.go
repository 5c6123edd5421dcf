package broker

import (
	"context"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// A Delivery is an evaluation to process.
type Delivery struct {
	Eval  *model.Evaluation
	Token Token

	// WaitIndex is the oldest state to process it on. It covers every evaluation of
	// the job that the broker has received, so any of them can stand for all.
	WaitIndex uint64

	// Attempt is 1 for the first delivery.
	Attempt int
}

// TryDequeue returns the first ready evaluation of the given types without waiting;
// it returns false if there is none. If types is empty, all types match.
func (b *Broker) TryDequeue(types []model.JobType) (Delivery, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.deliver(maskOf(types))
}

// Dequeue waits until an evaluation of the given types is ready; if types is empty,
// all match. It returns ErrNoEvaluation after timeout, if that is positive, the
// error of ctx if it is done, and ErrDisabled if the broker is disabled. While the
// broker is paused, it waits. Callers are served in order of arrival. A delivery
// that coincides with the end of ctx is still returned.
func (b *Broker) Dequeue(ctx context.Context, types []model.JobType, timeout time.Duration) (Delivery, error) {
	ds, err := b.DequeueBatch(ctx, types, 1, timeout)
	if err != nil {
		return Delivery{}, err
	}
	return ds[0], nil
}

// DequeueBatch returns as many ready evaluations as there are, at least one and at
// most limit, under the conditions of Dequeue. Their leases start together.
func (b *Broker) DequeueBatch(ctx context.Context, types []model.JobType, limit int, timeout time.Duration) ([]Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{types: maskOf(types), limit: max(limit, 1)}
	b.mu.Lock()
	if !b.enabled {
		b.mu.Unlock()
		return nil, ErrDisabled
	}
	if b.fill(w) {
		b.mu.Unlock()
		return w.got, nil
	}
	w.done = make(chan struct{})
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	return b.await(ctx, w, timeout)
}

func (b *Broker) await(ctx context.Context, w *waiter, timeout time.Duration) ([]Delivery, error) {
	if timeout > 0 {
		timer := b.cfg.Clock.AfterFunc(timeout, func() { b.giveUp(w, ErrNoEvaluation) })
		defer timer.Stop()
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		b.giveUp(w, ctx.Err())
	}
	return w.got, w.err
}

// A waiter is a blocked call. All fields but done are guarded by the broker's lock
// until done is closed.
type waiter struct {
	types uint
	limit int
	done  chan struct{}
	got   []Delivery
	err   error
}

func (w *waiter) finish(err error) {
	w.err = err
	close(w.done)
}

// giveUp sends w home, unless it has been served meanwhile.
func (b *Broker) giveUp(w *waiter, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiters, w); i >= 0 {
		b.waiters = slices.Delete(b.waiters, i, i+1)
		w.finish(err)
	}
}

// serveWaiters delivers ready evaluations to waiters. Every operation that may make
// one ready ends with it. So one operation delivers in priority order, no waiter
// wakes in vain, and whenever the lock is free, no waiter could be served.
func (b *Broker) serveWaiters() {
	if len(b.waiters) == 0 {
		return
	}
	b.waiters = slices.DeleteFunc(b.waiters, func(w *waiter) bool {
		if !b.fill(w) {
			return false
		}
		w.finish(nil)
		return true
	})
}

func (b *Broker) fill(w *waiter) bool {
	for len(w.got) < w.limit {
		d, ok := b.deliver(w.types)
		if !ok {
			break
		}
		w.got = append(w.got, d)
	}
	return len(w.got) > 0
}

const allTypes = 1<<model.EvalTypes - 1

func maskOf(types []model.JobType) uint {
	if len(types) == 0 {
		return allTypes
	}
	var m uint
	for _, t := range types {
		m |= 1 << t
	}
	return m
}

// deliver delivers the first ready evaluation of the types in mask.
func (b *Broker) deliver(mask uint) (Delivery, bool) {
	if b.hold != (hold{}) || !b.enabled {
		return Delivery{}, false
	}
	first := b.queue.first(mask)
	if first == nil {
		return Delivery{}, false
	}
	e := b.queue.entries.at(first.Pop().Value.id)
	j := e.job
	now := b.now()
	b.waits[e.typ].add(time.Duration(now - e.at))
	b.queue.move(e, StateUnacked)
	e.token = newToken(b.cfg.Rand, e)
	e.attempts++
	b.startLease(e, now)
	return Delivery{e.eval, e.token, j.maxIndex, int(e.attempts)}, true
}

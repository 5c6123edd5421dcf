package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxUpdates is the maximum number of statuses in one report.
const maxUpdates = 1000

// reporter gathers statuses and repeats reports until a server accepts them. Only the
// newest status of an allocation counts.
type reporter struct {
	window, retry time.Duration
	send          func(context.Context, []Update) error
	log           *slog.Logger
	wake          chan struct{} // capacity 1

	mu      sync.Mutex
	pending map[string]Update
	order   []string      // of pending, in order of arrival
	empty   chan struct{} // closed while no status is pending or in flight
}

func newReporter(window, retry time.Duration, send func(context.Context, []Update) error, log *slog.Logger) *reporter {
	empty := make(chan struct{})
	close(empty)
	return &reporter{
		window: window, retry: retry, send: send, log: log,
		wake: make(chan struct{}, 1), pending: map[string]Update{}, empty: empty,
	}
}

func (r *reporter) add(u Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.pending[u.ID]; !waits {
		r.order = append(r.order, u.ID)
	}
	r.pending[u.ID] = u
	select {
	case <-r.empty:
		r.empty = make(chan struct{})
	default:
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// isPending reports whether a status of the allocation has not been sent.
func (r *reporter) isPending(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.pending[id]
	return ok
}

func (r *reporter) run(ctx context.Context) {
	pause := newBackoff(r.retry)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		sleep(ctx, r.window)
		for ctx.Err() == nil {
			batch := r.next()
			if len(batch) == 0 {
				break
			}
			if err := r.send(ctx, batch); err != nil {
				if ctx.Err() == nil {
					r.log.WarnContext(ctx, "failed to report statuses; retrying", "count", len(batch), "err", err)
				}
				sleep(ctx, pause.next())
				continue
			}
			pause.reset()
			r.sent(batch)
		}
	}
}

// next returns the oldest pending statuses. They remain pending until a server accepts them.
func (r *reporter) next() []Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.order), maxUpdates)
	batch := make([]Update, n)
	for i, id := range r.order[:n] {
		batch[i] = r.pending[id]
	}
	return batch
}

// sent removes accepted statuses, unless there is a newer one.
func (r *reporter) sent(batch []Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range batch {
		if r.pending[u.ID] == u {
			delete(r.pending, u.ID)
		}
	}
	r.order = slices.DeleteFunc(r.order, func(id string) bool { _, waits := r.pending[id]; return !waits })
	if len(r.pending) == 0 {
		closeOnce(r.empty)
	}
}

// flush waits until all statuses have been accepted, or ctx ends.
func (r *reporter) flush(ctx context.Context) {
	r.mu.Lock()
	empty := r.empty
	r.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log.WarnContext(ctx, "the end of allocations was not reported", "alloc_ids", slices.Sorted(maps.Keys(r.pending)))
	}
}

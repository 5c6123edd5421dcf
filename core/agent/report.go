package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// mostUpdates is how many statuses one report holds.
const mostUpdates = 1000

// reporter gathers statuses and sends them until they are taken. Of an allocation
// only the newest counts.
type reporter struct {
	window, retry time.Duration
	send          func(context.Context, []Update) error
	log           *slog.Logger
	wake          chan struct{} // capacity 1

	mu      sync.Mutex
	pending map[string]Update
	order   []string      // of pending, as they came
	empty   chan struct{} // closed while nothing is pending or under way
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

// waits is whether something of the allocation is still to be told.
func (r *reporter) waits(id string) bool {
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
					r.log.WarnContext(ctx, "statuses were not taken; trying again", "count", len(batch), "err", err)
				}
				sleep(ctx, pause.next())
				continue
			}
			pause.reset()
			r.sent(batch)
		}
	}
}

// next is the oldest that is to be told. It stays pending until it is taken.
func (r *reporter) next() []Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.order), mostUpdates)
	batch := make([]Update, n)
	for i, id := range r.order[:n] {
		batch[i] = r.pending[id]
	}
	return batch
}

// sent forgets what was taken, unless there is newer word of it.
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

// flush waits until everything was taken, or ctx ends.
func (r *reporter) flush(ctx context.Context) {
	r.mu.Lock()
	empty := r.empty
	r.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log.WarnContext(ctx, "the servers do not know how this work ended", "alloc_ids", slices.Sorted(maps.Keys(r.pending)))
	}
}

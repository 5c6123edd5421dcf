package events

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrClosed means that the server is stopping: there will be no more events.
var ErrClosed = errors.New("event stream is closed")

// DefaultCapacity is the default number of events in a buffer.
const DefaultCapacity = 16384

// A Buffer holds the newest events.
//
// The naive way gives every subscriber a queue of its own: memory grows with the
// readers, and a reader that stalls forces a choice between blocking and dropping
// under its lock. Here there is one ring, and a subscription is a position in it.
// Publishing costs the same however many readers there are. If a reader falls
// behind and its position is overwritten, it is informed of the gap and continues
// with the oldest event in the buffer.
type Buffer struct {
	mu   sync.Mutex
	ring []Event
	// Invariant: events of the sequence numbers [tail, head) are in ring, each at
	// its number modulo the capacity; floor is the greatest index that may have had
	// events which are not there any more.
	tail, head uint64
	floor      uint64
	last       uint64 // index of the newest event, or of the last reset
	changed    chan struct{}
	waiting    bool // a reader waits for changed
	closed     bool
}

// NewBuffer returns a buffer for so many events; if capacity is not positive,
// DefaultCapacity.
func NewBuffer(capacity int) *Buffer {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	return &Buffer{ring: make([]Event, capacity), changed: make(chan struct{})}
}

// Publish adds events. Their indexes must not decrease.
func (b *Buffer) Publish(list ...Event) {
	if len(list) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	size := uint64(len(b.ring))
	for i := range list {
		if b.head-b.tail == size {
			b.floor = b.ring[b.tail%size].Index
			b.tail++
		}
		b.ring[b.head%size] = list[i]
		b.head++
	}
	b.last = max(b.last, list[len(list)-1].Index)
	b.wake()
}

// Reset records that events up to index are not available, because the state was
// restored as a whole. Readers are informed of the gap.
func (b *Buffer) Reset(index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.ring)
	b.head++ // so that a reader at the end is behind, too
	b.tail = b.head
	b.floor, b.last = index, max(b.last, index)
	b.wake()
}

// Close ends every subscription after the events in the buffer.
func (b *Buffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

func (b *Buffer) wake() {
	if b.waiting {
		close(b.changed)
		b.changed, b.waiting = make(chan struct{}), false
	}
}

// Subscribe returns a subscription that starts at the first event of index from or
// later; if from is 0, at the next event. If events of those indexes were
// overwritten, the first batch reports the gap.
func (b *Buffer) Subscribe(from uint64, filter Filter) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Subscription{buffer: b, filter: slices.Clone(filter), next: b.head, seen: b.last}
	if from == 0 {
		return s
	}
	s.seen = from - 1
	s.next = b.find(from)
	if from <= b.floor {
		s.lost = true
	}
	return s
}

// find is the number of the first event of an index or later.
func (b *Buffer) find(index uint64) uint64 {
	size := uint64(len(b.ring))
	lo, hi := b.tail, b.head
	for lo < hi {
		mid := lo + (hi-lo)/2
		if b.ring[mid%size].Index < index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// A Subscription reads a buffer.
type Subscription struct {
	buffer *Buffer
	filter Filter
	next   uint64 // number of the event to look at
	seen   uint64 // index up to which the reader has all events, or was informed of a gap
	lost   bool   // the next batch reports a gap
}

// A Batch is the result of one read of a subscription.
type Batch struct {
	// Lost is set if events are missing before Events: the reader was too slow,
	// started too far back, or the server did not observe them.
	Lost   *Gap
	Events []Event
}

// A Gap is an inclusive range of indexes within which events may be missing.
type Gap struct{ From, To uint64 }

// batchSize bounds how long one read holds the buffer.
const batchSize = 256

// Next waits for matching events and returns those that are available, at most a
// few hundred. It returns the error of ctx, or ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		batch, changed, err := s.read()
		if err != nil || batch.Lost != nil || len(batch.Events) > 0 {
			return batch, err
		}
		if changed == nil {
			continue // a stretch that it does not pick; there is more
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// read returns the available events. If the channel is not nil, there are no more
// until it closes.
func (s *Subscription) read() (Batch, <-chan struct{}, error) {
	b := s.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch Batch
	if s.next < b.tail {
		s.next, s.lost = b.tail, true
	}
	if s.lost {
		batch.Lost = &Gap{From: s.seen + 1, To: max(b.floor, s.seen+1)}
		s.lost = false
	}
	size := uint64(len(b.ring))
	for looked := 0; s.next < b.head && looked < batchSize; looked++ {
		e := &b.ring[s.next%size]
		if s.filter.picks(e.Topic) {
			batch.Events = append(batch.Events, *e)
		}
		s.seen = max(s.seen, e.Index-1)
		s.next++
	}
	if s.next < b.head {
		return batch, nil, nil
	}
	s.seen = max(s.seen, b.last)
	if b.closed && batch.Lost == nil && len(batch.Events) == 0 {
		return batch, nil, ErrClosed
	}
	b.waiting = true
	return batch, b.changed, nil
}
